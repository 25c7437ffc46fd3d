package server

import (
	"slices"
	"sync"

	"github.com/coppice-go/coppice/internal/api"
)

// Bounds of the contexts that are kept for their further pages. One that is larger is made for each page.
const (
	maxContexts     = 4
	maxContextBytes = 64 << 20 // of messages
)

// contextKey names a context, which never changes: what the model saw at a target, as of the commit in force there.
type contextKey struct {
	of                           writerKey
	commit, at, provider, vendor string
}

// contexts are the contexts of which pages were asked for last.
type contexts struct {
	mu   sync.Mutex
	list []keptContext // the one used last is last
}

type keptContext struct {
	key  contextKey
	doc  api.Context
	size int // bytes of its messages
}

func (c *contexts) find(key contextKey) (doc api.Context, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.list, func(k keptContext) bool { return k.key == key })
	if i < 0 {
		return doc, false
	}
	k := c.list[i]
	c.list = append(slices.Delete(c.list, i, i+1), k)
	return k.doc, true
}

// add keeps a context, and drops those that were used the longest time ago.
func (c *contexts) add(key contextKey, doc api.Context) {
	n := keptContext{key: key, doc: doc}
	for _, m := range doc.Messages {
		n.size += len(m)
	}
	if n.size > maxContextBytes {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(slices.DeleteFunc(c.list, func(k keptContext) bool { return k.key == key }), n)
	size := 0
	for i := range slices.Backward(c.list) {
		if size += c.list[i].size; size > maxContextBytes || len(c.list)-i > maxContexts {
			c.list = slices.Delete(c.list, 0, i+1)
			return
		}
	}
}

// forget drops the contexts of sessions.
func (c *contexts) forget(gone func(of writerKey) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = slices.DeleteFunc(c.list, func(k keptContext) bool { return gone(k.key.of) })
}

package sim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/layout"
)

// object is one object of the bucket.
type object struct {
	body []byte
	tag  string // of its content, as in S3: equal bodies, equal tags
	was  string // the tag of the previous content
}

// head is a checkpoint_latest that was in force.
type head struct {
	at  time.Duration
	sum checkpoint.Summary
}

// bucket is the store. It behaves as S3 promises, each request at one moment, and checks the requests.
type bucket struct {
	w       *world
	mu      sync.Mutex
	objects map[string]*object
	names   map[string]string // all contents of each immutable name (I4)
	tags    map[string]bool   // all versions of checkpoint_latest that were in force (I5)
	heads   []head
}

func tagOf(p []byte) string {
	sum := sha256.Sum256(p)
	return hex.EncodeToString(sum[:8])
}

// put is a PUT: 200, 412, or 404 for If-Match without an object.
func (b *bucket) put(key string, p []byte, cond backend.Cond) (backend.Info, int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.objects[key]
	match, set := cond.Match()
	switch {
	case cond.Absent() && o != nil, set && o != nil && o.tag != string(match):
		return backend.Info{}, 412
	case set && o == nil:
		return backend.Info{}, 404
	}
	n := &object{body: p, tag: tagOf(p)}
	if o != nil {
		n.was = o.tag
	}
	b.watch(key, n)
	b.objects[key] = n
	return b.info(key, n), 200
}

func (b *bucket) info(key string, o *object) backend.Info {
	return backend.Info{Key: key, Size: int64(len(o.body)), Version: backend.Version(o.tag)}
}

// watch checks a write against the rules for every write.
func (b *bucket) watch(key string, o *object) {
	if !strings.HasPrefix(key, layout.Checkpoints) {
		if had, ok := b.names[key]; ok && had != o.tag {
			b.w.violation("I4: %s had other bytes before", key)
		}
		b.names[key] = o.tag
		return
	}
	sum, err := checkpoint.DecodeSummary(o.body[:min(len(o.body), 4096)])
	if err != nil {
		b.w.violation("checkpoint_latest: %v", err)
		return
	}
	if b.tags[o.tag] {
		b.w.violation("I5: a body of checkpoint_latest, of commit %d, is in force for the second time", sum.Seq)
	}
	b.tags[o.tag] = true
	if n := len(b.heads); n > 0 {
		switch last := b.heads[n-1].sum; {
		case last.Tombstone && !sum.Tombstone:
			b.w.violation("a deleted session came back with commit %d", sum.Seq)
		case last.Tombstone: // written again by a writer that could not read the first one
		case sum.Seq <= last.Seq:
			b.w.violation("I1: the head went from commit %d to %d", last.Seq, sum.Seq)
		case sum.Epoch < last.Epoch && sum.Seq < 1<<62: // the tombstone over an unreadable checkpoint has none
			b.w.violation("I8: the epoch went from %d to %d", last.Epoch, sum.Epoch)
		}
	}
	b.heads = append(b.heads, head{b.w.now(), sum})
}

func (b *bucket) get(key string) *object {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.objects[key]
}

func (b *bucket) remove(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if strings.HasPrefix(key, layout.Checkpoints) {
		b.w.violation("%s was deleted", key)
	}
	delete(b.objects, key)
}

// list returns at most n objects after a key.
func (b *bucket) list(prefix, after string, n int) []backend.Info {
	b.mu.Lock()
	defer b.mu.Unlock()
	var keys []string
	for key := range b.objects {
		if strings.HasPrefix(key, prefix) && key > after {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var out []backend.Info
	for _, key := range keys[:min(n, len(keys))] {
		out = append(out, b.info(key, b.objects[key]))
	}
	return out
}

// last returns the newest head; false if the session was never created.
func (b *bucket) last() (head, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.heads) == 0 {
		return head{}, false
	}
	return b.heads[len(b.heads)-1], true
}

// short returns a key without the common prefix.
func short(key string) string {
	key = strings.TrimPrefix(key, layout.SessionPrefix(session))
	return strings.Replace(key, strings.Repeat("0", 16), "~", 2)
}

func status(code int) string { return fmt.Sprintf("%d", code) }

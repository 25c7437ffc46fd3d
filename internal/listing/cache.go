package listing

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/layout"
)

const (
	cacheMax     = 1 << 17 // sessions in a cache, of about 300 bytes each; more are not remembered
	cacheFileMax = 256 << 20
	cacheMagic   = "cplist\r\x01"
	// settled is how old a change has to be so that the next one has another time: clocks of file systems are coarse.
	settled = 2 * time.Second
)

// Cache remembers what listings found out about sessions on a store that appends. Nothing in it is believed that is
// older than the session: what is remembered counts only while checkpoint and newest segment have the sizes and times
// that they had, since each commit changes one of them, and a segment is followed by another only through a line in
// it. So a session that is known costs two looks, and no read. Safe for concurrent use; the zero Cache is empty.
type Cache struct {
	File string // where it is kept for the next program, from its first use on; "" = nowhere

	once    sync.Once // loads it
	mu      sync.Mutex
	of      map[string]known // by the stored name of the id
	changes int              // since it was loaded
}

// known is what was found out about a session.
type known struct {
	checkpoint stamp // zero = there is none
	log        logEnd
	sum        []byte // its summary as JSON; nil = not read
}

// stamp distinguishes the states of an object.
type stamp struct {
	size int64
	time int64 // of the last change: nanoseconds since 1970
}

func stampOf(info backend.Info) stamp { return stamp{info.Size, info.ModTime.UnixNano()} }

func (c *Cache) get(name string) (k known, ok bool) {
	if c == nil {
		return known{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok = c.of[name]
	return k, ok
}

func (c *Cache) put(name string, k known) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]known{}
	}
	if _, there := c.of[name]; there || len(c.of) < cacheMax {
		c.of[name] = k
		c.changes++
	}
}

// recall returns what is known of a session if it is as it was, by one look at its log.
func (l *lister) recall(ctx context.Context, s *session) (k known, ok bool, err error) {
	k, ok = l.cache.get(s.name())
	if !ok || k.checkpoint != s.stored {
		return k, false, nil
	}
	if k.log.name == "" {
		sum, ok := k.summary()
		return k, ok && sum.Tombstone, nil
	}
	key, want := k.newest(s.name())
	if key == "" {
		return k, false, nil
	}
	now := stamp{}
	for info, err := range l.b.List(ctx, backend.ListOptions{Prefix: key, Limit: 1}) {
		if err != nil {
			return k, false, err
		}
		if info.Key == key {
			now = stampOf(info)
		}
	}
	return k, now == want, nil
}

// newest returns the key of the segment that changes with the next commit, and how it was. "" = that is not known. Of a
// deleted session none is: its tombstone is written once more before another session begins under its id.
func (k *known) newest(name string) (key string, was stamp) {
	seg, ok := layout.ParseSegment(k.log.name)
	if !ok || k.log.bytes < 0 { // sealing it may add a line that names the next one
		return "", stamp{}
	}
	id, _ := layout.Unescape(name)
	return seg.PlainKey(id), stamp{k.log.bytes, k.log.changed.UnixNano()}
}

func (k *known) summary() (sum checkpoint.Summary, ok bool) {
	return sum, k.sum != nil && json.Unmarshal(k.sum, &sum) == nil
}

// remember keeps what was found out about a session, unless it changed just now. sum is nil if it was not read.
func (l *lister) remember(s *session, sum *checkpoint.Summary) {
	if l.cache == nil || s.log == nil || l.now.Sub(s.info.ModTime) < settled || len(l.o.Docs) > 0 {
		return
	}
	k := known{checkpoint: s.stored, log: *s.log}
	if sum != nil {
		k.sum, _ = json.Marshal(sum)
	}
	l.cache.put(s.name(), k)
}

// Close keeps the cache in its file, if much has changed. What fails is passed over, here and in load: a cache may be
// lost.
func (c *Cache) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.File == "" || c.changes*128 <= len(c.of) {
		return
	}
	c.changes = 0
	dir := filepath.Dir(c.File)
	if os.MkdirAll(dir, 0o700) != nil {
		return
	}
	f, err := os.CreateTemp(dir, ".list-*")
	if err != nil {
		return
	}
	_, err = f.Write(c.encode())
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), c.File)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
}

// Clear forgets everything, in the file too: what it holds of a session that was deleted must not stay.
func (c *Cache) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of, c.changes = nil, 0; c.File != "" {
		_ = os.Remove(c.File)
	}
}

func (c *Cache) load() {
	if c.File == "" {
		return
	}
	info, err := os.Stat(c.File)
	if err != nil || info.Size() > cacheFileMax {
		return
	}
	p, err := os.ReadFile(c.File)
	if err != nil {
		return
	}
	if of, ok := decodeCache(p); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.of = of
	}
}

// encode returns the contents of the file: the magic, the CRC-32C of what follows, and for each session the texts, each
// after its length, and then the numbers of what is known, as varints.
func (c *Cache) encode() []byte {
	p := append([]byte(cacheMagic), 0, 0, 0, 0)
	for name, k := range c.of {
		for _, text := range [...]string{name, k.log.name, string(k.sum)} {
			p = append(binary.AppendUvarint(p, uint64(len(text))), text...)
		}
		for _, n := range [...]int64{
			k.checkpoint.size, k.checkpoint.time, k.log.bytes, int64(k.log.epoch),
			k.log.written.UnixNano(), k.log.changed.UnixNano(),
		} {
			p = binary.AppendVarint(p, n)
		}
	}
	binary.LittleEndian.PutUint32(p[len(cacheMagic):], codec.CRC(p[len(cacheMagic)+4:]))
	return p
}

func decodeCache(p []byte) (of map[string]known, ok bool) {
	const head = len(cacheMagic) + 4
	if len(p) < head || string(p[:len(cacheMagic)]) != cacheMagic ||
		binary.LittleEndian.Uint32(p[len(cacheMagic):]) != codec.CRC(p[head:]) {
		return nil, false
	}
	of = map[string]known{}
	for r := (reader{p[head:], true}); len(r.p) > 0; {
		name, k := string(r.text()), known{}
		k.log.name = string(r.text())
		if sum := r.text(); len(sum) > 0 {
			k.sum = sum
		}
		k.checkpoint = stamp{r.number(), r.number()}
		k.log.bytes, k.log.epoch = r.number(), uint64(r.number())
		k.log.written, k.log.changed = time.Unix(0, r.number()), time.Unix(0, r.number())
		if of[name] = k; !r.ok || len(of) > cacheMax {
			return nil, false
		}
	}
	return of, true
}

// reader reads the fields of a cache; ok ends with the first one that is not there.
type reader struct {
	p  []byte
	ok bool
}

func (r *reader) text() []byte {
	n, size := binary.Uvarint(r.p)
	if size <= 0 || n > uint64(len(r.p)-size) {
		r.p, r.ok = nil, false
		return nil
	}
	text := r.p[size : size+int(n)]
	r.p = r.p[size+int(n):]
	return text
}

func (r *reader) number() int64 {
	n, size := binary.Varint(r.p)
	if size <= 0 {
		r.p, r.ok = nil, false
		return 0
	}
	r.p = r.p[size:]
	return n
}

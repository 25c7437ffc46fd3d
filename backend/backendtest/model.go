package backendtest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/coppice-go/coppice/backend"
)

var modelCases = []testCase{{name: "Model/RandomWalk", run: testModel}}

// model is the contract as a map: the required results of a sequence of calls by one caller.
type model struct {
	e       *env
	a       backend.Appender // nil if the backend is none
	objects map[string]object
	past    []object // earlier states, for outdated conditions
	writes  int
}

type object struct {
	bytes   []byte
	version backend.Version
}

// No key is a folder of another.
var modelKeys = []string{"a/1", "a/2", "a-b", "a.b/c", "b", "c/d/e", "c/d-e", "c0"}

func testModel(e *env) {
	m := &model{e: e, objects: map[string]object{}}
	m.a, _ = e.b.(backend.Appender)
	steps := []func(key string){m.put, m.put, m.get, m.get, m.stat, m.list, m.remove}
	if m.a != nil {
		steps = append(steps, m.append, m.append, m.cut, m.resync)
	}
	for i := range e.size(500, 80) {
		steps[e.rng.IntN(len(steps))](modelKeys[e.rng.IntN(len(modelKeys))])
		if e.Failed() {
			e.Fatalf("at step %d", i)
		}
	}
	for _, key := range modelKeys {
		if o, ok := m.objects[key]; ok {
			e.holds(key, o.bytes)
		} else {
			e.absent(key)
		}
	}
}

func (m *model) body() []byte {
	m.writes++
	return fill(fmt.Sprintf("write %d ", m.writes), 12+m.e.rng.IntN(300))
}

func (m *model) set(key string, p []byte, v backend.Version) {
	if o, ok := m.objects[key]; ok {
		m.past = append(m.past, o)
	}
	m.objects[key] = object{bytes: p, version: v}
}

func (m *model) put(key string) {
	o, exists := m.objects[key]
	c, holds := backend.Cond{}, true
	switch m.e.rng.IntN(5) {
	case 0:
		c, holds = backend.IfAbsent(), !exists
	case 1, 2:
		if exists && o.version != "" {
			c = backend.IfMatch(o.version)
		}
	case 3:
		// Equal bytes may have equal versions; only a different state is certainly outdated.
		if len(m.past) > 0 {
			stale := m.past[m.e.rng.IntN(len(m.past))]
			if exists && !bytes.Equal(stale.bytes, o.bytes) {
				c, holds = backend.IfMatch(stale.version), false
			}
		}
	}
	p := m.body()
	info, err := m.e.b.Put(m.e.ctx(), key, p, c)
	if !holds {
		m.e.refused(err, "put", key, backend.ErrPrecondition)
		return
	}
	if err != nil {
		m.e.Fatalf("put %s (%s): %v", key, c, err)
	}
	m.set(key, p, info.Version)
}

func (m *model) get(key string) {
	o, exists := m.objects[key]
	size := int64(len(o.bytes))
	r := backend.Range{}
	switch m.e.rng.IntN(3) {
	case 0:
		r = backend.Bytes(m.e.rng.Int64N(size+2), m.e.rng.Int64N(size+2))
	case 1:
		r = backend.Tail(m.e.rng.Int64N(size + 10))
	}
	p, info, err := m.e.b.Get(m.e.ctx(), key, r)
	off, n, outside := r.Resolve(size)
	switch {
	case !exists:
		m.e.fails(err, "get", key, backend.ErrNotExist)
	case outside != nil:
		m.e.fails(err, "get", key, backend.ErrRange)
	case err != nil || info.Size != size || !bytes.Equal(p, o.bytes[off:off+n]):
		m.e.Errorf("get %s (%s): %s, %+v, %v; want %s", key, r, show(p), info, err, show(o.bytes[off:off+n]))
	case r.Whole() && info.Version != o.version || info.Version != "" && info.Version != o.version:
		m.e.Errorf("get %s (%s): version %q, want %q", key, r, info.Version, o.version)
	}
}

func (m *model) stat(key string) {
	o, exists := m.objects[key]
	info, err := m.e.b.Stat(m.e.ctx(), key)
	if !exists {
		m.e.fails(err, "stat", key, backend.ErrNotExist)
		return
	}
	if err != nil || info.Size != int64(len(o.bytes)) || info.Version != o.version {
		m.e.Errorf("stat %s: %+v, %v; want %d bytes, version %q", key, info, err, len(o.bytes), o.version)
	}
}

func (m *model) list(string) {
	pick := func(from []string) string { return from[m.e.rng.IntN(len(from))] }
	m.e.lists(slices.Collect(maps.Keys(m.objects)), backend.ListOptions{
		Prefix:    pick([]string{"", "", "a", "a/", "c/", "c/d", "x"}),
		After:     pick([]string{"", "", "a/", "a/1", "b", "c/d"}),
		Delimiter: pick([]string{"", "/"}),
		Limit:     m.e.rng.IntN(5),
	})
}

func (m *model) remove(key string) {
	m.e.delete(key)
	if o, ok := m.objects[key]; ok {
		m.past = append(m.past, o)
	}
	delete(m.objects, key)
}

// near returns the size, or sometimes a number next to it.
func (m *model) near(size int64) int64 {
	if m.e.rng.IntN(3) == 0 {
		return size + m.e.rng.Int64N(5) - 2
	}
	return size
}

// after checks the result and the effect of a call of Appender; done is the required content.
func (m *model) after(op, key string, info backend.Info, err, want error, done []byte) {
	if want != nil {
		m.e.refused(err, op, key, want)
		return
	}
	if err != nil || info.Size != int64(len(done)) {
		m.e.Errorf("%s %s: %+v, %v; want %d bytes", op, key, info, err, len(done))
		return
	}
	m.set(key, done, m.e.stat(key).Version)
	m.e.holds(key, done)
}

func (m *model) append(key string) {
	o, exists := m.objects[key]
	off, p := m.near(int64(len(o.bytes))), m.body()
	var want error
	if !exists || off != int64(len(o.bytes)) {
		want = backend.ErrPrecondition
	}
	info, err := m.a.Append(m.e.ctx(), key, off, p)
	m.after("append", key, info, err, want, slices.Concat(o.bytes, p))
}

// cut removes a tail, or sometimes fails to: another offset, a byte too many or too few, a different byte.
func (m *model) cut(key string) {
	o, exists := m.objects[key]
	size := int64(len(o.bytes))
	from := m.e.rng.Int64N(size + 1)
	off, torn := m.near(from), bytes.Clone(o.bytes[from:])
	switch n := len(torn); m.e.rng.IntN(8) {
	case 0:
		torn = append(torn, 'x')
	case 1:
		torn = torn[:max(n-1, 0)]
	case 2:
		if n > 0 {
			torn[m.e.rng.IntN(n)] ^= 1
		}
	}
	var want error
	if !exists || off < 0 || off > size || !bytes.Equal(torn, o.bytes[off:]) {
		want = backend.ErrPrecondition
	}
	err := m.a.Cut(m.e.ctx(), key, off, torn)
	left := o.bytes[:max(min(off, size), 0)]
	m.after("cut", key, backend.Info{Size: int64(len(left))}, err, want, left)
}

func (m *model) resync(key string) {
	o, exists := m.objects[key]
	size := max(m.near(int64(len(o.bytes))), 0)
	off := m.e.rng.Int64N(size + 1)
	var want error
	if !exists || size != int64(len(o.bytes)) {
		want = backend.ErrPrecondition
	}
	info, err := m.a.Resync(m.e.ctx(), key, off, size)
	m.after("resync", key, info, err, want, o.bytes)
}

package backendtest_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"os"
	"os/exec"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/backendtest"
	"github.com/coppice-go/coppice/backend/memory"
)

// Each mutant breaks one line of the contract, and the case named with it must fail.

// mutant is a correct backend with some methods replaced.
type mutant struct {
	backend.Appender
	get    func(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error)
	put    func(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error)
	list   func(ctx context.Context, o backend.ListOptions) iter.Seq2[backend.Info, error]
	append func(ctx context.Context, key string, off int64, p []byte) (backend.Info, error)
	cut    func(ctx context.Context, key string, off int64, torn []byte) error
	resync func(ctx context.Context, key string, off, size int64) (backend.Info, error)
	remove func(ctx context.Context, key string) error
	close  func() error
}

func (m *mutant) Get(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	if m.get != nil {
		return m.get(ctx, key, r)
	}
	return m.Appender.Get(ctx, key, r)
}

func (m *mutant) Put(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
	if m.put != nil {
		return m.put(ctx, key, p, c)
	}
	return m.Appender.Put(ctx, key, p, c)
}

func (m *mutant) List(ctx context.Context, o backend.ListOptions) iter.Seq2[backend.Info, error] {
	if m.list != nil {
		return m.list(ctx, o)
	}
	return m.Appender.List(ctx, o)
}

func (m *mutant) Append(ctx context.Context, key string, off int64, p []byte) (backend.Info, error) {
	if m.append != nil {
		return m.append(ctx, key, off, p)
	}
	return m.Appender.Append(ctx, key, off, p)
}

func (m *mutant) Cut(ctx context.Context, key string, off int64, torn []byte) error {
	if m.cut != nil {
		return m.cut(ctx, key, off, torn)
	}
	return m.Appender.Cut(ctx, key, off, torn)
}

func (m *mutant) Resync(ctx context.Context, key string, off, size int64) (backend.Info, error) {
	if m.resync != nil {
		return m.resync(ctx, key, off, size)
	}
	return m.Appender.Resync(ctx, key, off, size)
}

func (m *mutant) Delete(ctx context.Context, key string) error {
	if m.remove != nil {
		return m.remove(ctx, key)
	}
	return m.Appender.Delete(ctx, key)
}

func (m *mutant) Close() error {
	if m.close != nil {
		return m.close()
	}
	return m.Appender.Close()
}

// mutants: name, the case that must fail, and the fault. a is the correct backend below.
var mutants = []struct {
	name, fails string
	make        func(m *mutant, a backend.Appender)
}{
	{"none", "", func(*mutant, backend.Appender) {}},
	{"if-absent looks, then writes", "Race/IfAbsent", func(m *mutant, a backend.Appender) {
		m.put = func(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
			_, err := a.Stat(ctx, key)
			runtime.Gosched()
			if err == nil && c.Absent() {
				return backend.Info{}, &backend.Error{Op: "put", Key: key, Outcome: backend.NotApplied, Err: backend.ErrPrecondition}
			}
			return a.Put(ctx, key, p, backend.Cond{})
		}
	}},
	{"if-match looks, then writes", "Race/IfMatch", func(m *mutant, a backend.Appender) {
		m.put = func(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
			info, _ := a.Stat(ctx, key)
			runtime.Gosched()
			if v, set := c.Match(); set && info.Version != v {
				return backend.Info{}, &backend.Error{Op: "put", Key: key, Outcome: backend.NotApplied, Err: backend.ErrPrecondition}
			}
			return a.Put(ctx, key, p, backend.Cond{})
		}
	}},
	{"conditions are ignored", "Write/IfMatch", func(m *mutant, a backend.Appender) {
		m.put = func(ctx context.Context, key string, p []byte, _ backend.Cond) (backend.Info, error) {
			return a.Put(ctx, key, p, backend.Cond{})
		}
	}},
	{"if-match creates", "Write/IfMatch", func(m *mutant, a backend.Appender) {
		m.put = func(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
			if _, err := a.Stat(ctx, key); errors.Is(err, backend.ErrNotExist) {
				c = backend.Cond{}
			}
			return a.Put(ctx, key, p, c)
		}
	}},
	{"a failed condition is unknown", "Write/IfAbsent", func(m *mutant, a backend.Appender) {
		m.put = func(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
			info, err := a.Put(ctx, key, p, c)
			if err != nil {
				err = &backend.Error{Op: "put", Key: key, Err: backend.ErrPrecondition}
			}
			return info, err
		}
	}},
	{"versions come from sizes", "Write/ABA", func(m *mutant, a backend.Appender) {
		size := func(i backend.Info) backend.Info { i.Version = backend.Version(make([]byte, i.Size+1)); return i }
		m.get = func(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
			p, i, err := a.Get(ctx, key, r)
			return p, size(i), err
		}
		m.put = func(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
			now, err := a.Stat(ctx, key)
			if v, set := c.Match(); set && err == nil && size(now).Version == v {
				c = backend.IfMatch(now.Version)
			}
			i, err := a.Put(ctx, key, p, c)
			return size(i), err
		}
	}},
	{"an object is written in two steps", "Race/Overwrite", func(m *mutant, a backend.Appender) {
		m.put = func(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
			if _, err := a.Put(ctx, key, p[:len(p)/2], c); err != nil {
				return backend.Info{}, err
			}
			runtime.Gosched()
			return a.Put(ctx, key, p, backend.Cond{})
		}
	}},
	{"reads are stale", "Race/Overwrite", func(m *mutant, a backend.Appender) {
		var mu sync.Mutex
		var n int
		var old []byte
		m.get = func(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
			mu.Lock()
			defer mu.Unlock()
			if n++; n%50 != 1 {
				return bytes.Clone(old), backend.Info{Key: key, Size: int64(len(old)), Version: "x"}, nil
			}
			p, i, err := a.Get(ctx, key, r)
			old = bytes.Clone(p)
			return p, i, err
		}
	}},
	{"put keeps its argument", "Read/SlicesAreNotShared", func(m *mutant, a backend.Appender) {
		kept := map[string][]byte{}
		m.put = func(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
			kept[key] = p
			return a.Put(ctx, key, p, c)
		}
		m.get = func(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
			_, i, err := a.Get(ctx, key, r)
			off, n, _ := r.Resolve(int64(len(kept[key])))
			return bytes.Clone(kept[key][off : off+n]), i, err
		}
	}},
	{"get shares what it returns", "Read/SlicesAreNotShared", func(m *mutant, a backend.Appender) {
		cache := map[string][]byte{}
		m.get = func(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
			whole, i, err := a.Get(ctx, key, backend.Range{})
			if cache[key] == nil {
				cache[key] = whole
			}
			off, n, _ := r.Resolve(int64(len(cache[key])))
			return cache[key][off : off+n], i, err
		}
	}},
	{"ranges are cut to fit", "Read/Ranges", func(m *mutant, a backend.Appender) {
		m.get = func(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
			p, i, err := a.Get(ctx, key, r)
			if errors.Is(err, backend.ErrRange) {
				i, err = a.Stat(ctx, key)
			}
			return p, i, err
		}
	}},
	{"a ranged get tells the size of the range", "Read/Ranges", func(m *mutant, a backend.Appender) {
		m.get = func(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
			p, i, err := a.Get(ctx, key, r)
			i.Size = int64(len(p))
			return p, i, err
		}
	}},
	{"folders are walked in order", "List/Order", func(m *mutant, a backend.Appender) {
		m.list = func(ctx context.Context, o backend.ListOptions) iter.Seq2[backend.Info, error] {
			return resort(a.List(ctx, o), func(x, y backend.Info) int {
				return slices.Compare(strings.Split(x.Key, "/"), strings.Split(y.Key, "/"))
			})
		}
	}},
	{"after is inclusive", "List/Options", func(m *mutant, a backend.Appender) {
		m.list = func(ctx context.Context, o backend.ListOptions) iter.Seq2[backend.Info, error] {
			if o.After != "" {
				o.After = o.After[:len(o.After)-1] + string(o.After[len(o.After)-1]-1) + "~"
			}
			return a.List(ctx, o)
		}
	}},
	{"a prefix is a folder", "List/Options", func(m *mutant, a backend.Appender) {
		m.list = func(ctx context.Context, o backend.ListOptions) iter.Seq2[backend.Info, error] {
			if o.Prefix != "" && !strings.HasSuffix(o.Prefix, "/") {
				o.Prefix += "/"
			}
			return a.List(ctx, o)
		}
	}},
	{"a page ends at a thousand", "List/Many", func(m *mutant, a backend.Appender) {
		m.list = func(ctx context.Context, o backend.ListOptions) iter.Seq2[backend.Info, error] {
			if o.Limit == 0 || o.Limit > 1000 {
				o.Limit = 1000
			}
			return a.List(ctx, o)
		}
	}},
	{"the limit counts keys before they are rolled up", "List/Options", func(m *mutant, a backend.Appender) {
		m.list = func(ctx context.Context, o backend.ListOptions) iter.Seq2[backend.Info, error] {
			if o.Delimiter != "" && o.Limit > 1 {
				o.Limit--
			}
			return a.List(ctx, o)
		}
	}},
	{"a listing fails twice", "Errors/CancelledList", func(m *mutant, a backend.Appender) {
		m.list = func(ctx context.Context, o backend.ListOptions) iter.Seq2[backend.Info, error] {
			return func(yield func(backend.Info, error) bool) {
				for i, err := range a.List(ctx, o) {
					if !yield(i, err) || err != nil && !yield(i, err) {
						return
					}
				}
			}
		}
	}},
	{"a cancelled listing just ends", "Errors/CancelledList", func(m *mutant, a backend.Appender) {
		m.list = func(ctx context.Context, o backend.ListOptions) iter.Seq2[backend.Info, error] {
			return func(yield func(backend.Info, error) bool) {
				for i, err := range a.List(ctx, o) {
					if err != nil || !yield(i, nil) {
						return
					}
				}
			}
		}
	}},
	{"delete of a missing key fails", "Write/Delete", func(m *mutant, a backend.Appender) {
		m.remove = func(ctx context.Context, key string) error {
			if _, err := a.Stat(ctx, key); err != nil {
				return err
			}
			return a.Delete(ctx, key)
		}
	}},
	{"delete takes a prefix", "Write/Delete", func(m *mutant, a backend.Appender) {
		m.remove = func(ctx context.Context, key string) error {
			for i := range a.List(ctx, backend.ListOptions{Prefix: key}) {
				if err := a.Delete(ctx, i.Key); err != nil {
					return err
				}
			}
			return a.Delete(ctx, key)
		}
	}},
	{"keys are cleaned", "Errors/Keys", func(m *mutant, a backend.Appender) {
		m.put = func(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
			return a.Put(ctx, strings.TrimPrefix(path.Clean(key), "/"), p, c)
		}
	}},
	{"a done context is not looked at", "Errors/DoneContext", func(m *mutant, a backend.Appender) {
		m.put = func(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
			return a.Put(context.WithoutCancel(ctx), key, p, c)
		}
	}},
	{"a cancelled put claims to be undone", "Errors/CancelledMidway", func(m *mutant, a backend.Appender) {
		m.put = func(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
			i, err := a.Put(context.WithoutCancel(ctx), key, p, c)
			if ctx.Err() != nil {
				err = &backend.Error{Op: "put", Key: key, Outcome: backend.NotApplied, Err: ctx.Err()}
			}
			return i, err
		}
	}},
	{"close closes nothing", "Errors/Closed", func(m *mutant, _ backend.Appender) { m.close = func() error { return nil } }},
	{"append creates", "Append/Rules", func(m *mutant, a backend.Appender) {
		m.append = func(ctx context.Context, key string, off int64, p []byte) (backend.Info, error) {
			if _, err := a.Stat(ctx, key); err != nil && off == 0 {
				return a.Put(ctx, key, p, backend.IfAbsent())
			}
			return a.Append(ctx, key, off, p)
		}
	}},
	{"append goes in two steps", "Append/Race", func(m *mutant, a backend.Appender) {
		m.append = func(ctx context.Context, key string, off int64, p []byte) (backend.Info, error) {
			half := len(p) / 2
			if _, err := a.Append(ctx, key, off, p[:half]); err != nil {
				return backend.Info{}, err
			}
			runtime.Gosched() // a disk leaves more time than this
			return a.Append(ctx, key, off+int64(half), p[half:])
		}
	}},
	{"append looks, then writes at the end", "Handles/Fencing", func(m *mutant, a backend.Appender) {
		m.append = func(ctx context.Context, key string, off int64, p []byte) (backend.Info, error) {
			for range 100 {
				if i, err := a.Append(ctx, key, off, p); err == nil {
					return i, nil
				}
				i, err := a.Stat(ctx, key)
				if err != nil {
					return i, err
				}
				off = i.Size
			}
			return backend.Info{}, errors.New("no end")
		}
	}},
	{"cut does not compare", "Append/Cut", func(m *mutant, a backend.Appender) {
		m.cut = func(ctx context.Context, key string, off int64, torn []byte) error {
			if p, _, err := a.Get(ctx, key, backend.Range{}); err == nil && off >= 0 && off <= int64(len(p)) {
				torn = p[off:]
			}
			return a.Cut(ctx, key, off, torn)
		}
	}},
	{"cut compares lengths", "Append/Cut", func(m *mutant, a backend.Appender) {
		m.cut = func(ctx context.Context, key string, off int64, torn []byte) error {
			if p, _, err := a.Get(ctx, key, backend.Range{}); err == nil && off >= 0 && off == int64(len(p)-len(torn)) {
				torn = p[off:]
			}
			return a.Cut(ctx, key, off, torn)
		}
	}},
	{"cut compares a beginning", "Append/CutLarge", func(m *mutant, a backend.Appender) {
		m.cut = func(ctx context.Context, key string, off int64, torn []byte) error {
			p, _, err := a.Get(ctx, key, backend.Range{})
			if err == nil && bytes.HasPrefix(torn, p[off:min(int(off)+4096, len(p))]) {
				torn = p[off:]
			}
			return a.Cut(ctx, key, off, torn)
		}
	}},
	{"cut compares, then cuts", "Append/RaceOfCuts", func(m *mutant, a backend.Appender) {
		m.cut = func(ctx context.Context, key string, off int64, torn []byte) error {
			p, _, err := a.Get(ctx, key, backend.Range{})
			if err != nil || !bytes.Equal(p[off:], torn) {
				return a.Cut(ctx, key, off, torn)
			}
			runtime.Gosched() // a disk leaves more time than this
			if p, _, err = a.Get(ctx, key, backend.Range{}); err == nil {
				torn = p[off:]
			}
			return a.Cut(ctx, key, off, torn)
		}
	}},
	{"resync cuts", "Append/Resync", func(m *mutant, a backend.Appender) {
		m.resync = func(ctx context.Context, key string, off, size int64) (backend.Info, error) {
			i, err := a.Resync(ctx, key, off, size)
			if err != nil {
				return i, err
			}
			p, _, err := a.Get(ctx, key, backend.Bytes(off, size-off))
			if err != nil {
				return i, err
			}
			return i, a.Cut(ctx, key, off, p)
		}
	}},
	{"the walk", "Model/RandomWalk", func(m *mutant, a backend.Appender) {
		m.remove = func(ctx context.Context, key string) error {
			if i, err := a.Stat(ctx, key); err == nil && i.Size > 100 {
				return nil
			}
			return a.Delete(ctx, key)
		}
	}},
}

func resort(seq iter.Seq2[backend.Info, error], compare func(x, y backend.Info) int) iter.Seq2[backend.Info, error] {
	return func(yield func(backend.Info, error) bool) {
		var infos []backend.Info
		for i, err := range seq {
			if err != nil {
				yield(i, err)
				return
			}
			infos = append(infos, i)
		}
		slices.SortStableFunc(infos, compare)
		for _, i := range infos {
			if !yield(i, nil) {
				return
			}
		}
	}
}

const mutantEnv = "COPPICE_BACKENDTEST_MUTANT"

// TestMutant runs the suite on the mutant that the environment variable names, for TestMutantsAreCaught.
func TestMutant(t *testing.T) {
	name := os.Getenv(mutantEnv)
	for _, mu := range mutants {
		if mu.name != name {
			continue
		}
		under := map[backend.Backend]*memory.Appender{}
		wrap := func(a *memory.Appender) backend.Backend {
			m := &mutant{Appender: a}
			mu.make(m, a)
			under[m] = a
			return m
		}
		backendtest.Run(t, backendtest.Harness{
			New:    func(*testing.T) backend.Backend { return wrap(memory.NewAppender()) },
			Reopen: func(_ *testing.T, b backend.Backend) backend.Backend { return wrap(under[b].Share()) },
		})
	}
}

func TestMutantsAreCaught(t *testing.T) {
	for _, mu := range mutants {
		t.Run(mu.name, func(t *testing.T) {
			group, name, _ := strings.Cut(mu.fails, "/")
			var out []byte
			var err error
			for range 5 { // a race may succeed by chance; not five times
				cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.short", "-test.run=^TestMutant$/^"+group+"$/^"+name+"$")
				cmd.Env = append(os.Environ(), mutantEnv+"="+mu.name)
				if out, err = cmd.CombinedOutput(); err != nil || !strings.Contains(mu.fails, "Race") {
					break
				}
			}
			switch {
			case mu.fails == "" && err != nil:
				t.Errorf("the right backend fails:\n%s", out)
			case mu.fails != "" && err == nil:
				t.Errorf("%s does not catch it:\n%s", mu.fails, out)
			case mu.fails != "" && !bytes.Contains(out, []byte("--- FAIL: TestMutant/"+mu.fails+" ")):
				t.Errorf("it failed in another way than in %s:\n%s", mu.fails, out)
			case mu.fails != "" && !bytes.Contains(out, []byte(backendtest.SeedEnv)):
				t.Errorf("the failure tells no seed:\n%s", out)
			}
		})
	}
}

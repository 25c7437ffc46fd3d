package backend_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/backend"
	_ "github.com/coppice-go/coppice/backend/memory"
)

// Two writers detect each other by conditional writes.
func ExampleBackend() {
	ctx := context.Background()
	store, err := backend.Open(ctx, "mem:") // the import of a driver registers its scheme
	if err != nil {
		panic(err)
	}
	defer store.Close()
	b := backend.WithPrefix(store, "tenant-7") // a view of all keys below this prefix
	first, err := b.Put(ctx, "state", []byte("one"), backend.IfAbsent())
	if err != nil {
		panic(err)
	}
	if _, err := b.Put(ctx, "state", []byte("one and two"), backend.IfMatch(first.Version)); err != nil {
		panic(err)
	}
	_, err = b.Put(ctx, "state", []byte("three"), backend.IfMatch(first.Version)) // a second writer, too late
	fmt.Println("refused:", errors.Is(err, backend.ErrPrecondition), "- outcome:", backend.OutcomeOf(err))

	head, _, _ := b.Get(ctx, "state", backend.Bytes(0, 3))
	tail, _, _ := b.Get(ctx, "state", backend.Tail(3))
	fmt.Printf("%s, %s\n", head, tail)
	fmt.Println("a bad key:", backend.ValidKey("../state") != nil)
	_, err = b.Stat(ctx, "other")
	fmt.Println("missing:", errors.Is(err, backend.ErrNotExist), "- may not be read:", backend.Refused(err))
	// Output:
	// refused: true - outcome: not applied
	// one, two
	// a bad key: true
	// missing: true - may not be read: false
}

// shelf is the smallest driver: it keeps objects in a map, and is not safe for concurrent use. A real one passes
// backendtest.Run.
type shelf struct {
	objects map[string][]byte
	io      backend.IO
}

func (s *shelf) Get(_ context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	p, ok := s.objects[key]
	if !ok {
		return nil, backend.Info{}, &backend.Error{Op: "get", Key: key, Err: backend.ErrNotExist}
	}
	if r.Whole() {
		s.io = s.io.Add(backend.IO{Get: 1, BytesRead: int64(len(p))})
		return bytes.Clone(p), s.info(key), nil
	}
	off, n, err := r.Resolve(int64(len(p)))
	if err != nil {
		return nil, backend.Info{}, &backend.Error{Op: "get", Key: key, Err: err}
	}
	s.io = s.io.Add(backend.IO{Get: 1, BytesRead: n})
	return bytes.Clone(p[off : off+n]), s.info(key), nil
}

func (s *shelf) Put(_ context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
	_, there := s.objects[key]
	want, conditional := c.Match()
	if c.Absent() && there || conditional && (!there || want != s.info(key).Version) {
		err := &backend.Error{Op: "put", Key: key, Outcome: backend.NotApplied, Err: backend.ErrPrecondition}
		return backend.Info{}, err
	}
	s.objects[key] = bytes.Clone(p)
	s.io = s.io.Add(backend.IO{Put: 1, BytesWritten: int64(len(p))})
	return s.info(key), nil
}

func (s *shelf) info(key string) backend.Info {
	p := s.objects[key]
	return backend.Info{Key: key, Size: int64(len(p)), Version: backend.Version(p)}
}

func (s *shelf) Stat(ctx context.Context, key string) (backend.Info, error) {
	_, info, err := s.Get(ctx, key, backend.Range{})
	return info, err
}

func (s *shelf) List(_ context.Context, o backend.ListOptions) iter.Seq2[backend.Info, error] {
	var keys []string
	for key := range s.objects {
		if strings.HasPrefix(key, o.Prefix) && key > o.After {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return func(yield func(backend.Info, error) bool) {
		for _, key := range keys {
			if !yield(s.info(key), nil) {
				return
			}
		}
	}
}

func (s *shelf) Delete(_ context.Context, key string) error { delete(s.objects, key); return nil }
func (s *shelf) Close() error                               { return nil }

// A driver may reserve space for writes that free more of it.
func ExampleFreeing() {
	ctx := context.Background()
	fmt.Println(backend.IsFreeing(ctx), backend.IsFreeing(backend.Freeing(ctx)))
	// Output: false true
}

// A driver registers itself under a scheme; programs that import it open its URLs.
func ExampleRegister() {
	ctx := context.Background()
	kept := &shelf{objects: map[string][]byte{}}
	backend.Register("shelf", func(context.Context, *url.URL) (backend.Backend, error) { return kept, nil })

	b, err := backend.Open(ctx, "shelf://kitchen")
	if err != nil {
		panic(err)
	}
	before := kept.io
	b.Put(ctx, "jam", []byte("plum"), backend.IfAbsent())
	p, _, err := b.Get(ctx, "jam", backend.Bytes(1, 3))
	fmt.Printf("%s %v, %+v\n", p, err, kept.io.Sub(before).BytesRead)
	// Output:
	// lum <nil>, 3
}

func ExampleRedacted() {
	fmt.Println(backend.Redacted("s3://KEY:SECRET@bucket/prefix?region=eu-central-1"))
	// Output: s3://xxxxx@bucket/prefix?region=eu-central-1
}

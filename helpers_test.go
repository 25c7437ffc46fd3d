package coppice_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/seam"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

// state is what the agents of these tests keep.
type state struct {
	Turns int    `json:"turns"`
	Note  string `json:"note,omitempty"`
}

// clock gives times a millisecond apart.
func clock() func() time.Time { return clockAt(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)) }

// clockAt returns a clock that starts at a time and advances by a millisecond with each call.
func clockAt(at time.Time) func() time.Time { return testutil.Clock(at, time.Millisecond) }

func fixedOptions() *coppice.Options {
	return &coppice.Options{Now: clock(), Rand: rand.NewChaCha8([32]byte{7}), Writer: "test"}
}

// backends are the stores that every behaviour holds on.
var backends = map[string]func(t *testing.T) backend.Backend{
	"replace": func(*testing.T) backend.Backend { return memory.New() },
	"append":  func(*testing.T) backend.Backend { return memory.NewAppender() },
	"local": func(t *testing.T) backend.Backend {
		b, err := local.Open(t.TempDir(), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close() })
		return b
	},
}

// onEach runs a test on every kind of store.
func onEach(t *testing.T, f func(t *testing.T, s *coppice.Store)) {
	t.Helper()
	for name, open := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, newStore(t, open(t), nil))
		})
	}
}

func newStore(t testing.TB, b backend.Backend, o *coppice.Options) *coppice.Store {
	t.Helper()
	if o == nil {
		o = fixedOptions()
	}
	s, err := coppice.New(b, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func create(t testing.TB, s *coppice.Store, id string, o *coppice.SessionOptions) *coppice.Session {
	t.Helper()
	return must(s.Create(id, o))(t)
}

func open(t testing.TB, s *coppice.Store, id string) *coppice.Session {
	t.Helper()
	return must(s.Open(context.Background(), id, nil))(t)
}

// say appends user and assistant messages in turn, and commits nothing. The first is a user's.
func say(t testing.TB, s *coppice.Session, texts ...string) []string {
	t.Helper()
	var d []transcript.Draft
	for _, text := range texts {
		if strings.HasPrefix(text, "a") {
			d = append(d, entry.Assistant(text))
		} else {
			d = append(d, entry.User(text))
		}
	}
	return must(s.Append(context.Background(), d...))(t)
}

func commit(t testing.TB, s *coppice.Session, v any) coppice.Receipt {
	t.Helper()
	return must(s.Commit(context.Background(), coppice.Turn{State: v}))(t)
}

// texts are those of the context's messages.
func texts(t testing.TB, s interface {
	Context(context.Context) (transcript.Context, error)
},
) string {
	t.Helper()
	c := must(s.Context(context.Background()))(t)
	var list []string
	for _, m := range c.Messages {
		list = append(list, m.Text())
	}
	return strings.Join(list, " ")
}

// stateOf is the state of a session or a view; Turns is -1 where there is none.
func stateOf(t testing.TB, s interface{ State(any) error }) state {
	t.Helper()
	v := state{Turns: -1}
	ok(t, s.State(&v))
	return v
}

func collect[T any](t testing.TB, seq iter.Seq2[T, error]) []T {
	t.Helper()
	var list []T
	for v, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, v)
	}
	return list
}

func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s: got %s, want %s", what, g, w)
	}
}

// ids of entries.
func ids(list []transcript.Entry) []string {
	var out []string
	for _, e := range list {
		out = append(out, e.ID)
	}
	return out
}

func itemOf(message string) transcript.Item {
	return transcript.Item{Message: json.RawMessage(message)}
}

func itemFor(entry string) transcript.Item { return transcript.Item{Entry: entry} }

// setSleep replaces how a store waits: between tries, and between two looks of Watch.
func setSleep(s *coppice.Store, f func(ctx context.Context) error) {
	seam.Config(s).Sleep = func(ctx context.Context, _ time.Duration) error { return f(ctx) }
}

// inline makes the handles of a store do background work within a commit: what they write does not depend on how far a
// goroutine has come.
func inline(s *coppice.Store) { seam.Config(s).Go = func(job func()) { job() } }

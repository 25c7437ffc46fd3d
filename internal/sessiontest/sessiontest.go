// Package sessiontest has what tests of sessions share that use the public API: stores of every kind, turns of a
// talkative agent, and comparisons.
package sessiontest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/seam"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop/pi"
	"github.com/coppice-go/coppice/transcript"
)

// State is what the agents of these tests keep.
type State struct {
	Turns int    `json:"turns"`
	Note  string `json:"note,omitempty"`
}

// Clock returns times a millisecond apart.
func Clock() func() time.Time { return ClockAt(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)) }

// ClockAt returns a clock that starts at a time and advances by a millisecond with each call.
func ClockAt(at time.Time) func() time.Time { return testutil.Clock(at, time.Millisecond) }

// Options are those of a store whose clock and randomness are the same in every run.
func Options() *coppice.Options {
	return &coppice.Options{Now: Clock(), Rand: rand.NewChaCha8([32]byte{7}), Writer: "test"}
}

// Backends are the stores that every behaviour holds on.
var Backends = map[string]func(t *testing.T) backend.Backend{
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

// OnEach runs a test on every kind of store.
func OnEach(t *testing.T, f func(t *testing.T, s *coppice.Store)) {
	t.Helper()
	for name, open := range Backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, NewStore(t, open(t), nil))
		})
	}
}

// NewStore returns a store on b; with nil options those of Options.
func NewStore(t testing.TB, b backend.Backend, o *coppice.Options) *coppice.Store {
	t.Helper()
	if o == nil {
		o = Options()
	}
	s, err := coppice.New(b, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Create returns a handle on a new session.
func Create(t testing.TB, s *coppice.Store, id string, o *coppice.SessionOptions) *coppice.Session {
	t.Helper()
	return testutil.Must(s.Create(id, o))(t)
}

// Open opens a session.
func Open(t testing.TB, s *coppice.Store, id string) *coppice.Session {
	t.Helper()
	return testutil.Must(s.Open(context.Background(), id, nil))(t)
}

// Say appends user and assistant messages in turn, and commits nothing. The first is a user's.
func Say(t testing.TB, s *coppice.Session, texts ...string) []string {
	t.Helper()
	var d []transcript.Draft
	for _, text := range texts {
		if strings.HasPrefix(text, "a") {
			d = append(d, entry.Assistant(text))
		} else {
			d = append(d, entry.User(text))
		}
	}
	return testutil.Must(s.Append(context.Background(), d...))(t)
}

// Commit commits what was appended with a state; nil = unchanged.
func Commit(t testing.TB, s *coppice.Session, v any) coppice.Receipt {
	t.Helper()
	return testutil.Must(s.Commit(context.Background(), coppice.Turn{State: v}))(t)
}

// Texts are those of the context's messages.
func Texts(t testing.TB, s interface {
	Context(context.Context) (transcript.Context, error)
},
) string {
	t.Helper()
	c := testutil.Must(s.Context(context.Background()))(t)
	var list []string
	for _, m := range c.Messages {
		list = append(list, m.Text())
	}
	return strings.Join(list, " ")
}

// StateOf is the state of a session or a view; Turns is -1 where there is none.
func StateOf(t testing.TB, s interface{ State(any) error }) State {
	t.Helper()
	v := State{Turns: -1}
	testutil.OK(t, s.State(&v))
	return v
}

// Collect returns all that an iterator yields.
func Collect[T any](t testing.TB, seq iter.Seq2[T, error]) []T {
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

// Same fails unless two values are printed alike.
func Same(t testing.TB, what string, got, want any) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s: got %s, want %s", what, g, w)
	}
}

// IDs of entries.
func IDs(list []transcript.Entry) []string {
	var out []string
	for _, e := range list {
		out = append(out, e.ID)
	}
	return out
}

// Inline returns an item of an explicit context with a message of its own.
func Inline(message string) transcript.Item {
	return transcript.Item{Message: json.RawMessage(message)}
}

// Item returns an item of an explicit context that names an entry.
func Item(entry string) transcript.Item { return transcript.Item{Entry: entry} }

// SetSleep replaces how a store waits: between tries, and between two looks of Watch.
func SetSleep(s *coppice.Store, f func(ctx context.Context) error) {
	seam.Config(s).Sleep = func(ctx context.Context, _ time.Duration) error { return f(ctx) }
}

// RunInline makes the handles of a store do background work within a commit: what they write does not depend on how far
// a goroutine has come.
func RunInline(s *coppice.Store) { seam.Config(s).Go = func(job func()) { job() } }

// Appends reports whether a store of this kind has a log and not only the checkpoint.
func Appends(b backend.Backend) bool {
	_, is := b.(backend.Appender)
	return is
}

// Everything is the texts of all messages of a session in append order, on whatever branch.
func Everything(t testing.TB, s *coppice.Session) string {
	t.Helper()
	var list []string
	for _, e := range Collect(t, s.Entries(context.Background())) {
		if m, is := e.Message(); is {
			list = append(list, m.Text())
		}
	}
	return strings.Join(list, " ")
}

// History is the commits of a session, newest first.
func History(t testing.TB, s *coppice.Session) []checkpoint.Commit {
	t.Helper()
	return Collect(t, s.Log(context.Background(), coppice.Target{}))
}

// IsErr fails unless err is the one that is wanted.
func IsErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

// Line returns the context and the state at the end of a branch.
func Line(t *testing.T, s *coppice.Session, branch string) (string, State) {
	t.Helper()
	var at coppice.Target
	testutil.OK(t, at.UnmarshalText([]byte(branch)))
	view := testutil.Must(s.At(context.Background(), at))(t)
	return Texts(t, view), StateOf(t, view)
}

// Objects are all that a backend holds, as it is stored.
func Objects(t testing.TB, b backend.Backend) map[string]string {
	t.Helper()
	all := map[string]string{}
	for info := range maps.Keys(maps.Collect(b.List(context.Background(), backend.ListOptions{}))) {
		p, _, err := b.Get(context.Background(), info.Key, backend.Range{})
		testutil.OK(t, err)
		all[info.Key] = string(p)
	}
	return all
}

// OnEachBackend runs a test on every kind of store, for those that look below it.
func OnEachBackend(t *testing.T, f func(t *testing.T, b backend.Backend)) {
	t.Helper()
	for name, open := range Backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, open(t))
		})
	}
}

// Bulk commits one turn of n entries.
func Bulk(t testing.TB, s *coppice.Session, turn, n int) {
	t.Helper()
	d := make([]transcript.Draft, n)
	for i := range d {
		d[i] = entry.User(fmt.Sprintf("%d-%d", turn, i))
	}
	testutil.Must(s.Append(context.Background(), d...))(t)
	Commit(t, s, State{Turns: turn})
}

// Image returns a message with an image that is stored apart; those of different n differ.
func Image(n int) transcript.Draft {
	return entry.User("look", entry.Image("image/png", bytes.Repeat([]byte{byte(n), 1, 2, 3}, 20_000)))
}

// KeysIn are the keys of one kind of object.
func KeysIn(t testing.TB, b backend.Backend, folder string) []string {
	t.Helper()
	var list []string
	for info, err := range b.List(context.Background(), backend.ListOptions{}) {
		testutil.OK(t, err)
		if strings.Contains(info.Key, folder) {
			list = append(list, info.Key)
		}
	}
	return list
}

// PutIn picks the PUTs of one kind of object.
func PutIn(folder string) func(fault.Call) bool {
	return func(c fault.Call) bool { return c.Op == "put" && strings.Contains(c.Key, folder) }
}

// Sound checks that nothing of a store is damaged, and counts what is left over.
func Sound(t testing.TB, s *coppice.Store) (leftovers int) {
	t.Helper()
	for _, p := range testutil.Must(s.Verify(context.Background(), "", true))(t).Problems {
		if errors.Is(p, coppice.ErrCorrupt) {
			t.Errorf("verify: %v", p)
		}
		if p.Kind() == "leftover" {
			leftovers++
		}
	}
	return leftovers
}

// Faulty is a store of either kind whose backend fails on demand.
func Faulty(t *testing.T, kind string) (*coppice.Store, fault.Backend) {
	t.Helper()
	b := fault.New(Backends[kind](t), 1)
	return NewStore(t, b, nil), b
}

// Writes reports whether a call writes to a log or replaces an object.
func Writes(c fault.Call) bool { return c.Op == "put" || c.Op == "append" }

// Cost is what a call asked of the backend, as text: "1 get 1 put".
func Cost(io backend.IO) string {
	var list []string
	for _, c := range []struct {
		n    int
		name string
	}{
		{io.Get, "get"},
		{io.Put, "put"},
		{io.Append, "append"},
		{io.Stat, "stat"},
		{io.List, "list"},
		{io.Delete, "delete"},
	} {
		if c.n > 0 {
			list = append(list, fmt.Sprint(c.n, " ", c.name))
		}
	}
	return cmp.Or(strings.Join(list, " "), "none")
}

// FileLines reads a session file as an importer does.
func FileLines(raw []byte) (iter.Seq2[transcript.Draft, error], *coppice.SessionOptions) {
	f := pi.NewReader(bytes.NewReader(raw), Clock()())
	o := &coppice.SessionOptions{Original: func() (io.Reader, error) {
		if f.Verbatim() {
			return nil, nil
		}
		return bytes.NewReader(raw), nil
	}}
	return func(yield func(transcript.Draft, error) bool) {
		h, err := f.Header()
		if err != nil {
			yield(transcript.Draft{}, err)
			return
		}
		if !yield(entry.Line(h.Raw), nil) {
			return
		}
		for {
			d, err := f.Next()
			if errors.Is(err, io.EOF) || !yield(d, err) || err != nil {
				return
			}
		}
	}, o
}

// PiLine returns a line of a user message in the pi v3 form.
func PiLine(id, parent, text string) string {
	if parent != "null" {
		parent = `"` + parent + `"`
	}
	return fmt.Sprintf(`{"type":"message","id":"%s","parentId":%s,"timestamp":"2026-01-01T00:00:01.000Z",`+
		`"message":{"role":"user","content":"%s"},"own":[1, 2.50]}`, id, parent, text)
}

// Grown is a session with n turns of one user and one assistant message each; state counts them.
func Grown(
	t testing.TB, store *coppice.Store, id string, n int, o *coppice.SessionOptions,
) (*coppice.Session, []coppice.Receipt) {
	t.Helper()
	s := Create(t, store, id, o)
	var receipts []coppice.Receipt
	for i := 1; i <= n; i++ {
		Say(t, s, fmt.Sprintf("u%d", i), fmt.Sprintf("a%d", i))
		receipts = append(receipts, Commit(t, s, State{Turns: i}))
	}
	return s, receipts
}

// Header is the header line of a session file in the pi v3 form.
const Header = `{"type":"session","version":3,"id":"old-id","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w",` +
	`"title":"the title","extra":1}`

// LatestKey is the key of the checkpoint of session s.
const LatestKey = "checkpoint_latest/s"

// FileOf is a file of messages, each behind the one before, told apart by how they begin.
func FileOf(text string, n int) []byte {
	raw := []byte(`{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}` + "\n")
	parent := "null"
	for i := range n {
		raw = fmt.Appendf(raw, `{"type":"message","id":"m%d","parentId":%s,"timestamp":"2026-01-01T00:00:01.000Z",`+
			`"message":{"role":"user","content":"%s %d","timestamp":1}}`+"\n", i, parent, text, i)
		parent = fmt.Sprintf(`"m%d"`, i)
	}
	return raw
}

// InMemory runs a test on both strategies, without a disk: these have thousands of commits.
func InMemory(t *testing.T, f func(t *testing.T, s *coppice.Store)) {
	t.Helper()
	for name, b := range map[string]backend.Backend{"replace": memory.New(), "append": memory.NewAppender()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, NewStore(t, b, nil))
		})
	}
}

// Known sets the rule for known ids of drafts, and returns them.
func Known(rule transcript.KnownID, drafts ...transcript.Draft) []transcript.Draft {
	for i := range drafts {
		drafts[i].OnKnownID = rule
	}
	return drafts
}

// Drafts are messages.
func Drafts(texts ...string) (list []transcript.Draft) {
	for _, text := range texts {
		if strings.HasPrefix(text, "a") {
			list = append(list, entry.Assistant(text))
		} else {
			list = append(list, entry.User(text))
		}
	}
	return list
}

// OnBase returns a turn of one message, made on a commit.
func OnBase(base, text string, keep bool) coppice.Turn {
	return coppice.Turn{
		Base: base, KeepBoth: keep, State: State{Note: text}, Entries: []transcript.Draft{entry.User(text)},
	}
}

// SetInfo changes what a session is known by.
func SetInfo(t testing.TB, s *coppice.Session, c coppice.InfoChange) coppice.Receipt {
	t.Helper()
	return testutil.Must(s.SetInfo(context.Background(), c))(t)
}

// Exported returns the bytes that f exports of a session.
func Exported(t testing.TB, f func(ctx context.Context, id string, w io.Writer) error, id string) string {
	t.Helper()
	var out bytes.Buffer
	testutil.OK(t, f(context.Background(), id, &out))
	return out.String()
}

// ImportFile imports a file in the pi v3 form.
func ImportFile(t testing.TB, store *coppice.Store, raw []byte) *coppice.Session {
	t.Helper()
	lines, o := FileLines(raw)
	return testutil.Must(store.Import(context.Background(), lines, o))(t)
}

// Counting counts the reads of a store, on which it only replaces objects.
type Counting struct {
	backend.Backend
	Gets atomic.Int64
}

// Get counts a read.
func (c *Counting) Get(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	c.Gets.Add(1)
	return c.Backend.Get(ctx, key, r)
}

package coppice_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/testutil"
)

// heldClock stands still until a test moves it on.
type heldClock struct{ at time.Time }

func (c *heldClock) now() time.Time { return c.at }

// drawn is a test of a property as the helpers of other tests take it: what fails is made smaller.
type drawn struct {
	testing.TB
	t *rapid.T
}

func (d drawn) Helper()                           { d.t.Helper() }
func (d drawn) Errorf(format string, args ...any) { d.t.Errorf(format, args...) }
func (d drawn) Fatalf(format string, args ...any) { d.t.Fatalf(format, args...) }
func (d drawn) Fatal(args ...any)                 { d.t.Fatal(args...) }

// streamModel says what two writers who stream, commit, label, reload and come again leave behind.
type streamModel struct {
	store *coppice.Store
	clock *heldClock
	hs    [2]*coppice.Session

	line    int    // turns so far
	durable string // partial output in the document; "" = none
	at      [2]int // the line that each handle knows
	known   [2]string
	text    string // in memory; "" = none
	owner   int
	cut     bool // a turn was begun since text was set
	since   time.Time
	n       int
}

func (m *streamModel) learn(i int) { m.at[i], m.known[i] = m.line, m.durable }

func (m *streamModel) partial(t testing.TB, i int) {
	m.n++
	text := fmt.Sprintf(`{"n":%d}`, m.n)
	ok(t, m.hs[i].Partial(bg, json.RawMessage(text)))
	if m.text == "" || m.cut {
		m.since = m.clock.at
	}
	m.text, m.owner, m.cut = text, i, false
	if m.clock.at.Sub(m.since) < 2*time.Second {
		return
	}
	m.since = m.clock.at
	if m.at[i] == m.line {
		m.durable = text
		m.learn(i)
	}
}

func (m *streamModel) clear(t testing.TB, i int) {
	ok(t, m.hs[i].Partial(bg, nil))
	m.text = ""
	if m.known[i] != "" && m.at[i] == m.line {
		m.durable = ""
		m.learn(i)
	}
}

// lost reports what a commit of a handle met, which is a conflict iff it is behind, and has it take the newest state.
func (m *streamModel) lost(t testing.TB, i int, err error) bool {
	if behind := m.at[i] != m.line; behind != errors.Is(err, coppice.ErrConflict) || !behind && err != nil {
		t.Fatalf("behind: %v, and the commit: %v", behind, err)
	}
	if err != nil {
		m.reload(t, i)
	}
	return err != nil
}

func (m *streamModel) turn(t testing.TB, i int, say bool) {
	if say {
		_, err := m.hs[i].Append(bg, drafts("u")...)
		ok(t, err)
	}
	m.n++
	m.cut = true
	_, err := m.hs[i].Commit(bg, coppice.Turn{State: state{Turns: m.n}})
	if m.lost(t, i, err) {
		return
	}
	m.line++
	m.durable, m.text = "", ""
	m.learn(i)
}

func (m *streamModel) label(t testing.TB, i int) {
	_, err := m.hs[i].Label(bg, m.hs[i].Head().Entry, "x")
	if !m.lost(t, i, err) {
		m.learn(i)
	}
}

func (m *streamModel) gone(i int) {
	if m.owner == i {
		m.text = ""
	}
	m.learn(i)
}

func (m *streamModel) reload(t testing.TB, i int) {
	ok(t, m.hs[i].Reload(bg))
	m.gone(i)
}

func (m *streamModel) reopen(t testing.TB, i int) {
	ok(t, m.hs[i].Close())
	s, err := m.store.Open(bg, "s", streaming)
	ok(t, err)
	m.hs[i] = s
	m.gone(i)
}

// check compares the model with what a fresh handle resumes with and sees.
func (m *streamModel) check(t testing.TB) {
	s, err := m.store.Open(bg, "s", nil)
	ok(t, err)
	same(t, "durable", string(s.Interrupted()), m.durable)
	want, got := m.text, ""
	if want == "" {
		want = m.durable
	}
	for c := range s.WatchPartial(bg, s.Head().Seq) { // its first sleep fails
		got += string(c.Partial)
	}
	same(t, "seen", got, want)
	ok(t, s.Close())
	for i := range m.hs {
		same(t, "known", string(m.hs[i].Interrupted()), m.known[i])
	}
}

// Random partial output, turns, labels, new handles and a second writer leave what the model says.
func TestPartialModel(t *testing.T) {
	for kind, open := range map[string]func() backend.Backend{
		"replace": func() backend.Backend { return memory.New() },
		"append":  func() backend.Backend { return memory.NewAppender() },
	} {
		t.Run(kind, func(t *testing.T) {
			testutil.SkipSizes(t)
			rapid.Check(t, func(draws *rapid.T) {
				rt := drawn{t, draws}
				clock := &heldClock{time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)}
				o := &coppice.Options{Now: clock.now, Rand: rand.NewChaCha8([32]byte{7}), Writer: "test"}
				m := &streamModel{store: newStore(rt, open(), o), clock: clock, n: 100}
				coppice.Inline(m.store)
				coppice.SetSleep(m.store, func(context.Context) error { return errors.New("enough") })
				first, _ := grown(rt, m.store, "s", 1, streaming)
				second, err := m.store.Open(bg, "s", streaming)
				ok(rt, err)
				m.hs = [2]*coppice.Session{first, second}
				for range rapid.IntRange(1, 25).Draw(draws, "steps") {
					i := rapid.IntRange(0, 1).Draw(draws, "handle")
					switch rapid.IntRange(0, 9).Draw(draws, "step") {
					case 0, 1, 2:
						m.partial(rt, i)
					case 3:
						clock.at = clock.at.Add(1500 * time.Millisecond)
					case 4:
						clock.at = clock.at.Add(3 * time.Second)
						m.partial(rt, i)
					case 5:
						m.turn(rt, i, rapid.Bool().Draw(draws, "say"))
					case 6:
						m.label(rt, i)
					case 7:
						m.reload(rt, i)
					case 8:
						m.reopen(rt, i)
					case 9:
						m.clear(rt, i)
					}
					m.check(rt)
				}
				r, err := m.store.Verify(bg, "s", true)
				ok(rt, err)
				same(rt, "problems", len(r.Problems), 0)
			})
		})
	}
}

// One goroutine streams, one commits, one watches: the turns are all there, and none of them meets a conflict. The
// watcher sees nothing that is streamed after the last turn.
func TestPartialRace(t *testing.T) {
	for kind := range backends {
		t.Run(kind, func(t *testing.T) {
			o := fixedOptions()
			o.Now = clockEvery(time.Second)
			store := newStore(t, backends[kind](t), o)
			s := create(t, store, "s", streaming)
			say(t, s, "u")
			commit(t, s, nil)
			w := watchPartial(must(store.Open(bg, "s", &coppice.SessionOptions{ReadOnly: true}))(t))
			streamed, ended := make(chan struct{}), make(chan string, 1)
			go func() {
				for text := range w.changes {
					if text == `partial "the last"` {
						close(streamed)
						break
					}
				}
				ended <- <-w.changes + ", " + <-w.changes
			}()
			const turns = 30
			var wg sync.WaitGroup
			wg.Go(func() {
				for i := range 20 * turns {
					if err := s.Partial(bg, json.RawMessage(fmt.Sprint(i))); err != nil {
						t.Error(err)
					}
				}
			})
			wg.Go(func() {
				for i := range turns {
					if _, err := s.Commit(bg, coppice.Turn{Entries: drafts("a"), State: state{Turns: i}}); err != nil {
						t.Error(err)
					}
				}
			})
			wg.Wait()
			ok(t, s.Partial(bg, json.RawMessage(`"the last"`)))
			<-streamed
			say(t, s, "a")
			must(s.Commit(bg, coppice.Turn{Reason: "last"}))(t)
			same(t, "seen", <-ended, "last 1, partial ")
			w.ends(t)
			ok(t, s.Close())
			same(t, "durable", interrupted(t, store, "s"), "")
			same(t, "path", len(collect(t, open(t, store, "s").Path(bg, ""))), turns+2)
		})
	}
}

// clockEvery returns a clock that moves on by step with each call.
func clockEvery(step time.Duration) func() time.Time {
	var mu sync.Mutex
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		at = at.Add(step)
		return at
	}
}

// A session without partial output has the bytes and makes the requests of the release before partial output: the sums
// are of that one.
func TestNoPartialNoCost(t *testing.T) {
	for kind, want := range map[string]string{"replace": "ed3c686dfdcecf21", "append": "5b020738eac12ed1"} {
		t.Run(kind, func(t *testing.T) {
			b := backends[kind](t)
			o := fixedOptions()
			o.Now = clockEvery(time.Millisecond)
			store := newStore(t, b, o)
			coppice.Inline(store)
			s, rs := grown(t, store, "s", 3, nil)
			must(s.Label(bg, rs[0].Entry, "x"))(t)
			must(s.Branch(bg, rs[1].Entry, &coppice.BranchOptions{Name: "side"}))(t)
			say(t, s, "u")
			must(s.Commit(bg, coppice.Turn{Key: "k", State: state{Note: strings.Repeat("n", 5000)}}))(t)
			must(s.Commit(bg, coppice.Turn{State: state{Note: strings.Repeat("n", 5001)}}))(t)
			must(s.Rollback(bg, coppice.Target{Seq: 2}))(t)
			must(s.Claim(bg))(t)
			sum := sha256.New()
			fmt.Fprintln(sum, cost(s.IO()))
			ok(t, s.Close())
			for info, err := range b.List(bg, backend.ListOptions{}) {
				ok(t, err)
				p, _, err := b.Get(bg, info.Key, backend.Range{})
				ok(t, err)
				addUncompressed(t, sum, info.Key, p)
			}
			same(t, "sum of requests and bytes", hex.EncodeToString(sum.Sum(nil)[:8]), want)
		})
	}
}

// addUncompressed adds an object to a sum: of a checkpoint what is in it, since compressors change.
func addUncompressed(t *testing.T, sum hash.Hash, key string, p []byte) {
	t.Helper()
	if !strings.HasPrefix(key, "checkpoint_latest/") {
		fmt.Fprintf(sum, "%s\n%s\n", key, p)
		return
	}
	o, err := checkpoint.DecodeObject(p)
	ok(t, err)
	fmt.Fprintf(sum, "%s\n%s\n%s\n%+v\n", key, o.Document, o.Header, o.Summary.Head)
	for _, line := range o.Tail.Lines {
		fmt.Fprintf(sum, "%s\n", line)
	}
}

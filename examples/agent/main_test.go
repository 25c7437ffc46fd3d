package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/transcript"
)

var prompts = []string{"list the files", "and again"}

// host is a process that dies at its nth external call: a request to the store, a question to the model, or a tool. Its
// work between two calls is not visible, so these are all the moments at which it can die.
type host struct {
	t    *testing.T
	left int                // calls until it dies
	kind fault.Kind         // of the last one: it does not happen, or it does and the host does not get the answer
	ran  map[string]int     // how often a tool ran, by its key
	used *int               // questions that the model answered, of all hosts
	die  context.CancelFunc // so that a dead host does not retry endlessly
}

func (h *host) dead() bool { return h.left < 0 }

// meets counts an external call, and reports whether it happens.
func (h *host) meets() bool {
	h.left--
	happens := !h.dead() || h.left == -1 && h.kind == fault.After
	if h.dead() && !happens {
		h.die()
	}
	return happens
}

// store is a backend under a host: its last request ends before the host dies.
type store struct {
	backend.Backend
	h *host
}

func (s store) Put(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
	defer s.ends()
	return s.Backend.Put(ctx, key, p, c)
}

func (s store) Get(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	defer s.ends()
	return s.Backend.Get(ctx, key, r)
}

func (s store) ends() {
	if s.h.dead() {
		s.h.die()
	}
}

// logged is the same for a backend that appends. Only its methods that store lacks are promoted: they are embedded
// deeper.
type logged struct {
	store
	below
}

type (
	below    struct{ appender }
	appender struct{ backend.Appender }
)

func (l logged) Append(ctx context.Context, key string, off int64, p []byte) (backend.Info, error) {
	defer l.ends()
	return l.below.Append(ctx, key, off, p)
}

// works makes the host do all its work on a store.
func (h *host) works(b backend.Backend) error {
	under := backend.Backend(store{b, h})
	if a, ok := b.(backend.Appender); ok {
		under = logged{store{b, h}, below{appender{a}}}
	}
	f := fault.New(under, 1,
		fault.Rule{When: func(fault.Call) bool { happens := h.meets(); return h.dead() && happens }, Kind: fault.After},
		fault.Rule{When: func(fault.Call) bool { return h.dead() }, Count: -1, Outcome: backend.NotApplied})
	opened, err := coppice.New(f, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, die := context.WithCancel(context.Background())
	h.die = die
	defer die()
	a := agent{
		model: func(m []transcript.Message) (json.RawMessage, []transcript.ToolCall) {
			if h.meets() {
				*h.used++
			}
			return model(m)
		},
		tool: func(key string, c transcript.ToolCall) (string, bool) {
			if h.meets() {
				h.ran[key]++
			}
			return tool(key, c)
		},
	}
	return a.work(ctx, opened, "s", prompts) // the store is not closed: a dead process closes nothing
}

// Wherever a host dies, the next one resumes: each prompt is asked once and answered once, each call has one result, no
// tool runs twice for one call, and nothing that the first host stored is lost.
func TestKilledAnywhere(t *testing.T) {
	for name, open := range map[string]func() backend.Backend{
		"replace": func() backend.Backend { return memory.New() },
		"append":  func() backend.Backend { return memory.NewAppender() },
	} {
		for _, kind := range []fault.Kind{fault.Before, fault.After} {
			t.Run(fmt.Sprintf("%s/%v", name, kind), func(t *testing.T) {
				again, places := 0, 0
				for ended := false; !ended; places++ {
					b, ran, used := open(), map[string]int{}, 0
					ended = (&host{t: t, left: places, kind: kind, ran: ran, used: &used}).works(b) == nil
					if err := (&host{t: t, left: 1 << 20, ran: ran, used: &used}).works(b); err != nil {
						t.Fatalf("the host after one that died at contact %d: %v", places, err)
					}
					whole(t, b, ran)
					if used > 2*len(prompts) {
						again++
					}
					if places == 1000 {
						t.Fatal("the agent does not end")
					}
				}
				t.Logf("died at %d places; the model was asked again after %d of them, a tool was run again after none",
					places, again)
			})
		}
	}
}

// whole checks the session of an agent that answered every prompt.
func whole(t *testing.T, b backend.Backend, ran map[string]int) {
	t.Helper()
	store, err := coppice.New(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	s, err := store.Open(ctx, "s", nil)
	if err != nil {
		t.Fatal(err)
	}
	var st State
	if err := s.State(&st); err != nil || st.Asked != len(prompts) || st.Turns != len(prompts) {
		t.Errorf("state %+v, %v", st, err)
	}
	c, err := s.Context(ctx)
	if err != nil || len(c.OpenCalls) > 0 {
		t.Errorf("open calls %v, %v", c.OpenCalls, err)
	}
	asked, answered, calls, results := []string{}, 0, map[string]int{}, map[string]int{}
	entries := 0
	for e, err := range s.Entries(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		m, ok := e.Message()
		if !ok {
			continue
		}
		entries++
		switch found := transcript.Inspect(m.Raw); {
		case m.Role == "user":
			asked = append(asked, m.Text())
		case m.Role == "toolResult":
			results[found.Results[0]]++
		case len(found.Calls) > 0:
			calls[found.Calls[0].ID]++
		default:
			answered++
		}
	}
	if strings.Join(asked, "|") != strings.Join(prompts, "|") || answered != len(prompts) || entries != len(c.Messages) {
		t.Errorf("asked %q, %d answers, %d messages of %d on the path", asked, answered, len(c.Messages), entries)
	}
	for id, n := range calls {
		if n != 1 || results[id] != 1 {
			t.Errorf("call %s is there %d times, with %d results", id, n, results[id])
		}
	}
	for key, n := range ran {
		if n > 1 {
			t.Errorf("tool call %s ran %d times", key, n)
		}
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

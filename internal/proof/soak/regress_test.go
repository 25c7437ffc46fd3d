package soak

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/layout"
)

// A session is created on a disk, and the answer is lost: whatever the outcome of the next tries, and whichever writer
// continues the session meanwhile, the first turn is acknowledged or in doubt. It was once reported as not applied
// (I2).
func TestCreationInDoubt(t *testing.T) {
	log := fault.On("put", layout.Sessions)
	lost := fault.Rule{When: log, Kind: fault.After}
	refused := func(skip int) fault.Rule {
		return fault.Rule{When: log, Skip: skip, Kind: fault.Before, Outcome: backend.NotApplied}
	}
	for name, rules := range map[string]func(others func()) []fault.Rule{
		"the second try is refused":             func(func()) []fault.Rule { return []fault.Rule{lost, refused(0)} },
		"the third try is refused":              func(func()) []fault.Rule { return []fault.Rule{lost, refused(1)} },
		"another goes on before the second try": func(others func()) []fault.Rule { return []fault.Rule{lost, {When: at(2, others), Chance: 1e-300}} },
		"another goes on before the third try":  func(others func()) []fault.Rule { return []fault.Rule{lost, {When: at(3, others), Chance: 1e-300}} },
		"the look at what is there fails": func(func()) []fault.Rule {
			return []fault.Rule{lost, {When: fault.On("get", layout.Sessions), Skip: 1, Count: -1, Kind: fault.Before}}
		},
		"what is there is read, and nothing after it": func(func()) []fault.Rule {
			return []fault.Rule{lost, {When: log, Skip: 1, Count: -1, Kind: fault.Before, Outcome: backend.NotApplied}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inner := memory.NewAppender()
			f := fault.New(inner, 1)
			f.Add(rules(func() { more(t, inner) })...)
			err := first(t, f)
			f.Clear()
			if err != nil && !errors.Is(err, coppice.ErrCommitUnknown) && there(t, inner) {
				t.Errorf("the turn is in force, and its writer was told: %v", err)
			}
		})
	}
}

// at calls f before the n-th put of an object of a session.
func at(n int, f func()) func(fault.Call) bool {
	log := fault.On("put", layout.Sessions)
	seen := 0
	return func(c fault.Call) bool {
		if !log(c) {
			return false
		}
		if seen++; seen == n-1 { // the first was that of the lost answer
			f()
		}
		return true
	}
}

// first creates the session by its first turn.
func first(t *testing.T, b backend.Backend) error {
	st, err := coppice.New(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := st.Create("s", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), entry.User("first")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // otherwise it would retry for long
	defer cancel()
	_, err = s.Commit(ctx, coppice.Turn{State: 1})
	if errors.Is(err, coppice.ErrCommitUnknown) {
		if _, again := s.Settle(t.Context(), ""); again == nil {
			return nil
		}
	}
	return err
}

// more is another writer's turn.
func more(t *testing.T, b backend.Backend) {
	st, err := coppice.New(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := st.Open(t.Context(), "s", nil)
	if err == nil {
		_, err = s.Append(t.Context(), entry.User("second"))
	}
	if err == nil {
		_, err = s.Commit(t.Context(), coppice.Turn{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// there reports whether the first turn is in the history.
func there(t *testing.T, b backend.Backend) bool {
	st, err := coppice.New(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := st.Open(t.Context(), "s", nil)
	if err != nil {
		return false
	}
	for e, err := range s.Entries(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if m, ok := e.Message(); ok && m.Text() == "first" {
			return true
		}
	}
	return false
}

// A session is opened on a disk while its writer seals the log that is being read: the session exists. It was once
// reported as missing.
func TestOpenWhileTheLogIsSealed(t *testing.T) {
	inner := memory.NewAppender()
	writer := func(turns, entries int) {
		st, err := coppice.New(inner, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := st.OpenOrCreate(t.Context(), "s", nil)
		for range turns {
			for range entries {
				if err == nil {
					_, err = s.Append(t.Context(), entry.User("text"))
				}
			}
			if err == nil {
				_, err = s.Commit(t.Context(), coppice.Turn{State: turns})
			}
		}
		if err == nil && entries > 1 {
			err = s.Close() // otherwise it dies, and its turns are in the log only
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	writer(1, 2)
	writer(3, 1)
	looks := 0
	f := fault.New(inner, 1, fault.Rule{Count: -1, Chance: 1e-300, When: func(c fault.Call) bool {
		if c.Op == "get" && strings.HasSuffix(c.Key, ".jsonl") {
			if looks++; looks == 2 {
				writer(40, 200)
			}
		}
		return true
	}})
	st, err := coppice.New(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Open(t.Context(), "s", nil); err != nil || looks < 2 {
		t.Errorf("opened with %d looks at the log: %v", looks, err)
	}
}

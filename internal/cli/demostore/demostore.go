// Package demostore makes the store that `coppice serve --demo` shows: sessions of a small team that works on
// tideline, a command that predicts tides. The bundled session (package examples/session) is committed step by step,
// as its agent would have done it, with the agent's state at every commit. So the store has what a viewer can
// show: patches of the state, snapshots, a rollback and the line that it left, versions of messages, a turn that lost
// against another writer and was kept, agents that were started by agents, a compaction, labels, an image, cost.
//
// A child session names the call that started it: its relation is "agent", and its metadata has the id of the tool
// call under "call" and a name under "agent". The result of that call has the session's id in details.session.
package demostore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/snapshot"
)

// The writers of the demo, in the form of the default of coppice.Options.Writer.
const (
	mara  = "mara-desktop:4711"
	fiona = "fiona-laptop:2201"
)

const cwd = "/home/mara/src/tideline"

// snapshots are taken where they mean something: not by count.
var snapshots = snapshot.Policy{Every: -1, BeforeCompaction: true}

// Content names the sessions of a demo store by their ids.
type Content struct {
	Main   string   // the bundled session and what follows it
	Agents []string // those that agents began: two of Main, then one of the second of these
	Fork   string   // of Main, at its release
	Gauge  string   // that Live continues
}

// Build writes the demo's sessions to a store that has none, in some 250 commits. The times are those of the bundled
// session; all randomness comes from r. With equal bytes of r, sessions, entries and states are equal; ids of commits
// of the main session may differ, because work in the background draws random bytes too.
func Build(ctx context.Context, b backend.Backend, r io.Reader) (Content, error) {
	d := &demo{b: b, rand: r, clock: &clock{}}
	var err error
	for _, part := range []func(context.Context) error{d.replay, d.delegate, d.fork, d.gauge} {
		if err == nil {
			err = part(ctx)
		}
	}
	for _, st := range d.stores {
		err = errors.Join(err, st.Close())
	}
	if err != nil {
		return Content{}, fmt.Errorf("make the demo: %w", err)
	}
	return d.content, nil
}

// demo is a demo store that is being made.
type demo struct {
	b       backend.Backend
	rand    io.Reader
	clock   *clock
	stores  []*coppice.Store
	main    *writer
	content Content
}

// open opens the store as a writer of the demo, with a generator of its own: what others draw has no effect on it.
func (d *demo) open(name string) (*coppice.Store, io.Reader, error) {
	var seeds [2][32]byte
	for i := range seeds {
		if _, err := io.ReadFull(d.rand, seeds[i][:]); err != nil {
			return nil, nil, fmt.Errorf("read randomness: %w", err)
		}
	}
	st, err := coppice.New(d.b, &coppice.Options{
		Writer: name, Now: d.clock.now, Rand: rand.NewChaCha8(seeds[0]),
		Session: coppice.SessionOptions{Snapshots: snapshots},
	})
	if err == nil {
		d.stores = append(d.stores, st)
	}
	return st, rand.NewChaCha8(seeds[1]), err
}

// clock is the time of the demo, which the entries set.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) set(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = at
}

// wait moves the clock on.
func (c *clock) wait(d time.Duration) { c.set(c.now().Add(d)) }

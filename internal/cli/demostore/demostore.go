// Package demostore makes the store that `coppice serve --demo` shows: sessions of a small team that works on
// tideline, a command that predicts tides. Its content is data: steps.jsonl.zst lists what the writers of the demo did,
// a step a line, and Build does it again. So the store has what a viewer can show, in the format of this release:
// patches of the state, snapshots, a rollback and the line that it left, versions of messages, a turn that lost against
// another writer and was kept, agents that were started by agents, a compaction, labels, an image, cost.
//
// A child session names the call that started it: its relation is "agent", and its metadata has the id of the tool
// call under "call" and a name under "agent". The result of that call has the session's id in details.session.
package demostore

import (
	"bytes"
	"context"
	_ "embed" // steps.jsonl.zst
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/examples/session"
	"github.com/coppice-go/coppice/snapshot"
	"github.com/coppice-go/coppice/transcript"
)

// The ids of the sessions of the demo.
const (
	Main  = "019cadab-3a54-7c1e-9d42-6f0e8b7a51c3" // the bundled session, and what follows it
	Fork  = "019caec4-07c0-7000-9e66-ae87d62a3451" // of Main, at its release
	Gauge = "019caec9-b4e0-7000-8720-cada43457117" // the session that Live continues

	// Point is an entry of Main: the newer version of a prompt, on the line of the head.
	Point = "019caeac-e9c8-7000-af38-4452845d8580"

	// Windows and Fundy are agents of Main; Ranges is an agent of Fundy.
	Windows = "019caead-10d8-7000-80de-e041df1b4dc2"
	Fundy   = "019caeae-0ad8-7000-bf0b-d48762715c2b"
	Ranges  = "019caeae-3da0-7000-b061-91c634f07729"
)

const cwd = "/home/mara/src/tideline"

// snapshots are taken where they mean something, not by count.
var snapshots = snapshot.Policy{Every: -1, BeforeCompaction: true}

//go:embed steps.jsonl.zst
var steps []byte // unpack and pack it with zstd to change it

// step is a line of steps.jsonl.zst.
type step struct {
	Do   string    // create, open, fork, commit, edit, branch, rollback or snapshot
	As   string    // the handle that does it
	Time time.Time // the clock while it is done

	Writer           string            // of create and open
	Session          string            // of create, open and fork: the id
	Title            string            // of create and fork
	Parent, Relation string            // of create
	Meta             map[string]string // of create

	Reason   string             // of commit
	Base     string             // of commit and rollback: the entry that was the head after the commit that is meant
	KeepBoth bool               // of commit
	Lines    []string           // of commit: ids of entries of the bundled session
	Entries  []transcript.Draft // of commit and edit
	State    json.RawMessage    // of commit
	Patch    json.RawMessage    // of commit, in place of State: the change since the handle's previous commit
	Sorted   bool               // of Patch: see checkpoint.MakePatch

	Entry string // of edit and branch
	Tag   string // of snapshot and fork
}

// builder is a demo store that is being made.
type builder struct {
	b       backend.Backend
	clock   clock
	bundled map[string]transcript.Draft // by the id of the entry
	stores  []*coppice.Store
	handles map[string]*coppice.Session
	states  map[string][]byte // by handle
	commits map[string]string // by the entry that became the head
}

// Build writes the demo's sessions to a store that has none, in some 250 commits at the times of the bundled session.
// Sessions, entries and states are the same in each store; ids of commits may differ.
func Build(ctx context.Context, b backend.Backend) (err error) {
	d := &builder{
		b: b, bundled: map[string]transcript.Draft{}, handles: map[string]*coppice.Session{},
		states: map[string][]byte{}, commits: map[string]string{},
	}
	defer func() {
		for _, st := range d.stores {
			err = errors.Join(err, st.Close())
		}
	}()
	for raw := range bytes.Lines(session.JSONL()) {
		raw = bytes.TrimSpace(raw)
		line, err := transcript.ParseLine(raw)
		if err != nil {
			return fmt.Errorf("the bundled session: %w", err)
		}
		d.bundled[line.ID] = entry.Line(raw)
	}
	lines, err := unpack()
	if err != nil {
		return fmt.Errorf("the steps of the demo: %w", err)
	}
	for i, text := range bytes.Split(bytes.TrimSpace(lines), []byte("\n")) {
		var s step
		if err := json.Unmarshal(text, &s); err != nil {
			return fmt.Errorf("step %d of the demo: %w", i+1, err)
		}
		d.clock.set(s.Time)
		if err := d.do(ctx, s); err != nil {
			return fmt.Errorf("step %d of the demo: %s: %w", i+1, s.Do, err)
		}
	}
	return nil
}

// unpack returns the steps.
func unpack() ([]byte, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	return z.DecodeAll(steps, nil)
}

func (d *builder) do(ctx context.Context, s step) (err error) {
	h := d.handles[s.As]
	switch s.Do {
	case "create", "open":
		return d.open(ctx, s)
	case "fork":
		d.handles["fork"], err = h.Fork(ctx, coppice.Target{Tag: s.Tag}, s.Session, &coppice.SessionOptions{
			Title: s.Title, Cwd: cwd, Snapshots: snapshots,
		})
	case "commit":
		return d.commit(ctx, h, s)
	case "edit":
		_, err = h.Edit(ctx, s.Entry, s.Entries[0])
	case "branch":
		_, err = h.Branch(ctx, s.Entry, nil)
	case "rollback":
		_, err = h.Rollback(ctx, coppice.Target{Commit: d.commits[s.Base]})
	case "snapshot":
		_, err = h.Snapshot(ctx, s.Tag)
	default:
		err = errors.New("unknown step")
	}
	return err
}

// open opens or creates a session as a writer of the demo, with a generator of its own: what others draw has no effect
// on it.
func (d *builder) open(ctx context.Context, s step) error {
	st, err := coppice.New(d.b, &coppice.Options{
		Writer: s.Writer, Now: d.clock.now, Rand: rand.NewChaCha8([32]byte{byte(len(d.stores))}),
	})
	if err != nil {
		return err
	}
	d.stores = append(d.stores, st)
	if s.Do == "open" {
		d.handles[s.As], err = st.Open(ctx, s.Session, nil)
		return err
	}
	d.handles[s.As], err = st.Create(s.Session, &coppice.SessionOptions{
		Title: s.Title, Cwd: cwd, Parent: s.Parent, Relation: s.Relation, Meta: s.Meta, Snapshots: snapshots,
	})
	return err
}

func (d *builder) commit(ctx context.Context, h *coppice.Session, s step) (err error) {
	state := []byte(s.State)
	if s.Patch != nil {
		if state, err = checkpoint.ApplyPatch(d.states[s.As], s.Patch, s.Sorted); err != nil {
			return err
		}
	}
	d.states[s.As] = state
	entries := s.Entries
	for _, id := range s.Lines {
		entries = append(entries, d.bundled[id])
	}
	done, err := h.Commit(ctx, coppice.Turn{
		Entries: entries, State: json.RawMessage(state), Reason: s.Reason,
		Base: d.commits[s.Base], KeepBoth: s.KeepBoth,
	})
	if err == nil {
		d.commits[done.Entry] = done.Commit
	}
	return err
}

// clock is the time of the demo, which the steps set.
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

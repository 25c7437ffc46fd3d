// Package session is a handle on one session at work: it appends, commits, moves, travels in time, reads and watches.
// It guarantees:
//
//   - Read-your-writes. What was appended is in every answer from then on, also while a commit is on its way.
//   - One picture. An answer is made of one state and the entries that were pending after it (Moment).
//   - A move takes what is pending along, and brings back the document in force at the place it goes to.
//   - No lock is held while a hook runs or I/O is done.
//
// What makes things durable, and in which order, is internal/journal's: this package says what a commit holds. Errors
// are those of the layers below.
package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/trace"
	"github.com/coppice-go/coppice/snapshot"
	"github.com/coppice-go/coppice/transcript"
)

// Options of a handle.
type Options struct {
	Journal   journal.Config // but for Backend, which is the traced one
	KeepBoth  bool
	NameLeft  bool // moves name the line that they leave
	Defer     bool // commits before the first assistant message stay in memory
	Snapshots snapshot.Policy
	Poll      time.Duration

	Watched *Watched // of the store; nil = Watch learns of other handles' commits by looking
	Streams *Streams // of the store; nil = no partial output

	BeforeAppend func(ctx context.Context, d *transcript.Draft) error
	AfterCommit  func(r journal.Result)
}

// Handle is one writer, or reader, of one session. Safe for concurrent use.
//
// Locks, in the order in which they are taken: trees.mu, mu, the journal's.
type Handle struct {
	o Options
	b trace.Backend
	j *journal.Journal

	mu     sync.Mutex
	v      view
	closed bool
	joined bool          // it uses the session's stream
	wake   chan struct{} // closed and replaced whenever the acknowledged state or told changes
	told   *state.State  // the newest that another handle of the store left, while this one watches; nil = none

	trees     trees
	images    *Images
	snapshots *snapshots // nil = the policy wants none
}

// New makes a handle on a journal that is on b.
func New(j *journal.Journal, b trace.Backend, o Options) *Handle {
	h := &Handle{o: o, b: b, j: j, images: newImages(j), wake: make(chan struct{})}
	h.v.wish = &h.o.Journal
	h.look(func(*view) {})
	// Where commits are appended, the log holds a keyframe every 64 of them, and a commit is one write: a
	// snapshot by count would be a second one for what is at hand already.
	if _, appends := b.(backend.Appender); appends && o.Snapshots.Every == 0 {
		o.Snapshots.Every = -1
	}
	h.snapshots = newSnapshots(j.State().Summary.Seq, o.Snapshots)
	return h
}

// IO is all that the handle asked of the backend.
func (h *Handle) IO() backend.IO { return h.b.IO() }

// Journal is what makes the handle's commits durable.
func (h *Handle) Journal() *journal.Journal { return h.j }

// Writable refuses a handle that may not write.
func (h *Handle) Writable(ctx context.Context) error {
	if h.o.Journal.ReadOnly {
		return journal.ErrReadOnly
	}
	return h.Ready(ctx)
}

// closeWithin bounds how long Close waits for background work.
const closeWithin = 10 * time.Second

// Close ends the handle: see journal.Journal.Close. Idempotent.
func (h *Handle) Close() error {
	if !h.shut() {
		return nil
	}
	var err error
	h.look(func(v *view) {
		if v.unsaved {
			err = fmt.Errorf("an explicit context: %w", journal.ErrUncommitted)
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	err = errors.Join(err, h.j.Close(ctx))
	h.leave()
	return err
}

// Screen lets the hook see copies of drafts.
func (h *Handle) Screen(ctx context.Context, d []transcript.Draft) ([]transcript.Draft, error) {
	drafts := make([]transcript.Draft, len(d))
	for i := range d {
		drafts[i] = d[i]
		drafts[i].Raw = bytes.Clone(d[i].Raw) // it is the stored line; of a body that is made
		if hook := h.o.BeforeAppend; hook != nil && d[i].Err == nil {
			drafts[i].Body = bytes.Clone(d[i].Body)
			if err := hook(ctx, &drafts[i]); err != nil {
				return nil, fmt.Errorf("hook: %w", err)
			}
		}
		if drafts[i].Err != nil {
			return nil, drafts[i].Err
		}
	}
	return drafts, nil
}

// ScreenItems lets the hook see copies of inline messages, each as the draft of a message entry.
func (h *Handle) ScreenItems(ctx context.Context, items []transcript.Item) ([]transcript.Item, error) {
	if h.o.BeforeAppend == nil {
		return items, nil
	}
	out := slices.Clone(items)
	for i := range out {
		if out[i].Message == nil {
			continue
		}
		body, err := json.Marshal(map[string]json.RawMessage{"message": out[i].Message})
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
		drafts, err := h.Screen(ctx, []transcript.Draft{{Type: "message", Body: body}})
		if err != nil {
			return nil, err
		}
		var back struct{ Message json.RawMessage }
		if err := json.Unmarshal(drafts[0].Body, &back); err != nil {
			return nil, fmt.Errorf("item %d: the hook's draft: %w", i, err)
		}
		out[i].Message = back.Message
	}
	return out, nil
}

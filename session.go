package coppice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/internal/trace"
	"github.com/coppice-go/coppice/transcript"
)

// A Session is a handle on one conversation tree and its state: one writer. Safe for concurrent use.
type Session struct {
	// The journal makes things durable, and in which order; this package decides what a commit contains. An answer is
	// made of one state and the entries that were pending after it. No lock of the session is held while a hook runs or
	// I/O is done. Locks, in the order in which they are taken: trees.mu, mu, the journal's.
	store *Store
	o     SessionOptions
	cfg   journal.Config // its Backend is b
	b     trace.Backend
	j     *journal.Journal

	mu     sync.Mutex
	v      liveState
	closed bool
	joined bool          // it uses the session's stream
	wake   chan struct{} // closed and replaced whenever the acknowledged state or told changes
	told   *state.State  // the newest that another handle of the store left, while this one watches; nil = none

	trees     trees
	images    images
	snapshots *snapshots // nil = the policy wants none
	intact    intact

	claimed atomic.Bool // by Run
}

// begin completes a handle with its journal.
func (s *Session) begin(j *journal.Journal) {
	s.j, s.images.j, s.wake = j, j, make(chan struct{})
	s.v.wish = &s.cfg
	s.look(func(*liveState) {})
	// Where commits are appended, the log holds a keyframe every 64 of them, and a commit is one write: a
	// snapshot by count would be a second one of what is there already.
	policy := s.o.Snapshots
	if _, appends := s.b.(backend.Appender); appends && policy.Every == 0 {
		policy.Every = -1
	}
	s.snapshots = newSnapshots(j.State().Summary.Seq, policy)
}

// ready refuses a closed handle, and a done context.
func (s *Session) ready(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return backend.ErrClosed
	}
	return ctx.Err()
}

// writable refuses a handle that may not write.
func (s *Session) writable(ctx context.Context) error {
	if s.cfg.ReadOnly {
		return journal.ErrReadOnly
	}
	return s.ready(ctx)
}

// fail makes the error of an operation on this session.
func (s *Session) fail(op string, err error) error { return fail(op, s.ID(), err) }

// receipt returns what an operation returns that has cost before so far, and runs the hook for a commit that it made.
func (s *Session) receipt(op string, before backend.IO, r journal.Outcome, err error) (Receipt, error) {
	if err != nil {
		return Receipt{}, s.fail(op, err)
	}
	out := receiptOf(r)
	out.IO = s.IO().Sub(before)
	if hook := s.store.o.Hooks.AfterCommit; hook != nil && r.Commit.Reason != "" && !r.Repeated {
		hook(s, out)
	}
	return out, nil
}

func receiptOf(r journal.Outcome) Receipt {
	return Receipt{
		Head: r.Commit.Head, Entries: r.Commit.Entries, Kept: r.Kept, Snapshot: r.Snapshot, Warnings: r.Warnings,
		Bytes: r.Bytes, IDs: r.IDs, Known: r.Known, Repeated: r.Repeated, Behind: r.Behind,
	}
}

// ID returns the session's id.
func (s *Session) ID() string { return s.cfg.Session }

// Info returns the summary of the newest commit that the handle knows. Its Missing is the number of the newest commit
// that was made and cannot be found, where the log on a disk ends before that: what is left can be read, and writes are
// ErrCorrupt until Store.Repair. Cause is what ended a read with SessionOptions.Intact, or why Store.Salvage did not
// read the session itself.
func (s *Session) Info() checkpoint.Summary {
	st := s.j.Tip()
	sum := readableInfo(st.Summary)
	sum.Source = st.Source
	if sum.Missing = s.intact.missing; st.Missing > st.Summary.Seq {
		sum.Missing = st.Missing
	}
	sum.Cause = s.cause()
	if id := rawjson.Text(rawjson.Field(st.Header, "id")); sum.Source == nil && id != s.ID() {
		sum.Source = &checkpoint.Source{Session: id}
	}
	return sum
}

// Head returns seq, commit and epoch of the last acknowledged commit, and entry and branch with what is
// pending.
func (s *Session) Head() (h checkpoint.Head) {
	s.look(func(v *liveState) {
		h = v.State.Head()
		h.Entry = v.Sight.Head.ID
	})
	return h
}

// Profile returns the rules by which the session's contexts are built.
func (s *Session) Profile() transcript.Profile {
	if s.o.Profile == "" {
		return s.state().Rules().Profile
	}
	return s.o.Profile
}

// State decodes the agent's state, as of the last acknowledged commit, into v. A session without state
// leaves v unchanged. ErrStateLost: it was lost, and so it is until a commit sets one.
func (s *Session) State(v any) error {
	if err := s.ready(context.Background()); err != nil {
		return s.fail("state", err)
	}
	return s.fail("state", stateOf(s.document(), v))
}

// Doc decodes a document (Turn.Docs), as of the last acknowledged commit, into v. If there is none of this name, v is
// unchanged.
func (s *Session) Doc(name string, v any) error {
	if err := s.ready(context.Background()); err != nil {
		return s.fail("document", err)
	}
	return s.fail("document", decode(s.document().Docs[name], v))
}

// Docs yields the names and the JSON of all documents (Turn.Docs), as of the last acknowledged commit, in ascending
// order of their names. The JSON must not be changed. After Close they are those from before it.
func (s *Session) Docs() iter.Seq2[string, json.RawMessage] { return inOrder(s.document().Docs) }

// inOrder yields documents in ascending order of their names.
func inOrder(docs map[string]json.RawMessage) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		for _, name := range slices.Sorted(maps.Keys(docs)) {
			if !yield(name, rawjson.ValidText(docs[name])) {
				return
			}
		}
	}
}

// stateOf decodes the state of a document.
func stateOf(d checkpoint.Document, v any) error {
	if d.StateLost() {
		return ErrStateLost
	}
	return decode(d.State, v)
}

func decode(state json.RawMessage, v any) error {
	if len(state) == 0 {
		return nil
	}
	if err := json.Unmarshal(rawjson.ValidText(state), v); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	return nil
}

// IO returns the counts of all requests of this handle to the backend: after Open, the cost of the resume.
func (s *Session) IO() backend.IO { return s.b.IO() }

// closeWithin bounds how long Close waits for background work.
const closeWithin = 10 * time.Second

// Close refuses new calls and those that wait, waits for the request that was sent, and joins background work, for at
// most 10 s together. If this handle committed, on disk it then confirms the log and writes the checkpoint; a handle
// that committed nothing writes nothing. Its error is ErrUncommitted if entries were appended and not stored, and
// ErrCommitUnknown for a commit in doubt. After it every method that can fail returns fs.ErrClosed. Idempotent.
func (s *Session) Close() error {
	s.store.forget(s)
	if !s.shut() {
		return nil
	}
	var err error
	s.look(func(v *liveState) {
		if v.unsaved {
			err = fmt.Errorf("an explicit context: %w", journal.ErrUncommitted)
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	err = errors.Join(err, s.j.Close(ctx))
	s.leave()
	return s.fail("close", err)
}

// shut refuses all calls from now on; false if that was done before.
func (s *Session) shut() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.closed = true
	close(s.wake)
	s.wake = make(chan struct{})
	return true
}

// acknowledged passes a commit to lists, and to other handles of the store on which Watch is running.
func (s *Session) acknowledged(now *state.State) {
	s.store.lists.Touch(layout.Escape(s.ID()), now.Summary.Updated)
	if w := &s.store.watched; w.calls.Load() > 0 {
		w.tell(s.ID(), now)
	}
}

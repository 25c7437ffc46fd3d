package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
)

// fate is the answer for a turn.
type fate uint8

const (
	sent     fate = iota // no answer yet
	limbo                // not applied; it may be sent again
	doubtful             // in doubt; it may be settled
	acked                // acknowledged
	refused              // certainly not applied, and not retried
	doubt                // in doubt permanently
	repeated             // its idempotency key was known: the receipt of another turn came back
)

// turn is one step to be committed.
type turn struct {
	n       int
	step    *journal.Step
	entries []*journal.Entry
	state   string // the document's state after it; "" = unchanged
	base    string // the newest commit that its writer knew; "" = other users of the handle may know a newer one
	fate    fate
	began   time.Duration
	ended   time.Duration // when it was answered
	commit  string        // of an acknowledged turn
	tried   string        // the commit of a turn in doubt
	seq     uint64
}

// read is what a reader saw.
type read struct {
	who string
	ids []string
}

// shot is an acknowledged snapshot.
type shot struct {
	name, commit, doc string
	headOrd           int64
}

// ledger records all answers.
type ledger struct {
	w  *world
	mu sync.Mutex

	turns  []*turn
	keys   map[string]*turn // turns with an idempotency key that others may retry
	again  []string         // those keys
	reads  []read
	shots  []shot
	words  []*word
	sights []sight
	blobs  map[string][]byte
	top    uint64        // the newest acknowledged commit
	born   bool          // a commit was acknowledged
	buries time.Duration // when the first deletion began; 0 = none
	buried time.Duration // when a deletion was acknowledged
}

// newTurn records a turn of n entries below an entry of st.
func (l *ledger) newTurn(st *state.State, d *chance, n int) *turn {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := &turn{n: len(l.turns), began: l.w.now(), base: st.Summary.Commit, step: &journal.Step{Reason: "turn"}}
	l.turns = append(l.turns, t)
	id, ord := st.Summary.Entry, st.HeadOrd
	if d.one(8) {
		id, ord = l.place(st, d)
	}
	var before *journal.Entry
	for i := range n {
		parent := "null"
		if id != "" {
			parent = fmt.Sprintf("%q", id)
		}
		e := &journal.Entry{ID: fmt.Sprintf("t%d-%d", t.n, i), Parent: journal.Place{ID: id, Ord: ord, Entry: before}}
		e.Raw = fmt.Appendf(nil, `{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"turn %d part %d %x"}}`,
			e.ID, parent, t.n, i, d.next())
		t.entries, before, id, ord = append(t.entries, e), e, e.ID, -1
	}
	t.step.Entries = t.entries
	if n > 0 || d.one(2) {
		t.edits(fmt.Sprintf(`{"turn":%d,"note":"%x"}`, t.n, d.next()))
	}
	return t
}

// edits makes the turn set the state.
func (t *turn) edits(state string) {
	t.state = state
	t.step.Edit = func(doc checkpoint.Document) checkpoint.Document {
		doc.State = json.RawMessage(state)
		return doc
	}
}

// place returns an entry of st, or the place before every root; l.mu is held.
func (l *ledger) place(st *state.State, d *chance) (string, int64) {
	for range 8 {
		t := l.turns[d.n(len(l.turns))]
		if t.fate == acked && len(t.entries) > 0 {
			e := t.entries[d.n(len(t.entries))]
			if ord, done := e.Ordinal(); done && ord < st.Next {
				return e.ID, int64(ord)
			}
		}
	}
	return "", -1
}

// somewhere is place for callers that do not hold the lock.
func (l *ledger) somewhere(st *state.State, d *chance) *journal.Place {
	l.mu.Lock()
	defer l.mu.Unlock()
	id, ord := l.place(st, d)
	return &journal.Place{ID: id, Ord: ord}
}

// told records the answer of a call for a turn.
func (l *ledger) told(t *turn, f fate, res *journal.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.fate, t.ended = f, l.w.now()
	if f == acked && res != nil {
		t.commit, t.seq = res.Commit.Commit, res.Commit.Seq
		l.top, l.born = max(l.top, t.seq), true
		if res.State != nil && res.State.Summary.Seq < t.seq {
			l.w.violation("turn %d: commit %d is newer than the state that came with it, %d", t.n, t.seq, res.State.Summary.Seq)
		}
	}
	if f == repeated {
		t.commit, t.seq = res.Commit.Commit, res.Commit.Seq
	}
	if f == acked && l.buried != 0 && t.began > l.buried {
		l.w.violation("turn %d was acknowledged %v after the session was deleted", t.n, t.began-l.buried)
	}
	if k := t.step.Key; k != "" && (f == refused || f == doubt || f == acked && t.n%4 == 0) {
		l.again = append(l.again, k) // another host may have asked for it without seeing its end
	}
}

// floor returns the newest acknowledged commit: a read that begins now must include it.
func (l *ledger) floor() (seq uint64, born bool, buried bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.top, l.born, l.buried != 0
}

// opened checks the result of reading the head.
func (l *ledger) opened(who string, floor uint64, born, buried bool, st *state.State, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil && buried:
		l.w.violation("%s opened a session that is deleted, at commit %d", who, st.Summary.Seq)
	case err == nil && born && st.Summary.Seq < floor:
		l.w.violation("I1: %s reads commit %d, and %d was acknowledged before", who, st.Summary.Seq, floor)
	case errors.Is(err, store.ErrDeleted) && l.buries == 0:
		l.w.violation("%s: nobody deleted the session: %v", who, err)
	case errors.Is(err, fs.ErrNotExist) && !errors.Is(err, store.ErrDeleted) && born:
		l.w.violation("%s does not find the session: %v", who, err)
	}
}

// sound checks an error: damage is permitted only if bytes were damaged in transit, and a missing object only if a
// session is deleted.
func (l *ledger) sound(who string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil, l.w.plan.faults&cutBody != 0:
	case errors.Is(err, store.ErrCorrupt):
		l.w.violation("I3: %s: %v", who, err)
	case strings.HasSuffix(who, " read") && errors.Is(err, fs.ErrNotExist) && l.buries == 0:
		l.w.violation("I3: %s: %v", who, err)
	}
}

// saw records the entries that a reader saw.
func (l *ledger) saw(who string, ids []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads = append(l.reads, read{who, ids})
}

// entriesOf reads the ids of all entries of st, in order.
func entriesOf(ctx context.Context, j *journal.Journal, st *state.State) ([]string, error) {
	var ids []string
	next := uint64(0)
	for line, err := range j.Lines(ctx, st, nil) {
		if err != nil {
			return nil, err
		}
		if line.Ord != next {
			return nil, fmt.Errorf("I6: entry %d where %d is due", line.Ord, next)
		}
		next++
		if !line.Commit {
			ids = append(ids, idOf(line.Raw))
		}
	}
	return ids, nil
}

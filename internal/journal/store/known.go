package store

import (
	"context"
	"sync"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/transcript"
)

// KnownID is a durable line that has an id.
type KnownID struct {
	Ord    uint64
	Commit bool // it is a commit line
}

// known contains the ids of the session's durable lines that a handle has read: those of the lines from 0 on in runs of
// the id index, those after the last run in rest. Ids of durable lines never change, so it only grows.
type known struct {
	mu   sync.Mutex
	runs []*codec.IDs // in order; one may cover lines of those before it
	rest map[string]KnownID
	next uint64 // ordinals below it are answered
}

// restMost bounds the lines in known.rest.
const restMost = 1 << 16

// Known returns the durable lines with these ids, of several lines with one id the newest. An id that is not in the
// result is not in st. It costs at most three reads of runs and one of the active segment, however many ids are asked
// for, and nothing if they were read before. If the index is behind or damaged, the skeletons of the lines are read
// too.
func (h *History) Known(ctx context.Context, st *state.State, ids []string) (map[string]KnownID, error) {
	found := map[string]KnownID{}
	if len(ids) == 0 || st.Summary.Commit == "" {
		return found, nil
	}
	k := &h.known
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := h.learn(ctx, st); err != nil {
		return nil, err
	}
	for _, id := range ids {
		if l, ok := k.find(id, st.Next); ok {
			found[id] = l
		}
	}
	return found, nil
}

// ForgetIDs drops the ids that were read, so that the handle sees what another process has repaired.
func (h *History) ForgetIDs() {
	h.known.mu.Lock()
	defer h.known.mu.Unlock()
	h.known.runs, h.known.rest, h.known.next = nil, nil, 0
}

// find returns the newest line below end that has an id.
func (k *known) find(id string, end uint64) (KnownID, bool) {
	if l, ok := k.rest[id]; ok && l.Ord < end {
		return l, true
	}
	hash := codec.HashID(id)
	for i := len(k.runs) - 1; i >= 0; i-- {
		rows := k.runs[i].Find(hash)
		for r := len(rows) - 1; r >= 0; r-- {
			if rows[r].Ord < end {
				return KnownID{Ord: rows[r].Ord, Commit: rows[r].Commit}, true
			}
		}
	}
	return KnownID{}, false
}

// add adds a run that covers lines from k.next on. It drops the runs that begin where this one does or later.
func (k *known) add(run *codec.IDs) {
	for n := len(k.runs); n > 0 && k.runs[n-1].First() >= run.First(); n-- {
		k.runs = k.runs[:n-1]
	}
	k.runs = append(k.runs, run)
	k.next = max(k.next, run.End())
}

// learn reads what is missing to answer for all of st; h.known.mu is held.
func (h *History) learn(ctx context.Context, st *state.State) error {
	k := &h.known
	if len(k.rest) > restMost { // drop it, and read the runs that were written since
		k.rest, k.next = nil, 0
		if n := len(k.runs); n > 0 {
			k.next = k.runs[n-1].End()
		}
	}
	if k.rest == nil {
		k.rest = map[string]KnownID{}
	}
	if k.next >= st.Next {
		return nil
	}
	if err := h.learnRuns(ctx, st, st.IDs, true); err != nil {
		return err
	}
	// Sealed lines may be in no run: the session is older than the index, or its last run could not be written.
	for sealed := st.Segments.Next(); k.next+restMost < sealed; {
		run, err := h.idRun(ctx, st, k.next, min(sealed, k.next+codec.MaxIDs), nil)
		if err != nil {
			return err
		}
		k.add(run)
	}
	if sealed := st.Segments.Next(); k.next < sealed {
		for sk, err := range h.Skeletons(ctx, st, k.next) {
			if err != nil {
				return err
			}
			for i := range sk.Len() {
				k.line(sk.First()+uint64(i), sk.ID(i), sk.Flags(i)&codec.FlagCommit != 0)
			}
			if k.next >= sealed {
				break
			}
		}
	}
	const most = 1 << 12
	for k.next < st.Next {
		for l, err := range h.Lines(ctx, st, upFrom(k.next, min(st.Next, k.next+most))) {
			if err != nil {
				return err
			}
			head, err := transcript.ParseLine(l.Raw)
			if err != nil {
				return err
			}
			k.line(l.Ord, head.ID, l.Commit)
		}
	}
	return nil
}

// line adds the line with ordinal ord if it is the next one.
func (k *known) line(ord uint64, id string, commit bool) {
	if ord == k.next {
		k.rest[id], k.next = KnownID{Ord: ord, Commit: commit}, ord+1
	}
}

// learnRuns reads the runs that are missing. If a run does not exist, another writer may have merged it since; with
// again its lines are then looked up in the runs of the newest state.
func (h *History) learnRuns(ctx context.Context, st *state.State, refs []codec.Ref, again bool) error {
	for _, ref := range refs {
		end := ref.First + uint64(ref.Count)
		if end <= h.known.next {
			continue
		}
		run, err := h.readRun(ctx, ref)
		if gone(err) && again && h.latest != nil {
			if now, lerr := h.latest(ctx); lerr == nil && now.Indexed() >= end {
				return h.learnRuns(ctx, st, now.IDs, false)
			}
		}
		if unreadable(err) {
			run, err = h.idRun(ctx, st, ref.First, end, nil)
		}
		if err != nil {
			return err
		}
		h.known.add(run)
	}
	return nil
}

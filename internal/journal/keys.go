package journal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
)

// keyed returns the commit with the idempotency key of a step in the history of st, and the ordinal of its line; nil =
// there is none. The state has hashes of the keys: if none matches it reads nothing, else the commit line, which has
// the key and the digest of its turn.
func (j *Journal) keyed(
	ctx context.Context, st *state.State, c Step,
) (rec *checkpoint.Record, line uint64, err error) {
	j.mu.Lock()
	last := j.last
	j.mu.Unlock()
	if c.Key != "" && last.rec != nil && last.rec.Key == c.Key { // the doubt was just ended: a read could fail
		if !j.sameTurn(last.rec, c) {
			return nil, 0, j.notApplied("commit", ErrKeyReused)
		}
		return last.rec, last.Line, nil
	}
	for _, ref := range st.KeyRefs(c.Key) {
		rec, err := j.keyedCommit(ctx, st, ref)
		if err != nil {
			return nil, 0, j.notApplied("commit", fmt.Errorf("find the idempotency key in commit %d: %w", ref.Seq, err))
		}
		if rec.Key != c.Key {
			continue // another key with the same hash
		}
		if !j.sameTurn(&rec, c) {
			return nil, 0, j.notApplied("commit", ErrKeyReused)
		}
		return &rec, ref.Ord, nil
	}
	return nil, 0, nil
}

// sameTurn reports whether the turn of a step is that of a commit, by their digests. The digest of a turn includes the
// entries of the buffer. If the commit was in doubt and is stored now, its entries have left the buffer; then only the
// digest of the turn itself is compared, unless more was appended since.
func (j *Journal) sameTurn(rec *checkpoint.Record, c Step) bool {
	if rec.Digest == "" || c.Digest == "" {
		return true
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	drafts := j.list
	if c.Based {
		drafts = nil
	}
	if rec.Digest == digestWith(c.Digest, drafts) {
		return true
	}
	return len(drafts) == 0 && j.last.rec != nil && j.last.rec.ID == rec.ID && j.last.own == c.Digest
}

// digestWith returns the digest of a turn that also stores the entries of the buffer: 16 hex digits.
func digestWith(own string, drafts []*Entry) string {
	if own == "" || len(drafts) == 0 {
		return own
	}
	h := sha256.New()
	write := func(p []byte) {
		fmt.Fprintf(h, "%d:", len(p))
		h.Write(p)
	}
	write([]byte(own))
	for _, e := range drafts { // ids and times that the library made do not count
		id, parent := "", ""
		if e.Named {
			id = e.ID
		}
		if e.Chosen {
			parent = e.At().ID
		}
		for _, part := range []string{e.Head.Type, id, parent} {
			write([]byte(part))
		}
		write(e.Head.Entry(0).Body())
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// repeat returns the receipt of the first commit for a step whose key is known, and drops the entries of the buffer
// that the step would have stored.
func (j *Journal) repeat(
	ctx context.Context, tip *state.State, based bool, rec *checkpoint.Record, line uint64,
) (Outcome, error) {
	first := rec.Commit()
	st, err := j.harden(ctx, tip)
	if _, lost := errors.AsType[*recompose](err); err != nil && !lost { // it is there, perhaps not for good
		err = &store.Failure{Err: fmt.Errorf("%w: %w", ErrUnknown, err), Commit: first.Commit}
	}
	if err != nil {
		return Outcome{}, err
	}
	if !based {
		j.mu.Lock()
		for _, e := range j.list {
			e.stage = dropped
		}
		j.prune()
		j.followTip()
		j.mu.Unlock()
	}
	return Outcome{
		Commit: first, State: st, Kept: first.Kept, Repeated: true, Line: line, Behind: state.Kept(rec),
	}, nil
}

func (j *Journal) keyedCommit(ctx context.Context, st *state.State, ref checkpoint.KeyRef) (checkpoint.Record, error) {
	if ref.Ord != 0 {
		rec, err := j.RecordAt(ctx, st, ref.Ord)
		if err != nil || rec.Seq == ref.Seq {
			return rec, err
		}
		return rec, store.Corrupt("", 0, fmt.Errorf("line %d belongs to commit %d", ref.Ord, rec.Seq))
	}
	return j.Record(ctx, st, ref.Seq)
}

// knownEntries returns the entries that the session has already, with their ordinals. Other entries of the request that
// name one of them as their parent become children of the stored one.
func (j *Journal) knownEntries(ctx context.Context, st *state.State, entries []*Entry) (map[*Entry]uint64, error) {
	var ids []string
	for _, e := range entries {
		if e.skip = false; e.Named {
			ids = append(ids, e.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	stored, err := j.Known(ctx, st, ids)
	if err != nil {
		return nil, fmt.Errorf("look for the ids of entries: %w", err)
	}
	known := map[*Entry]uint64{}
	for _, e := range entries {
		l, ok := stored[e.ID]
		switch {
		case !ok || !e.Named:
		case l.Commit || !e.Ignore:
			return nil, j.notApplied("commit", exists(e.ID))
		default:
			known[e], e.skip = l.Ord, true
		}
	}
	return known, nil
}

// allKnown reports whether a step has nothing to store because the session has all of its entries.
func (j *Journal) allKnown(ctx context.Context, st *state.State, s *Step) (bool, error) {
	j.mu.Lock()
	takes := s.takesBuffer() && len(j.list) > 0
	j.mu.Unlock()
	if takes || !s.brings() || slices.ContainsFunc(s.Entries, func(e *Entry) bool { return !e.Ignore }) {
		return false, nil
	}
	known, err := j.knownEntries(ctx, st, s.Entries)
	return err == nil && s.idles(&request{own: s.own(known)}, st), err
}

// own returns the entries of a step that are to be stored: those that the session does not have, and Instead of each
// entry that it has.
func (s *Step) own(known map[*Entry]uint64) []*Entry {
	if len(known) == 0 {
		return s.Entries
	}
	var list []*Entry
	for _, e := range s.Entries {
		if _, ok := known[e]; !ok {
			list = append(list, e)
		} else if e.Instead != nil {
			list = append(list, e.Instead)
		}
	}
	return list
}

// brings reports whether the caller of the step passed entries, or ids of entries that the session has.
func (s *Step) brings() bool { return len(s.Entries)+len(s.IDs) > 0 }

// ids returns the ids of the entries that the caller of the step passed, in order.
func (s *Step) ids() (ids []string) {
	if s.IDs != nil {
		return s.IDs
	}
	for _, e := range s.Entries {
		ids = append(ids, e.ID)
	}
	return ids
}

// exists returns the error for an id that another entry has.
func exists(id string) error { return fmt.Errorf("entry %s: %w", id, fs.ErrExist) }

// Skipped reports whether the commit that is being composed leaves the entry out, because the session has it. It is for
// Step.Edit.
func (e *Entry) Skipped() bool { return e.skip }

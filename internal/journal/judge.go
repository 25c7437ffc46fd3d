package journal

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"slices"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/transcript"
)

// judge decides whether a step may be stored on tip (ADR 0036). kept: the step is stored as a branch, and the head
// stays. behind: the step was made on another commit than tip. A step that may not be stored is ErrConflict or
// ErrFenced. claimant is the writer of the newest claim of tip, if known: that claim does not fence its own steps. A
// claim of this handle does not fence steps on its view. It fences a step with a Base, unless Step.Writer is the writer
// that claimed.
func (j *Journal) judge(tip *state.State, s *Step, claimant string) (kept, behind bool, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	base := s.Base
	if base == nil {
		base = AnchorOf(j.view)
	}
	own := tip.Claimed == j.claim && (s.Base == nil || s.Writer == j.claimant) || s.Writer != "" && s.Writer == claimant
	fence := tip.Claimed > base.Seq && !own
	behind = base.Commit != tip.Summary.Commit
	switch {
	case base.Commit == "" && tip.Summary.Commit != "":
		return false, behind, j.notApplied("create", fmt.Errorf("the session already exists: %w", fs.ErrExist))
	case s.Claim, s.Note && !fence:
		return false, behind, nil
	case fence && s.KeepFenced && !s.Move:
		return true, behind, nil
	case fence:
		return false, behind, fenced(tip)
	case base.inForce(tip):
		return false, behind, nil
	case s.Move:
		return false, behind, conflict(tip)
	case s.KeepBoth, base.endsBranch(tip):
		return true, behind, nil
	}
	return false, behind, conflict(tip)
}

// erasedSince updates the base of a step after an erasure. An erasure changes the documents of earlier commits. If one
// was committed after the base of the step, the base gets the document that the log has now. Otherwise the step would
// be a conflict, or a turn that is kept as a branch would store the erased text again.
func (j *Journal) erasedSince(ctx context.Context, tip *state.State, s *Step) error {
	view := j.State()
	base := s.Base
	if base == nil {
		base = AnchorOf(view)
	}
	if base.Commit == "" || base.Seq >= tip.Erased || bytes.Equal(base.JSON, tip.DocJSON) {
		return nil
	}
	m, err := j.At(ctx, tip, base.Seq)
	if err != nil {
		return fmt.Errorf("document of commit %d: %w", base.Seq, err)
	}
	if s.Base != nil {
		now := *base
		now.Doc, now.JSON, s.Base = m.Doc, m.DocRaw, &now
		return nil
	}
	now := *view
	now.Doc, now.DocJSON = m.Doc, m.DocRaw
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.view == view {
		j.view = &now
	}
	return nil
}

// claimedBy returns the writer of the newest claim of tip; "" if no claim after the base of the step can fence it by
// name: if the step names no writer, or has no base. It reads at most one commit line.
func (j *Journal) claimedBy(ctx context.Context, tip *state.State, s *Step) (string, error) {
	if s.Writer == "" || s.Base == nil || tip.Claimed <= s.Base.Seq {
		return "", nil
	}
	rec, err := j.Record(ctx, tip, tip.Claimed)
	if err != nil {
		return "", fmt.Errorf("look for the writer of the claim: %w", err)
	}
	return rec.Writer, nil
}

// fences reports whether another writer claimed the session after the commit with the seq since. Only the newest claim
// of tip counts. The caller holds j.mu.
func (j *Journal) fences(tip *state.State, since uint64) bool {
	return tip.Claimed > since && tip.Claimed != j.claim
}

// Anchor describes a commit that a step was made on: the position and the document after it.
type Anchor struct {
	Commit string // id of the commit; "" = the session did not exist
	Seq    uint64
	At     Place  // the head after the commit
	Branch string // the branch of the head
	Doc    checkpoint.Document
	JSON   []byte // Doc, encoded
	Kept   bool   // the commit stored a turn that lost a conflict, on Branch
}

// AnchorOf returns the anchor of the newest commit of a state.
func AnchorOf(st *state.State) *Anchor {
	return &Anchor{
		Commit: st.Summary.Commit, Seq: st.Summary.Seq, At: PlaceOf(st), Branch: st.Summary.Branch, Doc: st.Doc,
		JSON: st.DocJSON,
	}
}

// inForce reports whether branch, head and document of st are equal to those of the anchor: then a step that was made
// on the anchor can be stored on st.
func (a *Anchor) inForce(st *state.State) bool {
	return a.At.ByOrdinal().Is(PlaceOf(st)) && a.Branch == st.Summary.Branch && a.sameDocument(st)
}

// sameDocument reports whether the document of st is equal to that of the anchor. An item of an explicit context may
// contain a copy of the message of its entry. These copies are not compared: an amendment changes them, and amendments
// conflict with nothing.
func (a *Anchor) sameDocument(st *state.State) bool {
	if bytes.Equal(a.JSON, st.DocJSON) {
		return true
	}
	if len(a.Doc.Context) != len(st.Doc.Context) || !a.brings() {
		return false
	}
	one, err := withoutBrought(a.Doc).Encode()
	two, err2 := withoutBrought(st.Doc).Encode()
	return err == nil && err2 == nil && bytes.Equal(one, two)
}

// brings reports whether an item of the context contains a copy of the message of its entry.
func (a *Anchor) brings() bool {
	return slices.ContainsFunc(a.Doc.Context, func(it transcript.Item) bool {
		return it.Entry != "" && len(it.Message) > 0
	})
}

// withoutBrought returns a copy of d without the copies of messages in the items of its context.
func withoutBrought(d checkpoint.Document) checkpoint.Document {
	d.Context = slices.Clone(d.Context)
	for i := range d.Context {
		if d.Context[i].Entry != "" {
			d.Context[i].Message = nil
		}
	}
	return d
}

// endsBranch reports whether the anchor is a kept turn at the end of its branch, so that a turn made on it continues
// that branch. It is false for the branch of the head of st: a kept turn must not move the head.
func (a *Anchor) endsBranch(st *state.State) bool {
	b, ok := st.Branch(a.Branch)
	return a.Kept && a.Branch != st.Summary.Branch && ok && b.Ord == a.At.ByOrdinal().Ord
}

// byOrdinal returns a copy of the anchor whose At is by ordinal, if that entry is durable. See Place.ByOrdinal.
func (a *Anchor) byOrdinal() *Anchor {
	s := *a
	s.At = a.At.ByOrdinal()
	return &s
}

// sameHead reports whether two states have the same branch, head and document, so that a turn made on a can be stored
// on b.
func sameHead(a, b *state.State) bool {
	return a.Summary.Commit == b.Summary.Commit || AnchorOf(a).inForce(b)
}

// conflict returns ErrConflict with the newest commit of now as the winner.
func conflict(now *state.State) *store.Failure {
	winner := now.Newest()
	return &store.Failure{Err: ErrConflict, Winner: &winner}
}

// fenced returns ErrFenced with the newest commit of now as the winner.
func fenced(now *state.State) *store.Failure {
	f := conflict(now)
	f.Err = ErrFenced
	return f
}

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

// judge decides whether a step may be stored on tip (ADR 0036): plainly, or as a branch. behind: tip is not what the
// step was made on. claimant made the newest claim of tip: its steps are not fenced by it. A claim of this handle
// fences neither a step on the view, nor one without a name if the claim has none.
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

// erasedSince makes the document of what a step was made on that of the log, if an erasure after it changed documents:
// neither is the step a conflict by that, nor does a turn that is kept bring anything back.
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

// claimedBy returns the writer of the newest claim of tip, if a step that names a writer may meet it as a fence.
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

// fences reports whether another writer has claimed the session since a commit; j.mu is held. Of several claims the
// newest counts.
func (j *Journal) fences(tip *state.State, since uint64) bool {
	return tip.Claimed > since && tip.Claimed != j.claim
}

// Anchor is the commit that a step was made on: what it left.
type Anchor struct {
	Commit string // its id; "" = the session did not exist
	Seq    uint64
	At     Place // its head
	Branch string
	Doc    checkpoint.Document
	JSON   []byte // Doc, encoded
	Kept   bool   // it keeps a losing turn on Branch
}

// AnchorOf returns the commit that a state ends with.
func AnchorOf(st *state.State) *Anchor {
	return &Anchor{
		Commit: st.Summary.Commit, Seq: st.Summary.Seq, At: PlaceOf(st), Branch: st.Summary.Branch, Doc: st.Doc,
		JSON: st.DocJSON,
	}
}

// inForce reports whether branch, head and document of a state are those of the anchor.
func (a *Anchor) inForce(st *state.State) bool {
	return a.At.Settled().Is(PlaceOf(st)) && a.Branch == st.Summary.Branch && a.sameDocument(st)
}

// sameDocument reports whether the document of a state is that of the anchor. The messages that items of an explicit
// context bring along of their entries do not count: an amendment changes them, which conflicts with nothing.
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

// brings reports whether an item of the context brings the message of its entry along.
func (a *Anchor) brings() bool {
	return slices.ContainsFunc(a.Doc.Context, func(it transcript.Item) bool {
		return it.Entry != "" && len(it.Message) > 0
	})
}

// withoutBrought returns a document without the messages that items bring along of their entries.
func withoutBrought(d checkpoint.Document) checkpoint.Document {
	d.Context = slices.Clone(d.Context)
	for i := range d.Context {
		if d.Context[i].Entry != "" {
			d.Context[i].Message = nil
		}
	}
	return d
}

// endsBranch reports whether the anchor is the end of the branch that keeps it: what is made on it continues that. A
// branch that the session is on is its own line: no kept line may move it.
func (a *Anchor) endsBranch(st *state.State) bool {
	b, ok := st.Branch(a.Branch)
	return a.Kept && a.Branch != st.Summary.Branch && ok && b.Ord == a.At.Settled().Ord
}

// settled returns the anchor with the place of its head by ordinal.
func (a *Anchor) settled() *Anchor {
	s := *a
	s.At = a.At.Settled()
	return &s
}

// sameHead reports whether a turn that was made on one state can be stored on the other.
func sameHead(a, b *state.State) bool {
	return a.Summary.Commit == b.Summary.Commit || AnchorOf(a).inForce(b)
}

// conflict returns the failure of what was made on an earlier state than now.
func conflict(now *state.State) *store.Failure {
	winner := now.Newest()
	return &store.Failure{Err: ErrConflict, Winner: &winner}
}

func fenced(now *state.State) *store.Failure {
	f := conflict(now)
	f.Err = ErrFenced
	return f
}

package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/transcript"
)

// Continue is Grow for lines that begin in the middle: with the entry Resume.Entry of the session's source. more
// returns the bytes of the file after those of that source, if the lines are not those bytes. It returns fs.ErrExist
// and does nothing if the session does not end with the first lines, if it has commits other than imports and
// amendments, or if only Grow can determine the parents of the new lines.
func Continue(
	ctx context.Context, in Into, j *journal.Journal, lines iter.Seq2[transcript.Draft, error],
	more func() (io.Reader, error),
) (added int, err error) {
	ld := &loader{in: in, j: j, lines: newSpool(in.Memory), older: map[string]uint64{}}
	added, err = ld.goOn(ctx, lines, more)
	return added, errors.Join(err, ld.lines.close())
}

func (ld *loader) goOn(
	ctx context.Context, lines iter.Seq2[transcript.Draft, error], more func() (io.Reader, error),
) (added int, err error) {
	st := ld.j.State()
	was := st.Source
	if st.Erased > 0 {
		return 0, ErrErased
	}
	if was == nil || was.Resume == nil || ld.in.Screen != nil || st.Original != "" && st.Original != was.SHA256 {
		return 0, errOther
	}
	next, stop := iter.Pull2(lines)
	defer stop()
	if err := ld.meetFrom(ctx, st, was.Resume.Entry, next); err != nil {
		return 0, err
	}
	had := len(ld.heads)
	if err := ld.gather(ctx, rest(next)); err != nil {
		return 0, err
	}
	if err := ld.findOlder(ctx, st, had); err != nil {
		return 0, err
	}
	head := ld.target()
	if head == here && ld.leaf != nil {
		return 0, errOther // it may be an entry before these lines
	}
	if err := ld.identify(); err != nil {
		return 0, err
	}
	sum, err := ld.growOriginal(ctx, st, was, more)
	if err != nil || had == len(ld.heads) && sum == st.Original && ld.source.Equal(st.Source) {
		return 0, err
	}
	ld.dated = st.Summary.Updated
	return len(ld.heads) - had, ld.commitAll(ctx, "import", head, func(step *journal.Step) { step.Original = sum })
}

// meetFrom is meet for the lines of the session from an entry on.
func (ld *loader) meetFrom(
	ctx context.Context, st *state.State, entry string, next func() (transcript.Draft, error, bool),
) error {
	known, err := ld.j.Known(ctx, st, []string{entry})
	if err != nil {
		return err
	}
	first, ok := known[entry]
	if !ok || first.Commit {
		return errOther
	}
	ords := make([]uint64, 0, st.Next-first.Ord)
	for ord := first.Ord; ord < st.Next; ord++ {
		ords = append(ords, ord)
	}
	var batch []state.Line // since the last commit
	for l, err := range ld.j.Lines(ctx, st, ords) {
		if err != nil {
			return err
		}
		if batch = append(batch, l); !l.Commit {
			continue
		}
		if err := ld.meetBatch(batch, next); err != nil {
			return err
		}
		batch = batch[:0]
	}
	return nil
}

// meetBatch consumes from next the lines of a commit; the commit line is the last.
func (ld *loader) meetBatch(batch []state.Line, next func() (transcript.Draft, error, bool)) error {
	n := len(batch) - 1
	var commit struct {
		Data struct {
			Reason string `json:"reason"`
		} `json:"data"`
	}
	if err := json.Unmarshal(batch[n].Raw, &commit); err != nil {
		return fmt.Errorf("commit line %d: %w", batch[n].Ord, err)
	}
	return ld.meetLines(commit.Data.Reason, batch[:n], next)
}

// findOlder finds the parents of the new lines among earlier lines of the session. The result has to be the same as if
// all lines had been resolved at once: no id occurs twice, and every parent exists.
func (ld *loader) findOlder(ctx context.Context, st *state.State, had int) error {
	parents, _ := transcript.ResolveParents(ld.heads)
	fresh := map[string]bool{}
	var ids []string
	for i := had; i < len(ld.heads); i++ {
		l := ld.heads[i]
		if l.ID == "" || fresh[l.ID] {
			return errOther
		}
		fresh[l.ID] = true
		if ids = append(ids, l.ID); l.HasParent && l.ParentID != "" && parents[i] < 0 {
			ids = append(ids, l.ParentID)
		}
	}
	known, err := ld.j.Known(ctx, st, ids)
	if err != nil {
		return err
	}
	for i := had; i < len(ld.heads); i++ {
		l := ld.heads[i]
		if _, twice := known[l.ID]; twice {
			return errOther
		}
		if !l.HasParent || l.ParentID == "" || parents[i] >= 0 {
			continue
		}
		at, ok := known[l.ParentID]
		if !ok || at.Commit {
			return errOther
		}
		ld.older[l.ParentID] = at.Ord
	}
	return nil
}

// growOriginal stores the bytes by which the file grew, if the session stores its original.
func (ld *loader) growOriginal(
	ctx context.Context, st *state.State, was *checkpoint.Source, more func() (io.Reader, error),
) (sum string, err error) {
	r, err := more()
	if err != nil {
		return "", err
	}
	if c, ok := r.(io.Closer); ok {
		defer func() { err = errors.Join(err, c.Close()) }()
	}
	if (r == nil) != (st.Original == "") || ld.source == nil {
		return "", errOther
	}
	if r == nil || ld.source.SHA256 == was.SHA256 {
		return st.Original, nil
	}
	return ld.source.SHA256, ld.j.GrowOriginal(ctx, store.Original{Sum: was.SHA256, Size: was.Bytes},
		store.Original{Sum: ld.source.SHA256, Size: ld.source.Bytes}, r)
}

package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"

	"github.com/coppice-go/coppice/internal/blob"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// errOther reports that the session is not a prefix of the lines.
var errOther = fmt.Errorf(
	"the session does not match the beginning of these lines, or has commits besides imports: %w", fs.ErrExist)

// ErrErased means that entries of a session were erased which its file still has: the session does not grow by it.
var ErrErased = errors.New("entries of the session were erased, and its file still has them")

// Grow adds to a session the lines that follow those it was imported from, and returns the number of added entries. The
// session becomes what an import of all lines would have made; if it would not, nothing is done and the error is
// fs.ErrExist. A failure in between leaves it with a part of the new lines: the next Grow continues there.
func Grow(
	ctx context.Context, in Into, lines iter.Seq2[transcript.Draft, error], original func() (io.Reader, error),
) (*journal.Journal, int, error) {
	j, err := journal.Open(ctx, in.Config)
	if err != nil {
		return nil, 0, err
	}
	ld := &loader{in: in, j: j, lines: newSpool(in.Memory)}
	added, err := ld.grow(ctx, lines, original)
	if err = errors.Join(err, ld.lines.close()); err != nil {
		return nil, 0, errors.Join(err, j.Close(context.WithoutCancel(ctx)))
	}
	return j, added, nil
}

func (ld *loader) grow(
	ctx context.Context, lines iter.Seq2[transcript.Draft, error], original func() (io.Reader, error),
) (added int, err error) {
	var header []byte // the session keeps its header
	next, stop := iter.Pull2(headless(lines, &header))
	defer stop()
	st := ld.j.State()
	if st.Erased > 0 {
		return 0, ErrErased
	}
	screened := func() (transcript.Draft, error, bool) { // as the session got it
		d, err, more := next()
		if err == nil && more {
			err = ld.screen(ctx, &d)
		}
		return d, err, more
	}
	if err := ld.meet(ctx, st, screened); err != nil {
		return 0, err
	}
	had := len(ld.heads)
	if err := ld.gather(ctx, rest(next)); err != nil {
		return 0, err
	}
	before, _ := transcript.ResolveParents(ld.heads[:had])
	if after, _ := transcript.ResolveParents(ld.heads); !slices.Equal(before, after[:had]) {
		return 0, errOther // an orphan has a parent now
	}
	sum, err := ld.original(ctx, original)
	switch {
	case err != nil:
		return 0, err
	case sum == "" && st.Original != "":
		return 0, errOther // the lines are the original now: the stored one would remain in force
	}
	if err := ld.identify(); err != nil {
		return 0, err
	}
	if had == len(ld.heads) && sum == st.Original && ld.source.Equal(st.Source) {
		return 0, nil
	}
	ld.dated = st.Summary.Updated
	return len(ld.heads) - had,
		ld.commitAll(ctx, "import", ld.target(), func(step *journal.Step) { step.Original = sum })
}

// Drop deletes a session that has only commits of imports, after its file was imported again as the session by. Any
// other session stays, and the error is fs.ErrExist; the same holds if another writer commits meanwhile. It may be
// repeated after a failure.
func Drop(ctx context.Context, cfg journal.Config, by string) (err error) {
	j, err := journal.Open(ctx, cfg)
	if errors.Is(err, store.ErrDeleted) { // an earlier call was interrupted
		return journal.Delete(ctx, cfg)
	}
	if err != nil {
		return err
	}
	st := j.State()
	for batch, berr := range j.Since(ctx, st, -1, nil) {
		if err = berr; err == nil && !slices.Contains(importReasons, batch.Commit.Reason) {
			err = errOther
		}
		if err != nil {
			break
		}
	}
	if err = errors.Join(err, j.Close(ctx)); err != nil {
		return err
	}
	if err = journal.Replace(ctx, cfg, st.Summary.Commit, by); errors.Is(err, journal.ErrConflict) {
		err = errors.Join(errOther, err)
	}
	return err
}

// meet consumes from next the lines that the session has, one by one. The session must have no other commits than
// imports.
func (ld *loader) meet(ctx context.Context, st *state.State, next func() (transcript.Draft, error, bool)) error {
	for batch, err := range ld.j.Since(ctx, st, -1, nil) {
		if err != nil {
			return err
		}
		if err := ld.meetLines(batch.Commit.Reason, batch.Lines, next); err != nil {
			return err
		}
	}
	return nil
}

// meetLines consumes from next the lines of a commit with a reason.
func (ld *loader) meetLines(reason string, lines []state.Line, next func() (transcript.Draft, error, bool)) error {
	var added [][]byte
	for _, l := range lines {
		if !l.Commit {
			added = append(added, l.Raw)
		}
	}
	if amends(reason, added) {
		return nil
	}
	if !slices.Contains(importReasons, reason) {
		return errOther
	}
	for _, l := range lines {
		if l.Commit {
			continue
		}
		d, err, more := next()
		if err != nil {
			return err
		}
		if !more {
			return errOther
		}
		if err := ld.same(d, l); err != nil {
			return err
		}
	}
	return nil
}

// same compares a line with one of the session, and records its ordinal.
func (ld *loader) same(d transcript.Draft, l state.Line) error {
	raw, err := d.Line(d.ID, d.Parent, ld.in.Config.Now())
	if err != nil {
		return err
	}
	head, err := transcript.ParseLine(l.Raw)
	if err != nil {
		return err
	}
	// Earlier releases stored bytes that are not valid UTF-8; a reader now has U+FFFD in their place.
	stored, _ := blob.Externalise(ld.renamed(raw))
	if !bytes.Equal(stored, rawjson.ValidText(l.Raw)) && !ld.rename(stored, head) {
		return errOther
	}
	ld.hold(head)
	ld.ords = append(ld.ords, l.Ord)
	return ld.lines.add(nil)
}

// rename reports whether a line equals the stored one except for an id that a conversion made: earlier releases made it
// at random. It records the id, for the lines that refer to it.
func (ld *loader) rename(raw []byte, stored transcript.Line) bool {
	const timed = 15 // characters of a UUIDv7 that encode its time, and its version
	made := rawjson.Text(rawjson.Field(raw, "id"))
	if len(made) != len(stored.ID) || len(made) < timed || made[:timed] != stored.ID[:timed] || made[timed-1] != '7' {
		return false
	}
	if !bytes.Equal(rawjson.WithField(raw, "id", rawjson.AppendString(nil, stored.ID)), rawjson.ValidText(stored.Raw)) {
		return false
	}
	if ld.renames == nil {
		ld.renames = map[string]string{}
	}
	ld.renames[made] = stored.ID
	return true
}

// renamed replaces references to made ids by the stored ids.
func (ld *loader) renamed(raw []byte) []byte {
	if len(ld.renames) == 0 {
		return raw
	}
	for _, field := range []string{"parentId", "targetId", "firstKeptEntryId", "fromId"} {
		if id, ok := ld.renames[rawjson.Text(rawjson.Field(raw, field))]; ok {
			raw = rawjson.WithField(raw, field, rawjson.AppendString(nil, id))
		}
	}
	return raw
}

// rest returns the remaining drafts.
func rest(next func() (transcript.Draft, error, bool)) iter.Seq2[transcript.Draft, error] {
	return func(yield func(transcript.Draft, error) bool) {
		for {
			d, err, more := next()
			if !more || !yield(d, err) {
				return
			}
		}
	}
}

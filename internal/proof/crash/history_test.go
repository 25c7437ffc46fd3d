package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
)

// Commit is one commit of a history.
type Commit struct {
	ID, Entry, Branch string
	Self              string // of its line: it covers all bytes before it
	Next              uint64 // ordinal after it
	Doc               string // the document after it
	kept              bool   // it keeps a losing turn, and moves nothing
}

// History is all that was committed to a session, in order.
type History struct {
	Commits []Commit
	Lines   [][]byte
}

// ReadHistory reads the whole history of a session from the state that j knows.
func ReadHistory(ctx context.Context, j *journal.Journal) (*History, error) {
	h := &History{}
	st := j.State()
	for b, err := range j.Since(ctx, st, -1, nil) {
		if err != nil {
			return nil, err
		}
		for _, l := range b.Lines {
			h.Lines = append(h.Lines, slices.Clone(l.Raw))
		}
		mo, err := j.At(ctx, st, b.Commit.Seq)
		if err != nil {
			return nil, err
		}
		if int(b.Commit.Seq) != len(h.Commits) || mo.Commit.Commit != b.Commit.Commit {
			return nil, fmt.Errorf("commit %d stands where %d is due", b.Commit.Seq, len(h.Commits))
		}
		h.Commits = append(h.Commits, Commit{
			ID: b.Commit.Commit, Entry: b.Commit.Entry, Branch: b.Commit.Branch, Doc: string(mo.DocRaw),
			Self: selfOf(h.Lines[len(h.Lines)-1]), Next: uint64(len(h.Lines)),
			kept: b.Commit.Kept != "" && b.Commit.Kept == b.Commit.Branch,
		})
	}
	return h, nil
}

// selfOf is the checksum at the end of a commit line.
func selfOf(line []byte) string {
	const tail = len(`00000000"}}`)
	if len(line) < tail {
		return ""
	}
	return string(line[len(line)-tail : len(line)-3])
}

// Holds checks that st is exactly the state after commit number seq of the history.
func (h *History) Holds(st *state.State) error {
	s := &st.Summary
	if int(s.Seq) >= len(h.Commits) {
		return fmt.Errorf("I10: commit %d (%s) was never made: the history ends with %d", s.Seq, s.Commit,
			len(h.Commits)-1)
	}
	c := &h.Commits[s.Seq]
	switch {
	case s.Commit != c.ID:
		return fmt.Errorf("I10: commit %d is %s, and was %s", s.Seq, s.Commit, c.ID)
	case st.Next != c.Next:
		return fmt.Errorf("I6: commit %d ends at ordinal %d, and ended at %d", s.Seq, st.Next, c.Next)
	case fmt.Sprintf("%08x", st.Self) != c.Self:
		return fmt.Errorf("I10: the chain at commit %d is %08x, and was %s", s.Seq, st.Self, c.Self)
	}
	for at := int(s.Seq); c.kept && at > 0; { // head and document are those of the previous line
		at--
		c = &h.Commits[at]
	}
	switch {
	case string(st.DocJSON) != c.Doc:
		return fmt.Errorf("I1: the document of commit %d is %s, and was %s", s.Seq, st.DocJSON, c.Doc)
	case s.Entry != c.Entry || s.Branch != c.Branch:
		return fmt.Errorf("I1: commit %d stands at %s of %s, and stood at %s of %s", s.Seq, s.Entry, s.Branch, c.Entry,
			c.Branch)
	}
	return nil
}

// whole is the seq of lines whose commit is not known, which only have to be in order: the lines of an import.
const whole = ^uint64(0)

// Keeps checks the history against the input of callers, byte for byte: acknowledged input is in it, and refused input
// is not.
func (h *History) Keeps(given []Given, refused [][]byte) error {
	for _, text := range refused {
		if slices.ContainsFunc(h.Lines, func(l []byte) bool { return bytes.Contains(l, text) }) {
			return fmt.Errorf("I2: %q was not applied, its caller was told, and is in the history", text)
		}
	}
	for _, g := range given {
		lines := h.Lines
		if g.Seq != whole {
			if g.Seq >= uint64(len(h.Commits)) {
				return fmt.Errorf("I1: commit %d was acknowledged, the history ends with %d", g.Seq, len(h.Commits)-1)
			}
			c := &h.Commits[g.Seq]
			end := int(c.Next) - 1 // the commit line
			lines = lines[max(0, end-len(g.Lines)):end]
			var doc struct{ State json.RawMessage }
			if err := json.Unmarshal([]byte(c.Doc), &doc); err != nil {
				return fmt.Errorf("I1: the document of commit %d: %w", g.Seq, err)
			}
			if g.State != "" && string(doc.State) != g.State {
				return fmt.Errorf("I1: the state of commit %d is %s, and %s was given", g.Seq, doc.State, g.State)
			}
		}
		for i, want := range g.Lines {
			at := slices.IndexFunc(lines, func(l []byte) bool { return bytes.Contains(l, want) })
			if at < 0 {
				return fmt.Errorf("I1: line %d of commit %d is not what was given: %.200s", i, int64(g.Seq), want)
			}
			lines = lines[at+1:]
		}
	}
	return nil
}

// Reads compares every line of st with that of the history, byte for byte.
func (h *History) Reads(ctx context.Context, j *journal.Journal, st *state.State) error {
	n := 0
	for l, err := range j.Lines(ctx, st, nil) {
		if err != nil {
			return fmt.Errorf("I3: line %d of %d: %w", n, st.Next, err)
		}
		if n >= len(h.Lines) || string(l.Raw) != string(h.Lines[n]) {
			return fmt.Errorf("I6: line %d is %.80q, and was committed otherwise", n, l.Raw)
		}
		n++
	}
	if uint64(n) != st.Next {
		return fmt.Errorf("I1: %d lines of %d", n, st.Next)
	}
	return nil
}

// History reads the whole history from the present disk; it is empty if there is no session.
func (w *World) History(ctx context.Context) (*History, error) {
	j, err := journal.Open(ctx, w.Config())
	if errors.Is(err, fs.ErrNotExist) {
		return &History{}, nil
	}
	if err != nil {
		return nil, err
	}
	return ReadHistory(ctx, j)
}

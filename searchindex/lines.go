package searchindex

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/coppice-go/coppice/transcript"
)

// maxBranches bounds the branch names returned for one entry.
const maxBranches = 16

// Lines determines which branches of a session contain an entry.
type Lines struct {
	runs     []run // by First
	branches []reach
	head     []span
}

// run is a sequence of entries, each with the one before as parent. Its first entry identifies it.
type run struct{ First, Parent int64 } // Parent of the first entry; -1 = a root

// span is a range of ordinals, both ends included.
type span struct{ from, to int64 }

type reach struct {
	name  string
	spans []span // newest first
}

// NewLines returns the lines of a tree.
func NewLines(t *transcript.Tree) *Lines {
	l := &Lines{}
	tail := int64(-1)
	var nodes []transcript.Node
	for n := range t.Nodes(transcript.FilterAll) {
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b transcript.Node) int { return int(int64(a.Ordinal) - int64(b.Ordinal)) })
	for _, n := range nodes {
		if r, ok := nextRun(t, n.Ordinal, n.Type, &tail); ok {
			l.runs = append(l.runs, r)
		}
	}
	for _, b := range t.Branches() {
		l.branches = append(l.branches, reach{b.Name, l.spans(ordinalOf(t, b.Head))})
	}
	l.head = l.spans(ordinalOf(t, t.Head()))
	return l
}

// nextRun reports whether an entry begins a run. tail is the entry before it, and is updated. Labels and leaf entries
// are in no run, because they have no children.
func nextRun(t *transcript.Tree, ordinal uint64, typ string, tail *int64) (run, bool) {
	if typ == "label" || typ == "leaf" {
		return run{}, false
	}
	parent := int64(-1)
	if p, ok := t.Parent(ordinal); ok {
		parent = int64(p)
	}
	before := *tail
	*tail = int64(ordinal)
	return run{int64(ordinal), parent}, before < 0 || parent != before
}

// ordinalOf returns an entry's ordinal; -1 = none.
func ordinalOf(t *transcript.Tree, id string) int64 {
	if id == "" {
		return -1
	}
	o, err := t.Ordinal(id)
	if err != nil {
		return -1
	}
	return int64(o)
}

// spans returns the path from an entry to its root, as one span per run. It ends even if the runs are inconsistent.
func (l *Lines) spans(head int64) []span {
	var out []span
	for head >= 0 && len(out) <= len(l.runs) {
		i := sort.Search(len(l.runs), func(i int) bool { return l.runs[i].First > head }) - 1
		if i < 0 {
			break
		}
		out = append(out, span{l.runs[i].First, head})
		head = l.runs[i].Parent
	}
	return out
}

// Reach returns the branches that contain an entry, at most 16, and whether the head's line does.
func (l *Lines) Reach(ordinal uint64) (branches []string, onHead bool) {
	branches = []string{}
	for _, b := range l.branches {
		if within(b.spans, int64(ordinal)) && len(branches) < maxBranches {
			branches = append(branches, b.name)
		}
	}
	return branches, within(l.head, int64(ordinal))
}

func within(spans []span, o int64) bool {
	return slices.ContainsFunc(spans, func(s span) bool { return s.from <= o && o <= s.to })
}

// readLines reads the lines of a session.
func readLines(ctx context.Context, db *sql.DB, session int64) (*Lines, error) {
	l := &Lines{}
	err := eachRow(ctx, db, func(scan func(...any) error) error {
		var r run
		err := scan(&r.First, &r.Parent)
		l.runs = append(l.runs, r)
		return err
	}, "SELECT first, parent FROM run WHERE session=? ORDER BY first", session)
	if err != nil {
		return nil, fmt.Errorf("read lines: %w", err)
	}
	err = eachRow(ctx, db, func(scan func(...any) error) error {
		var name string
		var head int64
		err := scan(&name, &head)
		l.branches = append(l.branches, reach{name, l.spans(head)})
		return err
	}, "SELECT name, head FROM branch WHERE session=? ORDER BY name", session)
	if err != nil {
		return nil, fmt.Errorf("read branches: %w", err)
	}
	head := int64(-1)
	err = db.QueryRowContext(ctx, "SELECT head FROM session WHERE n=?", session).Scan(&head)
	if err != nil && !errors.Is(err, sql.ErrNoRows) { // another process may have removed the session
		return nil, fmt.Errorf("read the head: %w", err)
	}
	l.head = l.spans(head)
	return l, nil
}

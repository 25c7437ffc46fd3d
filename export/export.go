// Package export writes a session for people: as Markdown, and as one HTML page that needs nothing else.
//
// Guarantees: every message of every branch is there, the current line first; what a message holds never becomes
// markup or script of the document, and cannot hide or change what is after it; both stream, so memory is
// bounded by one line of the tree for each entry (about 400 bytes) and by the bodies of 64 entries; the page
// holds one message besides, with at most 64 results of each of its calls.
//
// The page renders what models said as Markdown without behaviour, and shows what users said as it was written. The
// Markdown document shows both as a quotation, in which headings, lists, tables and code are what they were, while
// HTML, definitions of links and pictures of elsewhere are text. Parts are in their order: words, thoughts, calls of
// tools and their results, images; of documents there is the name, the kind and the size. Control sequences of
// terminals are left out.
package export

import (
	"context"
	"fmt"
	"io"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/transcript"
)

// batch is how many bodies are read at once.
const batch = 64

// Options of an export. The zero value, or nil, shows what is said, with tools.
type Options struct {
	Filter transcript.Filter // "" = transcript.FilterDefault

	// Line is an entry, or a unique prefix of its id: only the path to it is written. "" = every branch.
	Line string
}

// step is one thing to write: a message, or the beginning or end of a version that is not on the current line.
type step struct {
	kind    stepKind
	node    transcript.Node
	version int // of a message: its place among the versions of this point, from 1
	of      int
	others  []string // ids of the other versions
	heads   []string // of a message: the branches whose head it is
	along   []string // of a version: the branches that end on the line that it begins
	within  []string // of a version: the branches that end in all that grows on it
}

type stepKind uint8

const (
	show stepKind = iota
	open
	shut
)

// forest is the tree as a filter shows it.
type forest struct {
	children map[string][]transcript.Node // by parent; "" = the roots
	names    names
	line     map[uint64]bool // ordinals of the only path that is written; nil = all are
}

func plant(t *transcript.Tree, o *Options) (*forest, error) {
	filter := transcript.FilterDefault
	if o != nil && o.Filter != "" {
		filter = o.Filter
	}
	f := &forest{children: map[string][]transcript.Node{}}
	if o != nil && o.Line != "" {
		end, err := t.Ordinal(o.Line)
		if err != nil {
			return nil, fmt.Errorf("export the line to %s: %w", o.Line, err)
		}
		f.line = map[uint64]bool{end: true}
		for at, more := t.Parent(end); more && !f.line[at]; at, more = t.Parent(at) {
			f.line[at] = true
		}
	}
	for n := range t.Nodes(filter) {
		if !f.has(n) {
			continue
		}
		f.children[n.ParentID] = append(f.children[n.ParentID], n)
	}
	for _, versions := range f.children {
		transcript.SortByTime(versions)
	}
	f.names = f.name(t)
	return f, nil
}

// has reports whether a node is written: all are, or those on the line.
func (f *forest) has(n transcript.Node) bool { return f.line == nil || f.line[n.Ordinal] }

// chosen is the place of the version that the conversation goes on with: the head's, or else the newest.
func chosen(versions []transcript.Node) int {
	for i, n := range versions {
		if n.OnPath {
			return i
		}
	}
	return len(versions) - 1
}

// fork returns the versions below a node: the one that the conversation goes on with, and the others, the
// oldest first.
func (f *forest) fork(parent string) (main step, others []step) {
	all := f.children[parent]
	if len(all) == 0 {
		return step{}, nil
	}
	on := chosen(all)
	for i, n := range all {
		s := step{
			kind: show, node: n, version: i + 1, of: len(all),
			heads: f.names.heads[n.ID], along: f.names.along[n.ID], within: f.names.within[n.ID],
		}
		for j, other := range all {
			if j != i && len(all) <= maxLinks {
				s.others = append(s.others, other.ID)
			}
		}
		if i == on {
			main = s
		} else {
			others = append(others, s)
		}
	}
	return main, others
}

// Bounds of what is written about a fork: more versions than these are counted and not linked, and versions
// within versions are folded no deeper.
const (
	maxLinks = 100
	maxDepth = 32
)

// nested returns the steps of the whole tree, each version that is not on the line before the one that is, with
// all that grows on it.
func (f *forest) nested(yield func(step) error) error {
	type task struct {
		step   step
		expand bool // the children of step.node, instead of step
	}
	stack, depth := []task{{expand: true}}, 0
	for len(stack) > 0 {
		t := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if !t.expand {
			switch t.step.kind {
			case open:
				depth++
			case shut:
				depth--
			case show:
			}
			if depth > maxDepth && t.step.kind != show || depth == maxDepth && t.step.kind == shut {
				continue // what lies deeper is written without a fold of its own
			}
			if err := yield(t.step); err != nil {
				return err
			}
			continue
		}
		main, others := f.fork(t.step.node.ID)
		if main.of == 0 {
			continue
		}
		stack = append(stack, task{step: main, expand: true}, task{step: main})
		for i := len(others) - 1; i >= 0; i-- {
			s := others[i]
			begin, end := s, s
			begin.kind, end.kind = open, shut
			stack = append(stack, task{step: end}, task{step: s, expand: true}, task{step: s}, task{step: begin})
		}
	}
	return nil
}

// lines returns the steps of the whole tree line by line: the current one, then each that was left, opened by
// where it begins.
func (f *forest) lines(yield func(step) error) error {
	var left []step
	follow := func(parent string) error {
		for {
			main, others := f.fork(parent)
			if main.of == 0 {
				return nil
			}
			left = append(left, others...)
			if err := yield(main); err != nil {
				return err
			}
			parent = main.node.ID
		}
	}
	if err := follow(""); err != nil {
		return err
	}
	for len(left) > 0 {
		s := left[0]
		left = left[1:]
		begin := s
		begin.kind = open
		if err := yield(begin); err != nil {
			return err
		}
		if err := yield(s); err != nil {
			return err
		}
		if err := follow(s.node.ID); err != nil {
			return err
		}
	}
	return nil
}

// writer is one of the two formats.
type writer interface {
	begin(s *coppice.Session) error
	step(s step, e transcript.Entry) error // e is set where s shows a message
	end() error
}

// write reads the bodies batch by batch and hands the steps on.
func write(ctx context.Context, s *coppice.Session, plan func(yield func(step) error) error, w writer) error {
	if err := w.begin(s); err != nil {
		return err
	}
	var held []step
	flush := func() error {
		bodies := map[string]transcript.Entry{}
		var ids []string
		for _, st := range held {
			if st.kind == show {
				ids = append(ids, st.node.ID)
			}
		}
		if len(ids) > 0 {
			for e, err := range s.Entries(ctx, ids...) {
				if err != nil {
					return fmt.Errorf("export session %s: %w", s.ID(), err)
				}
				bodies[e.ID] = e
			}
		}
		for _, st := range held {
			if err := w.step(st, bodies[st.node.ID]); err != nil {
				return err
			}
		}
		held = held[:0]
		return nil
	}
	err := plan(func(st step) error {
		if held = append(held, st); len(held) >= batch {
			return flush()
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := flush(); err != nil {
		return err
	}
	return w.end()
}

// sink remembers the first error of a sequence of writes.
type sink struct {
	w   io.Writer
	err error
}

func (k *sink) printf(format string, args ...any) {
	if k.err == nil {
		_, k.err = fmt.Fprintf(k.w, format, args...)
	}
}

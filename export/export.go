// Package export writes a session as a document for people: as Markdown, and as one self-contained HTML page.
//
// Guarantees:
//
//   - The document contains every message of every branch. Markdown begins with the path to the head. HTML has the
//     other versions of a message, folded, before the version on that path.
//   - The content of a message never becomes markup or script of the document, and cannot hide or change what follows.
//   - Both formats are written as a stream. Memory is bounded by about 400 bytes per entry and the bodies of 64
//     entries; for HTML also one message with at most 64 results for each of its calls.
//
// The HTML page renders messages of models as Markdown without active content, and shows messages of users as plain
// text. The Markdown document shows both as quotations: headings, lists, tables and code work, while HTML, link
// definitions and external images become text. The parts of a message keep their order: text, thinking, tool calls and
// results, images. Documents are represented by name, type and size. Terminal control sequences are removed.
package export

import (
	"context"
	"fmt"
	"io"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/transcript"
)

// batch is the maximum number of bodies of entries that are in memory at a time.
const batch = 64

// Options of an export. The zero value, or nil, exports messages and tools.
type Options struct {
	Filter transcript.Filter // "" = transcript.FilterDefault

	// Line is the ID of an entry or a unique prefix of it: only the path to that entry is written. "" = every branch.
	Line string

	// Redact returns the JSON of an entry to write in place of raw; nil = entries are written as they are. With Redact
	// the document has no table of contents, and no title made of the first words of an entry: these could contain a
	// part of a text that Redact would not recognize without the rest.
	Redact func(raw []byte) []byte
}

// step is one item of the output. Versions are the children of one entry, among which one is the main version.
type step struct {
	kind    stepKind
	node    transcript.Node
	version int      // number of node among the versions at this fork, from 1
	of      int      // number of versions at this fork
	others  []string // IDs of the other versions; none if there are more than maxLinks
	heads   []string // branches whose head is node
	along   []string // branches whose head is on the path that follows main versions from node on
	within  []string // branches whose head is node or a descendant of it
}

type stepKind uint8

const (
	show stepKind = iota // a message
	open                 // the beginning of a version that is not the main one
	shut                 // its end
)

// forest is the part of the tree that is written.
type forest struct {
	children map[string][]transcript.Node // by parent; "" = the roots
	names    names
	line     map[uint64]bool // ordinals of the entries on the path Options.Line; nil = all paths
}

// plant returns the part of the tree t that o selects.
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

// has reports whether a node is on a path to write.
func (f *forest) has(n transcript.Node) bool { return f.line == nil || f.line[n.Ordinal] }

// chosen returns the index of the main version: the one on the path to the head, else the newest one.
func chosen(versions []transcript.Node) int {
	for i, n := range versions {
		if n.OnPath {
			return i
		}
	}
	return len(versions) - 1
}

// fork returns the steps of the children of an entry ("" = the roots): the main version and the others, oldest first.
// main.of is 0 if there are no children.
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

const (
	maxLinks = 100 // maximum number of versions at a fork that are linked; of more, only the number is shown
	maxDepth = 32  // maximum depth of folds; deeper versions are written without a fold
)

// nested yields the steps of the whole tree. At a fork, the other versions with all their descendants come before the
// main version.
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
				continue // deeper versions get no fold of their own
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

// lines yields the steps of the whole tree path by path: first the path to the head, then for each other version an
// open step and the path that begins with it.
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

// writer is an output format.
type writer interface {
	begin(s *coppice.Session) error
	step(s step, e transcript.Entry) error // e is set if s is a message
	end() error
}

// write reads the bodies of the steps that plan yields, in batches, and passes both to the writer w.
func write(
	ctx context.Context, s *coppice.Session, o *Options, plan func(yield func(step) error) error, w writer,
) error {
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
				if o != nil && o.Redact != nil {
					e.Raw = o.Redact(e.Raw)
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

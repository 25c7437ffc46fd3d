package erase

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/blob"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/transcript"
)

// facts are what is known of one segment, or of the tail, after it was read once.
type facts struct {
	order   []string          // ids of its lines that go, in order
	erased  map[uint64]erased // its lines that go
	texts   map[string]bool   // previews and titles that its commits and its header have
	images  map[string]bool   // sums of images that lines which stay show
	removed map[string]bool   // sums of images that lines which go show

	span      span
	documents bool // of commits have something that goes
	marked    bool // a commit names a place in the imported file that may have something of an entry
}

// erased is a line that goes.
type erased struct {
	id        string
	stub      []byte
	amendment bool     // it amended an entry that goes
	preview   string   // of the entry as it was
	text      string   // of the entry as it was, in one line and in lower case: titles begin with a capital
	leaves    []string // the strings of its content

	// Of the entry, and of the messages before and after it in the log; zero = there is none. What a file has between
	// these two is of this entry, or of no message.
	time, after, until time.Time
}

// span is of a part of the log: the times of its first and its last message, and its lines that go after the last one.
type span struct {
	first, last time.Time
	open        []uint64
}

// findings are the facts of all of the log.
type findings struct {
	order      []string
	erased     map[uint64]erased
	amendments map[string]bool // ids of those that go
	previews   map[string]bool
	texts      []string
	images     map[string]bool
	removed    map[string]bool
	span       span
	documents  bool // those of a commit have something that goes
}

// look reads all of the log that it has not read before.
func (e *eraser) look(ctx context.Context, st *state.State) error {
	e.found = findings{
		erased: map[uint64]erased{}, amendments: map[string]bool{}, previews: map[string]bool{},
		images: map[string]bool{}, removed: map[string]bool{},
	}
	var err error
	e.leaves(ctx, st.Segments, func(ref codec.Ref, ferr error) bool {
		if err = ferr; err == nil {
			err = e.lookAt(ctx, ref)
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	if len(st.Tail) > 0 {
		f := newFacts()
		if err := e.lines(f, st.Tail); err != nil {
			return err
		}
		e.found.add(f)
	}
	return nil
}

func newFacts() *facts {
	return &facts{
		erased: map[uint64]erased{}, texts: map[string]bool{}, images: map[string]bool{}, removed: map[string]bool{},
	}
}

// add takes in the facts of a segment.
func (f *findings) add(s *facts) {
	f.order, f.documents = append(f.order, s.order...), f.documents || s.documents
	f.span.next(s.span.first, f.erased)
	for ord, l := range s.erased {
		if l.after.IsZero() {
			l.after = f.span.last
		}
		f.erased[ord] = l
		if l.amendment {
			f.amendments[l.id] = true
		}
		if l.preview != "" {
			f.previews[l.preview] = true
		}
		if l.text != "" {
			f.texts = append(f.texts, l.text)
		}
	}
	f.span.open = append(f.span.open, s.span.open...)
	if !s.span.last.IsZero() {
		f.span.last = s.span.last
	}
	for sum := range s.images {
		f.images[sum] = true
	}
	for sum := range s.removed {
		f.removed[sum] = true
	}
}

// next takes in that the next message has a time.
func (s *span) next(at time.Time, of map[uint64]erased) {
	if at.IsZero() {
		return
	}
	for _, ord := range s.open {
		l := of[ord]
		l.until = at
		of[ord] = l
	}
	s.open = nil
	if s.first.IsZero() {
		s.first = at
	}
}

// lookAt reads one sealed segment.
func (e *eraser) lookAt(ctx context.Context, ref codec.Ref) error {
	seg := segmentOf(ref)
	f := e.facts[seg.Name()]
	if f == nil {
		c, err := e.contents(ctx, ref)
		if err != nil {
			return err
		}
		f = newFacts()
		f.texts[rawjson.Text(rawjson.Field(c.Opening.Header, "title"))] = true
		if err := e.lines(f, c.Lines); err != nil {
			return err
		}
		e.facts[seg.Name()] = f
	}
	e.found.add(f)
	return nil
}

// lines takes in the lines of a segment, or of the tail.
func (e *eraser) lines(f *facts, all []segment.Line) error {
	for _, l := range all {
		if err := e.line(f, l); err != nil {
			return err
		}
	}
	return e.lookInside(f, all)
}

// line takes in one line.
func (e *eraser) line(f *facts, l segment.Line) error {
	if l.Commit {
		rec, err := checkpoint.VerifiedRecord(l.Raw)
		if err != nil {
			return err
		}
		f.marked = f.marked || quotesMark(rec.Source)
		if b := rec.Base; b != nil {
			f.marked = f.marked || quotesMark(b.Source)
			f.texts[b.Title], f.texts[b.First], f.texts[b.Outline.Preview] = true, true, true
		}
		if rec.Outline != nil {
			f.texts[rec.Outline.Preview] = true
		}
		return nil
	}
	head, err := transcript.ParseLine(l.Raw)
	if err != nil {
		return err
	}
	entry := head.Entry(l.Ord)
	a, amends := entry.Amendment()
	_, already := entry.Erased()
	goes := !already && (e.ids[entry.ID] || amends && a.Body != nil && e.ids[a.Target])
	for _, ref := range blob.Refs(l.Raw) {
		if goes {
			f.removed[ref.Sum] = true
		} else {
			f.images[ref.Sum] = true
		}
	}
	if title, ok := entry.Title(); ok {
		f.texts[title] = true
	}
	after := f.span.last
	if entry.Type == "message" && !entry.Time.IsZero() {
		f.span.next(entry.Time, f.erased)
		f.span.last = entry.Time
	}
	if !goes {
		return nil
	}
	if amends && !e.ids[a.Target] {
		e.bare[a.Target] = true
	}
	gone := erased{id: entry.ID, amendment: amends, preview: transcript.RowOf(head, codec.NoParent).Preview}
	if gone.stub, err = entry.Erase(e.reason, e.at); err != nil {
		return err
	}
	stay := leavesOf(gone.stub)
	for _, text := range leavesOf(entry.Body()) {
		// else it is a role, an id, or the name of a tool
		if !slices.Contains(stay, text) && !slices.Contains(blockTypes, text) {
			gone.leaves = append(gone.leaves, text)
		}
	}
	gone.time, gone.after = entry.Time, after
	f.span.open = append(f.span.open, l.Ord)
	gone.text = oneLine(strings.ToLower(strings.Join(gone.leaves, " ")))
	f.order = append(f.order, entry.ID)
	f.erased[l.Ord] = gone
	return nil
}

// blockTypes are the types of the blocks of messages.
var blockTypes = []string{"text", "thinking", "toolCall", "image"}

// oneLine is text with each run of white space as one space.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// titleMin is the shortest part of a text, in bytes, that a title is taken to quote.
const titleMin = 4

// quotes reports whether a preview or a title has words of what goes.
func (f *findings) quotes(text string) bool {
	if text == "" || text == transcript.ErasedText {
		return false
	}
	if f.previews[text] {
		return true
	}
	part := oneLine(strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(strings.TrimSpace(text), "…"), "...")))
	if len(part) < titleMin {
		return false
	}
	return slices.ContainsFunc(f.texts, func(t string) bool { return strings.Contains(t, part) })
}

// clean returns a text that quotes nothing of what goes.
func (f *findings) clean(text string) string {
	if f.quotes(text) {
		return transcript.ErasedText
	}
	return text
}

// touches reports whether a segment has to be written again.
func (f *findings) touches(s *facts) bool {
	if len(s.erased) > 0 || s.documents || s.marked && len(f.erased) > 0 {
		return true
	}
	for text := range s.texts {
		if f.quotes(text) {
			return true
		}
	}
	return false
}

// leaves calls visit with the references to all sealed segments, oldest first, until it returns false.
func (e *eraser) leaves(ctx context.Context, m checkpoint.SegmentMap, visit func(codec.Ref, error) bool) {
	var down func(level int, ref codec.Ref) bool
	down = func(level int, ref codec.Ref) bool {
		if level == 0 {
			return visit(ref, nil)
		}
		refs, _, err := e.fold(ctx, level, ref)
		if err != nil {
			return visit(ref, err)
		}
		for _, r := range refs {
			if !down(level-1, r) {
				return false
			}
		}
		return true
	}
	m.Refs(func(level int, ref codec.Ref) bool { return down(level, ref) })
}

// fold reads an index object.
func (e *eraser) fold(ctx context.Context, level int, ref codec.Ref) ([]codec.Ref, [][]byte, error) {
	key := layout.IndexKey(e.cfg.Session, level, segmentOf(ref))
	p, _, err := e.cfg.Backend.Get(ctx, key, backend.Range{})
	if err != nil {
		return nil, nil, err
	}
	if err := ref.Verify(p); err != nil {
		return nil, nil, store.Corrupt(key, 0, err)
	}
	refs, skeletons, err := codec.DecodeIndex(p)
	if err != nil {
		return nil, nil, store.Corrupt(key, 0, err)
	}
	return refs, skeletons, nil
}

// contents reads a sealed segment.
func (e *eraser) contents(ctx context.Context, ref codec.Ref) (segment.Contents, error) {
	seg := segmentOf(ref)
	key := seg.SealedKey(e.cfg.Session)
	p, _, err := e.cfg.Backend.Get(ctx, key, backend.Range{})
	if err != nil {
		return segment.Contents{}, err
	}
	err = ref.Verify(p)
	var raw []byte
	if err == nil {
		raw, _, err = codec.DecodeSegment(p, backend.MaxObjectSize)
	}
	var c segment.Contents
	if err == nil {
		c, err = segment.Read(raw, seg)
	}
	if err == nil && c.End < len(raw) {
		err = fmt.Errorf("%d bytes after the last commit: %w", len(raw)-c.End, codec.ErrChecksum)
	}
	if err != nil {
		return c, store.Corrupt(key, 0, err)
	}
	return c, nil
}

func segmentOf(ref codec.Ref) layout.Segment {
	return layout.Segment{First: ref.First, Epoch: ref.Epoch, Rnd: ref.Rnd}
}

// leavesMost bounds how deep JSON is read within strings of JSON: arguments of calls are kept so.
const leavesMost = 3

// leavesOf returns all strings within a JSON value, the names of members left out, and those within strings that are
// JSON themselves.
func leavesOf(val []byte) []string { return leavesWithin(val, leavesMost) }

func leavesWithin(val []byte, depth int) (out []string) {
	for i := 0; i < len(val); {
		if val[i] != '"' {
			i++
			continue
		}
		end, err := rawjson.SkipString(val, i)
		if err != nil {
			return out
		}
		next := rawjson.Space(val, end)
		if next >= len(val) || val[next] != ':' {
			text := rawjson.Text(val[i:end])
			out = append(out, text)
			if inner := strings.TrimSpace(text); depth > 0 && inner != "" && (inner[0] == '{' || inner[0] == '[') {
				out = append(out, leavesWithin([]byte(inner), depth-1)...)
			}
		}
		i = end
	}
	return out
}

// joined returns lines, each with its line feed.
func joined(lines [][]byte) []byte {
	if len(lines) == 0 {
		return nil
	}
	return append(bytes.Join(lines, []byte{'\n'}), '\n')
}

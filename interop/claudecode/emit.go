package claudecode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/coppice-go/coppice/internal/diag"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/claudecode/internal/graph"
	"github.com/coppice-go/coppice/interop/claudecode/jsonl"
	"github.com/coppice-go/coppice/transcript"
)

// maxHeld bounds the lines that wait for a parent that comes later in the file.
const maxHeld = 64 << 20

var errChanged = errors.New("the file changed while it was read")

// emitter is the second reading: it turns the rows of one child into entries, parents first.
type emitter struct {
	x     *graph.Index
	child int32
	rows  []int32
	fetch func(row int32) ([]byte, error)
	now   time.Time
	title string

	begun, over bool
	parts       map[int32][]piece   // by the last row of a message: its pieces so far
	waits       map[int32][][]piece // by row: what hangs on it
	held        int
	given       int32 // the row that was given last
	last        time.Time
	line        []graph.Member // of the line at hand
	out         []transcript.Draft
	at          int
}

func newEmitter(x *graph.Index, child int32, now time.Time, fetch func(int32) ([]byte, error)) *emitter {
	e := &emitter{
		x: x, child: child, rows: x.List(child), fetch: fetch, now: now, title: x.Title(),
		parts: map[int32][]piece{}, waits: map[int32][][]piece{}, given: graph.None, last: x.Created,
	}
	for _, i := range e.rows {
		x.Done[i/64] &^= 1 << (i % 64)
	}
	return e
}

// next gives the next entry; io.EOF = no more.
func (e *emitter) next() (transcript.Draft, error) {
	for e.at == len(e.out) {
		clear(e.out)
		e.out, e.at = e.out[:0], 0
		switch {
		case !e.begun:
			e.begin()
		case len(e.rows) > 0:
			i := e.rows[0]
			e.rows = e.rows[1:]
			raw, err := e.fetch(i)
			if err != nil {
				return transcript.Draft{}, err
			}
			e.step(i, raw)
		case !e.over:
			e.over = true
			e.flush()
			e.finish()
		default:
			return transcript.Draft{}, io.EOF
		}
	}
	e.at++
	return e.out[e.at-1], nil
}

// begin gives the entry on which everything hangs, so that several beginnings are one tree.
func (e *emitter) begin() {
	e.begun = true
	data := []byte{'{'}
	for _, f := range []struct{ name, val string }{{"sessionId", e.x.Session}, {"agentId", e.x.AgentID}} {
		if f.val != "" {
			data = graph.AddField(data, f.name, rawjson.AppendString(nil, f.val))
		}
	}
	data = append(graph.AddField(data, "envelope", e.x.Env.Object()), '}')
	p := place{id: graph.RootID, stamp: jsonl.AppendTime(nil, e.time()), row: &graph.Row{}}
	e.line = []graph.Member{{Key: []byte("type"), Val: []byte(`"session"`)}}
	e.custom(p, data)
}

// finish points at the end of the conversation if another entry came last.
func (e *emitter) finish() {
	if tip := e.x.Tips[e.child]; tip != graph.None && tip != e.given {
		p := place{id: "cc-head", parent: e.x.ID(tip), stamp: jsonl.AppendTime(nil, e.time()), row: &e.x.Rows[tip]}
		e.line = []graph.Member{{Key: []byte("type"), Val: []byte(`"head"`)}}
		e.custom(p, []byte("{}"))
	}
}

func (e *emitter) isDone(i int32) bool { return e.x.Done[i/64]>>(i%64)&1 == 1 }

// step takes one line in.
func (e *emitter) step(i int32, raw []byte) {
	r := &e.x.Rows[i]
	if r.Unit != i {
		e.parts[r.Unit] = append(e.parts[r.Unit], piece{i, bytes.Clone(raw)})
		return
	}
	var one [1]piece
	pieces := append(one[:0], e.parts[i]...)
	delete(e.parts, i)
	pieces = append(pieces, piece{i, raw})
	if r.Up == graph.None || e.isDone(r.Up) {
		e.give(pieces)
		return
	}
	pieces[len(pieces)-1].raw = bytes.Clone(raw)
	e.waits[r.Up] = append(e.waits[r.Up], slices.Clone(pieces))
	if e.held += len(raw); e.held > maxHeld {
		e.x.Note(r.Line, diag.Converted, "too much waits for its parent: lines before this one come before theirs")
		e.flush()
	}
}

// give makes entries of a row, and of what waited for it.
func (e *emitter) give(pieces []piece) {
	todo := [][]piece{pieces}
	for len(todo) > 0 {
		pieces, todo = todo[0], todo[1:]
		i := pieces[len(pieces)-1].row
		e.entries(pieces)
		e.x.Done[i/64] |= 1 << (i % 64)
		e.given = i
		if len(e.waits) > 0 {
			waiting := e.waits[i]
			delete(e.waits, i)
			for _, w := range waiting {
				e.held -= len(w[len(w)-1].raw)
			}
			todo = append(todo, waiting...)
		}
	}
}

// flush gives what waits, in the order of the file, whatever it waits for.
func (e *emitter) flush() {
	var all [][]piece
	for _, w := range e.waits {
		all = append(all, w...)
	}
	row := func(p []piece) int { return int(p[len(p)-1].row) }
	slices.SortFunc(all, func(a, b []piece) int { return row(a) - row(b) })
	clear(e.waits)
	e.held = 0
	for _, p := range all {
		e.give(p)
	}
}

// tape gives the rows' lines from a stream. Rows must be asked for in the order of the file.
type tape struct {
	x      *graph.Index
	in     io.ReadCloser
	s      *jsonl.Scanner
	line   []byte
	number int
}

func newTape(x *graph.Index, in io.ReadCloser) *tape {
	return &tape{x: x, in: in, s: jsonl.NewScanner(in)}
}

func (t *tape) get(i int32) ([]byte, error) {
	r := &t.x.Rows[i]
	for t.number < int(r.Line) {
		line, _, err := t.s.Line()
		if errors.Is(err, io.EOF) {
			err = errChanged
		}
		if err != nil {
			return nil, err
		}
		t.line = line
		t.number++
	}
	if r.Flags&graph.FlagPart != 0 {
		return t.line, nil
	}
	from, to := int(r.At), int(r.At)+int(r.Size)
	if to > len(t.line) || t.line[from] != '{' || t.line[to-1] != '}' {
		return nil, fmt.Errorf("line %d: %w", r.Line, errChanged)
	}
	return t.line[from:to], nil
}

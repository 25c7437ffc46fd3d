package claudecode

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"sync"

	"github.com/coppice-go/coppice/internal/parallel"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/transcript"
)

// scanLanes is the number of batches processed in parallel, in either pass.
const scanLanes = 2

// scanFile makes the first pass. Lines are parsed in parallel and added in order. With from it begins there; known is
// the state of the lines before.
func scanFile(src interop.Source, from *interop.Mark, known *resumeState) (x *index, err error) {
	in, err := src.Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	x = &index{
		byKey: map[lineKey]int32{}, Calls: map[lineKey]toolCall{}, msgs: map[lineKey]int32{},
		agent: map[string]bool{}, kept: map[int32]keptSegment{}, goesOn: map[int32]int32{},
		unmet: map[int32][]lineKey{}, newer: map[int32]int32{}, ended: noRow,
		open: map[lineKey]int32{}, mark: noRow,
	}
	lines := jsonl.NewLineReader(in)
	if from != nil {
		lines.Start(int(from.Line), from.Offset)
		if err := known.begun(x, from.Line); err != nil {
			return nil, err
		}
	}
	count, err := x.addAll(lines)
	if err != nil {
		return nil, err
	}
	if from != nil && !x.onlyNow() {
		return nil, fmt.Errorf("%s: %w", src.Name, interop.ErrWhole)
	}
	if x.genuine == 0 {
		return nil, fmt.Errorf("%w: None of its %d lines is one of Claude Code's", interop.ErrNotSession, count)
	}
	x.resolve()
	x.findMark()
	return x, nil
}

// addAll adds every line to the index and returns the number of lines. It stops after maxRefused lines without one of
// Claude Code's.
func (x *index) addAll(r *jsonl.LineReader) (count int, err error) {
	seed, gate := maphash.MakeSeed(), jsonl.NewGate()
	spare := sync.Pool{New: func() any { return newReading(seed) }}
	p := parallel.NewPipe(scanLanes, func() (*reading, error) {
		gate.Wait()
		rd, _ := spare.Get().(*reading)
		err := rd.Fill(r)
		gate.Out(rd.Size())
		return rd, err
	}, (*reading).work)
	defer p.Close()
	defer gate.Close()
	var said jsonl.OnceFilter
	for {
		rd, err := p.Next()
		if errors.Is(err, io.EOF) {
			return r.Number(), nil
		}
		if err != nil {
			return 0, err
		}
		for i := range rd.found {
			g := &rd.found[i]
			if g.remark == nil {
				err = x.add(&g.object, &g.fact)
			} else if said.First(*g.remark) {
				x.Bad += g.remark.Bad
				x.refused += g.remark.Bad
				x.Note(int32(g.remark.Number), g.remark.Kind, g.remark.Detail)
			}
			if err != nil {
				return 0, err
			}
			if g.remark == nil && x.genuine == 0 && x.refused >= maxRefused {
				return g.object.Number, nil
			}
		}
		gate.Back(rd.Size())
		spare.Put(rd)
	}
}

// reading is a batch of lines and the findings in it.
type reading struct {
	jsonl.Batch
	found   []finding
	calls   []toolUse // of all lines
	answers []lineKey
	find    jsonl.Finder
	head    lineHead // of the object that was checked last
	seed    maphash.Seed
}

// finding is an object, or a diagnostic of a line.
type finding struct {
	remark *jsonl.Remark
	object jsonl.Object
	fact   lineFacts
}

func newReading(seed maphash.Seed) *reading {
	rd := &reading{seed: seed}
	rd.find.Member = rd.head.Take
	rd.find.Accepts = func([]byte) bool { return rd.head.Known() }
	rd.find.Note = func(r jsonl.Remark) {
		rd.found = append(rd.found, finding{remark: &r})
		if r.Damaged && r.Kind == transcript.DiagBadLine {
			rd.lost(r.Piece)
		}
	}
	return rd
}

// lost records a damaged line if its ID is still readable: rows that name it continue from its place.
func (rd *reading) lost(o jsonl.Object) {
	h, is := readLineHead(o.Raw), jsonl.RemainsOf(o.Raw, "uuid", "parentUuid", true)
	if is.ID == nil {
		return
	}
	h.UUID, h.Parent, h.Type = is.ID, is.Parent, []byte(`"damaged"`)
	f := rd.factOf(&o, &h)
	f.row.Kind, f.damaged = kindPlace, true
	rd.found = append(rd.found, finding{object: o, fact: f})
}

// work parses every line.
func (rd *reading) work() *reading {
	rd.found, rd.calls, rd.answers = rd.found[:0], rd.calls[:0], rd.answers[:0]
	for _, l := range rd.Lines {
		rd.find.Take(l)
		for o, ok := rd.find.Next(); ok; o, ok = rd.find.Next() {
			if o.Part {
				rd.head = readLineHead(o.Raw)
			}
			rd.found = append(rd.found, finding{object: o, fact: rd.factOf(&o, &rd.head)})
		}
	}
	return rd
}

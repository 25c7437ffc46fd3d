package claudecode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/transcript"
)

// maxBatch bounds the lines of small sidechains that one pass over the file collects.
const maxBatch = 16 << 20

// Children yields the sidechains in the file, then the transcripts of agents in other files. A damaged file does not
// affect the others. The caller must read a child's entries before it asks for the next one.
func (r *Reader) Children() iter.Seq2[interop.Child, error] {
	return func(yield func(interop.Child, error) bool) {
		if _, err := r.Header(); err != nil {
			yield(interop.Child{}, err)
			return
		}
		if r.sidechains(yield) {
			r.beside(yield)
		}
	}
}

// sidechains yields the sidechains in the file, many from each pass. It returns false if the caller stops.
func (r *Reader) sidechains(yield func(interop.Child, error) bool) bool {
	x := r.x
	for c := int32(1); c <= x.Children; {
		end, size := c, int64(0)
		for end <= x.Children && (end == c || size+sizeOf(x, end) <= maxBatch) {
			size += sizeOf(x, end)
			end++
		}
		in, err := r.openAt(x.Rows[x.List(c)[0]].Offset, x.Rows[x.List(c)[0]].Line)
		if err != nil {
			return yield(interop.Child{}, err)
		}
		line := in.get
		if end > c+1 || size <= maxBatch {
			line, err = together(x, in, c, end)
		}
		for ; c < end && err == nil; c++ {
			child, fault := r.sidechain(c, line)
			if err = fault; err == nil && !yield(child, nil) {
				return errors.Join(in.in.Close()) == nil && false
			}
		}
		if err = errors.Join(err, in.in.Close()); err != nil {
			return yield(interop.Child{}, err) && false
		}
	}
	return true
}

func sizeOf(x *index, child int32) (n int64) {
	for _, i := range x.List(child) {
		n += int64(x.Rows[i].Size)
	}
	return n
}

// openAt opens the file at a line, and seeks if the file allows it.
func (r *Reader) openAt(off int64, line int32) (*tape, error) {
	in, err := r.src.Open()
	if err != nil {
		return nil, err
	}
	if s, ok := in.(io.Seeker); ok {
		if _, err := s.Seek(off, io.SeekStart); err != nil {
			return nil, errors.Join(fmt.Errorf("seek in %s: %w", r.src.Name, err), in.Close())
		}
		t := newTape(r.x, in)
		t.number = int(line) - 1
		return t, nil
	}
	return newTape(r.x, in), nil
}

// together reads the lines of the children from c up to end.
func together(x *index, in *tape, c, end int32) (func(int32) ([]byte, error), error) {
	lines := map[int32][]byte{}
	for i := x.List(c)[0]; int(i) < len(x.Rows); i++ {
		if child := x.Rows[i].Child; child < c || child >= end {
			continue
		}
		raw, err := in.get(i)
		if err != nil {
			return nil, err
		}
		lines[i] = bytes.Clone(raw)
	}
	return func(i int32) ([]byte, error) { return lines[i], nil }, nil
}

func (r *Reader) sidechain(c int32, line func(int32) ([]byte, error)) (interop.Child, error) {
	x := r.x
	first := x.List(c)[0]
	raw, err := line(first)
	if err != nil {
		return interop.Child{}, err
	}
	o, created, stamp := newOrder(x, c, r.o.Now, line), x.Created, rawjson.Field(raw, "timestamp")
	t, ok := jsonl.Stamp(stamp)
	if ok {
		created, o.last = t, t.UnixMilli()
	}
	if !ok || !rawjson.IsString(stamp) {
		stamp = jsonl.AppendTime(nil, time.UnixMilli(o.last))
	}
	h := interop.Header{ID: x.ID(first), Cwd: x.Cwd, Parent: r.header.ID, Created: created, Version: 1}
	agent := agentName(rawjson.Text(rawjson.Field(raw, "agentId")))
	if agent == "" {
		agent = "sidechain"
	}
	h.Raw = headerLine(h, stamp, agent)
	return interop.Child{Header: h, Entries: each(newEmitter(x, o, r.spare).next)}, nil
}

func each(next func() (transcript.Draft, error)) iter.Seq2[transcript.Draft, error] {
	return func(yield func(transcript.Draft, error) bool) {
		for {
			d, err := next()
			if errors.Is(err, io.EOF) || !yield(d, err) || err != nil {
				return
			}
		}
	}
}

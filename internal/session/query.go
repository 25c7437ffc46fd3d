package session

import (
	"bytes"
	"context"
	"slices"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

const queryBytes = 1 << 20 // lines that a query reads at once, unless one is longer

// Query chooses entries of a session.
type Query struct {
	Type   string                        // "" = all
	Custom string                        // customType; "" = all
	Before string                        // only ids that sort before this one; "" = all
	Wants  func(e transcript.Entry) bool // looks at the body; nil = all
	Newest bool                          // newest first
	// only ordinals from From to below To
	From, To uint64
}

// Scan is the result of a query that is still being read: the durable entries as of one moment. It belongs to one
// goroutine at a time.
type Scan struct {
	h     *Handle
	st    *state.State
	q     Query
	ords  []uint64 // candidates that are not read yet, ascending
	sizes []uint32 // of their lines
	chunk int      // candidates that are read at once
	ready []transcript.Entry
}

// Scan finds the candidates of a query by the columns of skeletons, 12 bytes of memory each. It reads no bodies.
func (h *Handle) Scan(ctx context.Context, q Query) (*Scan, error) {
	s := &Scan{h: h, st: h.State(), q: q, chunk: readFirst}
	from, to := q.From, min(q.To, s.st.Next)
	if from >= to {
		return s, nil
	}
	for sk, err := range h.j.Skeletons(ctx, s.st, from) {
		if err != nil {
			return nil, err
		}
		s.rows(sk, from, to)
		if sk.First()+uint64(sk.Len()) >= to {
			break
		}
	}
	return s, nil
}

// rows adds the rows of a skeleton that may match.
func (s *Scan) rows(sk *codec.Skeleton, from, to uint64) {
	kinds := make([]bool, sk.Kinds())
	for k := range kinds {
		typ, _ := sk.KindAt(k)
		kinds[k] = s.q.Type == "" || typ == s.q.Type
	}
	custom := ""
	if s.q.Custom != "" {
		custom = transcript.RowOf(transcript.Line{Type: "custom", Raw: customLine(s.q.Custom)}, codec.NoParent).Preview
	}
	var id []byte
	for i := range sk.Len() {
		ord := sk.First() + uint64(i)
		if ord < from || ord >= to || !kinds[sk.KindIndex(i)] {
			continue
		}
		if custom != "" && s.q.Type == "custom" {
			if have := sk.Preview(i); have != "" && have != custom {
				continue
			}
		}
		if s.q.Before != "" {
			if id = sk.AppendID(id[:0], i); bytes.Compare(id, []byte(s.q.Before)) >= 0 {
				continue
			}
		}
		s.ords, s.sizes = append(s.ords, ord), append(s.sizes, sk.Size(i))
	}
}

// customLine is as much of a line as its preview needs.
func customLine(kind string) []byte {
	return rawjson.WithField([]byte("{}"), "customType", rawjson.AppendString(nil, kind))
}

func customOf(e transcript.Entry) string { return rawjson.Text(rawjson.Field(e.Raw, "customType")) }

// Next returns the next entry that matches; false = there is none.
func (s *Scan) Next(ctx context.Context) (transcript.Entry, bool, error) {
	for len(s.ready) == 0 {
		if len(s.ords) == 0 {
			return transcript.Entry{}, false, nil
		}
		if err := s.Fill(ctx); err != nil {
			return transcript.Entry{}, false, err
		}
	}
	e := s.ready[0]
	s.ready = s.ready[1:]
	return e, true, nil
}

// Fill reads the next candidates, if no entries are ready.
func (s *Scan) Fill(ctx context.Context) error {
	if len(s.ready) > 0 || len(s.ords) == 0 {
		return nil
	}
	for l, err := range s.h.j.Lines(ctx, s.st, s.take()) {
		if err != nil {
			return err
		}
		if l.Commit {
			continue
		}
		e, err := Stored(l)
		if err != nil {
			return err
		}
		if s.q.Custom != "" && customOf(e) != s.q.Custom || s.q.Wants != nil && !s.q.Wants(e) {
			continue
		}
		if e.Raw, err = s.h.images.Text(ctx, s.st, e.Raw); err != nil {
			return err
		}
		s.ready = append(s.ready, e)
	}
	if s.q.Newest {
		slices.Reverse(s.ready)
	}
	return nil
}

// take returns the candidates that are read next, ascending.
func (s *Scan) take() (ords []uint64) {
	n, size := 0, 0
	for n < min(s.chunk, len(s.ords)) {
		at := n
		if s.q.Newest {
			at = len(s.ords) - 1 - n
		}
		if size += int(s.sizes[at]); n > 0 && size > queryBytes {
			break
		}
		n++
	}
	s.chunk = min(2*s.chunk, readMost)
	if s.q.Newest {
		at := len(s.ords) - n
		ords, s.ords, s.sizes = s.ords[at:], s.ords[:at], s.sizes[:at]
	} else {
		ords, s.ords, s.sizes = s.ords[:n], s.ords[n:], s.sizes[n:]
	}
	return ords
}

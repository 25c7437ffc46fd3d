package harness

import (
	"errors"
	"fmt"
	"io"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
	"github.com/coppice-go/coppice/transcript"
)

// ErrNoEnd is wrapped by the error for a file to which nothing can be appended: the harness refuses a file with damaged
// lines, and drops an incomplete last line.
var ErrNoEnd = errors.New("the file's own program would refuse it")

// End is the end of a file, where it is continued. It holds an ID or two for each entry that the reader made and the
// file does not have.
type End struct {
	fileState
	place map[string]string
}

// ReadEnd reads a file to its end.
func ReadEnd(src interop.Source) (end *End, err error) {
	r := NewReader(src, interop.Options{})
	defer func() { err = errors.Join(err, r.Close()) }()
	h, err := r.Header()
	if err != nil {
		return nil, err
	}
	e := &End{place: map[string]string{}}
	for {
		d, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		l, err := transcript.ParseLine(d.Raw)
		if err != nil {
			return nil, err
		}
		e.learn(l)
	}
	if h.Made || len(r.Diagnostics()) > 0 {
		return nil, fmt.Errorf("%w: %s", ErrNoEnd, reason(r.Diagnostics()))
	}
	e.fileState = r.state()
	return e, nil
}

func reason(found []transcript.Diagnostic) string {
	if len(found) == 0 {
		return "it has no header"
	}
	return fmt.Sprintf("line %d: %s", found[0].Ordinal, found[0].Detail)
}

// learn records the place in the file of an entry that the file does not have.
func (e *End) learn(l transcript.Line) {
	if !l.HasParent {
		l.ParentID = ""
	}
	if hasMadeID(l.ID) || l.Type == "usage" {
		e.place[l.ID] = e.at(l.ParentID)
	}
}

// at returns the file's entry for one of the session, as a parent or a place.
func (e *End) at(id string) string {
	if at, ok := e.place[id]; ok {
		return at
	}
	return id
}

// known reports whether the file has an entry for an ID, and returns the entry's ID.
func (e *End) known(val []byte) ([]byte, bool) {
	id := e.at(rawjson.Text(val))
	return piwriter.OrNull(id), id != ""
}

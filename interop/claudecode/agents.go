package claudecode

import (
	"fmt"
	"io"
	"path"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/transcript"
)

// search returns a search for the files that belong to the session.
func (r *Reader) search() *sidecar {
	return newSidecar(r.src, r.x.Session, func(detail string) { r.x.Note(0, transcript.DiagNoted, detail) })
}

// beside yields the transcripts of the agents that the file names, then those whose content names this session. Each is
// yielded once.
func (r *Reader) beside(yield func(interop.Child, error) bool) {
	if r.src.Beside == nil || r.x.AgentID != "" {
		return
	}
	// All three are keyed by file name without folder.
	s, given, missed := r.search(), map[string]bool{}, map[string]error{}
	for _, id := range r.x.Agents {
		file := agentFile(id)
		if given[file] || missed[file] != nil {
			continue
		}
		in, name, err := s.Find(file)
		if missed[file] = err; err != nil {
			continue
		}
		given[file] = true
		if !r.agent(name, in, yield) {
			return
		}
	}
	for _, name := range s.Agents(r.x.Runs) {
		if file := path.Base(name); given[file] || !s.Owns(name) {
			continue
		}
		given[path.Base(name)] = true
		if !r.agent(name, nil, yield) {
			return
		}
	}
	for _, id := range r.x.Agents {
		if file := agentFile(id); missed[file] != nil && !given[file] {
			given[file] = true
			r.x.Note(0, transcript.DiagNoted, fmt.Sprintf("agent %s: %s", id, missed[file]))
		}
	}
}

// agent yields one transcript. It reads from in first if in is open. It returns false if the caller stops.
func (r *Reader) agent(name string, in io.ReadCloser, yield func(interop.Child, error) bool) bool {
	child := NewReader(interop.Source{Name: name, Open: func() (io.ReadCloser, error) {
		if first := in; first != nil {
			in = nil
			return first, nil
		}
		return r.src.Beside(name)
	}}, r.o)
	h, err := child.Header()
	if err != nil {
		r.x.Note(0, transcript.DiagNoted, fmt.Sprintf("%s: %s", name, err))
		return true
	}
	id := child.x.AgentID
	if id == "" {
		id = agentOf(name)
	}
	h.Parent = r.header.ID
	h.Raw = headerLine(h, jsonl.AppendTime(nil, h.Created), id)
	r.x.Bad += child.x.Bad
	more := yield(interop.Child{Header: h, Entries: each(child.Next), File: name}, nil)
	for _, d := range child.Diagnostics() {
		r.x.Diag.Add(d.Entry, d.Ordinal, d.Kind, name+": "+d.Detail)
	}
	if err := child.Close(); err != nil && more {
		more = yield(interop.Child{}, err)
	}
	return more
}

package claudecode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/internal/diag"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/claudecode/internal/graph"
	"github.com/coppice-go/coppice/interop/claudecode/jsonl"
)

// The search for transcripts that no line names, and its bounds.
const (
	maxListed = 10_000  // names that are looked at, in all folders together
	minFirst  = 1 << 14 // bytes that are read of a file to learn whose it is,
	maxFirst  = 1 << 20 // and of one that does not say it so soon

	sideFolder  = "/subagents" // where they lie, beside the session's file; of old beside it
	agentPrefix = "agent-"
	extension   = ".jsonl"
)

// beside yields the transcripts of subagents that the file speaks of and that lie beside it, then those that
// say themselves whose they are. Each comes once.
func (r *Reader) beside(yield func(interop.Child, error) bool) {
	if r.src.Beside == nil || r.x.AgentID != "" {
		return
	}
	given := map[string]bool{} // names of files, without folder
	for _, id := range r.x.Agents {
		file := agentFile(id)
		if given[file] {
			continue
		}
		given[file] = true
		in, name, err := r.find(file)
		if err != nil {
			r.x.Note(0, diag.Noted, fmt.Sprintf("subagent %s: %s", id, err))
			continue
		}
		if !r.agent(name, in, yield) {
			return
		}
	}
	for _, name := range r.listed() {
		if file := path.Base(name); given[file] || !r.owns(name) {
			continue
		}
		given[path.Base(name)] = true
		if !r.agent(name, nil, yield) {
			return
		}
	}
}

// agent yields one transcript, the first time from in if that is open. false: nobody wants more.
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
		r.x.Note(0, diag.Noted, fmt.Sprintf("%s: %s", name, err))
		return true
	}
	h.Parent = r.header.ID
	h.Raw = headerLine(h, jsonl.AppendTime(nil, h.Created))
	r.x.Bad += child.x.Bad
	more := yield(interop.Child{Header: h, Entries: each(child.Next)}, nil)
	for _, d := range child.Diagnostics() {
		r.x.Diag.Add(d.Entry, d.Ordinal, d.Kind, name+": "+d.Detail)
	}
	if err := child.Close(); err != nil && more {
		more = yield(interop.Child{}, err)
	}
	return more
}

// folders gives the side folders that a session may have, by the name of its file and by its id.
func (r *Reader) folders() []string {
	var dirs []string
	for _, id := range []string{r.base(), graph.AgentName(r.x.Session)} {
		if dir := id + sideFolder; id != "" && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// agentFile gives the name of a subagent's transcript.
func agentFile(id string) string {
	return agentPrefix + strings.TrimPrefix(id, agentPrefix) + extension
}

// find opens the transcript of a subagent.
func (r *Reader) find(file string) (in io.ReadCloser, name string, err error) {
	for _, dir := range append(r.folders(), ".") {
		name = path.Join(dir, file)
		in, err = r.src.Beside(name)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return in, name, err
		}
	}
	return nil, "", err
}

// listed gives the files that may be transcripts of subagents, by folder and name.
func (r *Reader) listed() (found []string) {
	if r.src.List == nil {
		return nil
	}
	left := maxListed
	for _, dir := range append(r.folders(), ".") {
		names, err := r.src.List(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.x.Note(0, diag.Noted, fmt.Sprintf("subagents in %s: %s", dir, err))
		}
		if len(names) > left {
			r.x.Note(0, diag.Noted, fmt.Sprintf("subagents in %s: %d names are not looked at, over the limit of %d", dir, len(names)-left, maxListed))
			names = names[:left]
		}
		left -= len(names)
		for _, name := range names {
			stem, ok := strings.CutSuffix(path.Base(name), extension)
			if ok && stem != "" && graph.AgentName(stem) == stem && name == path.Join(dir, stem+extension) &&
				(dir != "." || strings.HasPrefix(stem, agentPrefix) && stem != r.base()) {
				found = append(found, name)
			}
		}
	}
	return found
}

// owns reports whether a file says that it belongs to the session: by the first line that names a session,
// within maxFirst bytes. Of a file in the session's own folder that does not, a note is left.
func (r *Reader) owns(name string) bool {
	id, err := r.ownerOf(name)
	if err == nil && id != "" && (id == r.x.Session || id == r.base()) {
		return true
	}
	if path.Dir(name) != "." {
		if err == nil {
			err = fmt.Errorf("left out: it is of session %q", id)
		}
		r.x.Note(0, diag.Noted, fmt.Sprintf("%s: %s", name, err))
	}
	return false
}

func (r *Reader) ownerOf(name string) (id string, err error) {
	in, err := r.src.Beside(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	var head []byte
	for size := minFirst; size <= maxFirst; size *= 8 {
		more, err := io.ReadAll(io.LimitReader(in, int64(size-len(head))))
		if err != nil {
			return "", fmt.Errorf("read: %w", err)
		}
		head = append(head, more...)
		for line := range bytes.Lines(head) {
			if id := rawjson.Text(rawjson.Field(bytes.Trim(line, "\xef\xbb\xbf \t\r\n\x00"), "sessionId")); id != "" {
				return id, nil
			}
		}
		if len(head) < size {
			break
		}
	}
	return "", nil
}

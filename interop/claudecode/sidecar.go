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

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
)

// Bounds of the search.
const (
	maxListedFiles  = 10_000  // names in all folders of a kind together
	maxWorkflowRuns = 1000    // each run of a workflow has a folder
	minOwnerHead    = 1 << 14 // bytes read of a file to find its session
	maxOwnerHead    = 1 << 20 // bytes read if the first ones do not name it
)

const (
	agentsFolder = "/subagents" // of transcripts; older versions put them next to the session's file
	// In this folder each run of a workflow has a file. Its agents have a folder in agentsFolder.
	workflowsFolder = "/workflows"
	agentPrefix     = "agent-"
	fileExtension   = ".jsonl"
)

// sidecar finds other files that belong to a session: transcripts of its agents, and tool outputs that were too long
// for a line.
type sidecar struct {
	src     interop.Source
	session string // the session's ID
	base    string // name of its file without the extension; "" if it is not valid as a folder's name
	note    func(detail string)
}

// newSidecar returns a search for the files of the session in src. It reports findings to note.
func newSidecar(src interop.Source, session string, note func(detail string)) *sidecar {
	name := path.Base(strings.ReplaceAll(src.Name, `\`, "/"))
	return &sidecar{src: src, session: session, base: agentName(strings.TrimSuffix(name, fileExtension)), note: note}
}

// folders returns the possible paths of a folder of the session. The session's folder is named after its file or its
// ID.
func (s *sidecar) folders(kind string) []string {
	var dirs []string
	for _, id := range []string{s.base, agentName(s.session)} {
		if dir := id + kind; id != "" && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// agentFile returns the file name of an agent's transcript.
func agentFile(id string) string {
	return agentPrefix + strings.TrimPrefix(id, agentPrefix) + fileExtension
}

// agentOf returns the agent's ID in the file name of a transcript.
func agentOf(name string) string {
	return strings.TrimPrefix(strings.TrimSuffix(path.Base(name), fileExtension), agentPrefix)
}

// Find opens the transcript of an agent.
func (s *sidecar) Find(file string) (in io.ReadCloser, name string, err error) {
	for _, dir := range append(s.folders(agentsFolder), ".") {
		name = path.Join(dir, file)
		in, err = s.src.Beside(name)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return in, name, err
		}
	}
	return nil, "", err
}

// Agents returns the files that may be transcripts of agents, with their folders. runs are the workflow runs that the
// session's file names.
func (s *sidecar) Agents(runs []string) (found []string) {
	own := s.folders(agentsFolder)
	for _, name := range s.list(slices.Concat(own, s.runs(runs), []string{"."})) {
		stem, ok := strings.CutSuffix(path.Base(name), fileExtension)
		called := strings.HasPrefix(stem, agentPrefix) && name != s.base+fileExtension
		if ok && stem != "" && agentName(stem) == stem && (called || slices.Contains(own, path.Dir(name))) {
			found = append(found, name)
		}
	}
	return found
}

// runs returns the folders with the agents of workflow runs: of the named ones, and of those with a file.
func (s *sidecar) runs(named []string) (dirs []string) {
	ids := slices.Clone(named)
	for _, name := range s.list(s.folders(workflowsFolder)) {
		id, ok := strings.CutSuffix(path.Base(name), ".json")
		if ok && id != "" && agentName(id) == id {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) > maxWorkflowRuns {
		s.note(fmt.Sprintf("workflows: agents of %d runs are not looked for, over the limit of %d",
			len(ids)-maxWorkflowRuns, maxWorkflowRuns))
		ids = ids[:maxWorkflowRuns]
	}
	for _, dir := range s.folders(agentsFolder + workflowsFolder) {
		for _, id := range ids {
			dirs = append(dirs, path.Join(dir, id))
		}
	}
	return dirs
}

// list returns the files in folders, as paths for the source.
func (s *sidecar) list(dirs []string) (found []string) {
	if s.src.List == nil {
		return nil
	}
	left := maxListedFiles
	for _, dir := range dirs {
		names, err := s.src.List(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.note(fmt.Sprintf("files in %s: %s", dir, err))
		}
		if len(names) > left {
			s.note(fmt.Sprintf("files in %s: %d names are not looked at, over the limit of %d", dir, len(names)-left,
				maxListedFiles))
			names = names[:left]
		}
		left -= len(names)
		for _, name := range names {
			if file := path.Base(name); file != "." && file != ".." && file != "/" && !strings.Contains(file, `\`) &&
				name == path.Join(dir, file) {
				found = append(found, name)
			}
		}
	}
	return found
}

// Owns reports whether a file belongs to the session: its first line with a session ID, within the bounds, must name
// the session. A file in the session's own folder that does not is noted.
func (s *sidecar) Owns(name string) bool {
	id, err := s.ownerOf(name)
	if err == nil && id != "" && (id == s.session || id == s.base) {
		return true
	}
	if path.Dir(name) != "." {
		if err == nil {
			err = fmt.Errorf("left out: it is of session %q", id)
		}
		s.note(fmt.Sprintf("%s: %s", name, err))
	}
	return false
}

func (s *sidecar) ownerOf(name string) (id string, err error) {
	in, err := s.src.Beside(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	var head []byte
	for size := minOwnerHead; size <= maxOwnerHead; size *= 8 {
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

package omp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/transcript"
)

// DiagArtifacts is the kind of the diagnostic about files that stay in the session's artifact folder.
const DiagArtifacts = "artifacts"

// Artifacts is the field of an entry with the artifacts that the entry is the first to name: whole outputs of tools, of
// which the entry has a shortened form, and reports of agents. It is a list of {"name","text"}. Models do not see it.
const Artifacts = "artifacts"

// room bounds the bytes read of artifacts (I15); larger ones stay in their folder.
type room struct{ one, line, file int64 }

var usualRoom = room{one: 1 << 20, line: 2 << 20, file: 256 << 20}

// artifacts is the artifact folder of one session: the name of its file without .jsonl.
type artifacts struct {
	room
	beside func(name string) (io.ReadCloser, error)
	folder string
	files  map[string]string // by their names in entries: "artifact://3", "agent://Scout"
	all    int               // files in the folder, except sessions of agents
	many   bool              // there are more than List returns
	agents int               // sessions of agents
	kept   int
	read   int64
	err    error // of listing
}

const maxListed = 10_000 // as in interop.Source

// list lists the artifact folder of a session.
func (a *artifacts) list(src interop.Source) {
	name := src.Name[strings.LastIndexAny(src.Name, `/\`)+1:]
	folder, ok := strings.CutSuffix(name, ".jsonl")
	if !ok || strings.Trim(folder, ".") == "" || src.List == nil || src.Beside == nil {
		return
	}
	names, err := src.List(folder)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			a.folder, a.err = folder, err
		}
		return
	}
	a.folder, a.beside, a.files, a.many = folder, src.Beside, map[string]string{}, len(names) >= maxListed
	for _, name := range names {
		base := path.Base(name)
		id, rest, _ := strings.Cut(base, ".")
		switch {
		case path.Dir(name) != folder, strings.HasPrefix(base, ".artifact-"): // the latter describe another artifact
			continue
		case strings.HasSuffix(base, ".jsonl"):
			a.agents++
			continue
		case digits(id) && strings.HasSuffix(rest, ".log"):
			a.files["artifact://"+id] = name
		case strings.HasSuffix(base, ".md"):
			a.files["agent://"+strings.TrimSuffix(base, ".md")] = name
		}
		a.all++
	}
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// marks are the prefixes of an artifact's name in an entry, and the prefixes of the names in files.
var marks = [...]struct{ mark, as string }{
	{"artifact://", "artifact://"},
	{"agent://", "agent://"},
	{`"artifactId":"`, "artifact://"},
}

// entry adds the artifacts that a line is the first to name. Other lines are returned unchanged.
func (a *artifacts) entry(raw []byte) []byte {
	if len(a.files) == 0 || rawjson.Field(raw, Artifacts) != nil {
		return raw
	}
	var found []byte
	const names = 1 << 10 // bytes for the names of the fields
	left := min(a.line, a.file-a.read, int64(jsonl.MaxEntry-names-len(raw)))
	for _, m := range marks {
		for rest := raw; ; {
			at := bytes.Index(rest, []byte(m.mark))
			if at < 0 {
				break
			}
			rest = rest[at+len(m.mark):]
			called := m.as + string(rest[:nameEnd(rest)])
			name, ok := a.files[called]
			if !ok {
				continue
			}
			delete(a.files, called) // it is read once, even if that fails
			text, ok := a.text(name, left)
			if !ok {
				continue
			}
			left, a.read = left-int64(len(text)+len(name)+2*len(`{"name":"","text":}`)), a.read+int64(len(text))
			a.kept++
			if found = append(found, ','); len(found) == 1 {
				found[0] = '['
			}
			found = append(found, rawjson.Object("name", rawjson.AppendString(nil, path.Base(name)), "text", text)...)
		}
	}
	if found == nil {
		return raw
	}
	return rawjson.WithField(raw, Artifacts, append(found, ']'))
}

func isNameByte(c byte) bool {
	return c >= 0x80 || c >= ' ' && strings.IndexByte(" \t\"'`\\/<>()[]{},;:!?#|", c) < 0
}

// maxCalled bounds the name of an artifact, in bytes.
const maxCalled = 255

// nameEnd returns the length of the name at the start of text.
func nameEnd(text []byte) int {
	n := 0
	for n < len(text) && n < maxCalled && isNameByte(text[n]) {
		n++
	}
	for n > 0 && text[n-1] == '.' { // part of the sentence
		n--
	}
	return n
}

// text returns a file as JSON, or false if it is over a limit, not text, or unreadable.
func (a *artifacts) text(name string, left int64) ([]byte, bool) {
	most := min(a.one, left)
	if most <= 0 {
		return nil, false
	}
	r, err := a.beside(name)
	if err != nil {
		return nil, false
	}
	p, err := io.ReadAll(io.LimitReader(r, most+1))
	if err = errors.Join(err, r.Close()); err != nil || int64(len(p)) > most || !utf8.Valid(p) {
		return nil, false
	}
	text := rawjson.AppendString(nil, string(p))
	return text, int64(len(text)) <= left
}

// said returns the diagnostic about files that stay in the folder, or false.
func (a *artifacts) said() (transcript.Diagnostic, bool) {
	d := transcript.Diagnostic{Kind: DiagArtifacts, Detail: fmt.Sprintf("the folder %.200q beside the file ", a.folder)}
	if a.err != nil {
		d.Detail += "cannot be listed: " + a.err.Error()
		return d, true
	}
	var parts []string
	if stay := a.all - a.kept; a.many {
		parts = append(parts, fmt.Sprintf("%d files or more, of which %d are in the entries that name them; "+
			"the others are not taken and stay there", maxListed, a.kept))
	} else if stay > 0 {
		parts = append(parts, fmt.Sprintf("files that are not taken and stay there (%d)", stay))
	}
	if a.agents > 0 {
		parts = append(parts, fmt.Sprintf("sessions of agents, which are imported with the folder (%d)", a.agents))
	}
	d.Detail += "has " + strings.Join(parts, ", and ")
	return d, parts != nil
}

// Package formats detects the format of a session file by its content, and opens and writes files with the package of
// that format.
//
// The first rule that matches decides:
//
//  1. Codex: a zstd frame, or lines with a payload.
//  2. operator: a header with its time in seconds, entries with a parent_id, or a first line of metadata.
//  3. omp: a title line, a field of a header or of an entry that only omp writes, an entry of a type of its
//     own, a reference to a blob.
//  4. atomic: a header of an internal session, or an entry that only atomic writes.
//  5. Claude Code: lines with a uuid and a sessionId, or of one of its types.
//  6. pi: a session header, or entries with ids and parents. The header or the writes of its agent-core harness
//     are looked for before all others.
//
// omp and atomic write plain pi files until a session needs one of their own features. Such a file is pi's, unless it
// is in the folder where one of them keeps its sessions. The reader is the same for all three; the profile determines
// the context.
package formats

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/atomic"
	"github.com/coppice-go/coppice/interop/claudecode"
	"github.com/coppice-go/coppice/interop/codex"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/interop/omp"
	"github.com/coppice-go/coppice/interop/operator"
	"github.com/coppice-go/coppice/interop/pi"
	"github.com/coppice-go/coppice/interop/pi/harness"
	"github.com/coppice-go/coppice/transcript"
)

// headBytes is the number of bytes used for detection.
const headBytes = 256 << 10

// Format describes the session files of one program: a row of the table.
type Format struct {
	Name    interop.Format
	Profile transcript.Profile // rules by which the program builds contexts
	Program *interop.Program   // nil = the program has no known folders

	detect func(head []byte) bool
	open   func(src interop.Source, o interop.Options) interop.Reader
	write  writer
	extend continuer            // nil = nothing can be appended to a file
	amends bool                 // its files keep amendments as lines
	images *message.ImageLimits // of the program's API; nil = it supports several APIs
	folder string               // part of the paths of its files, whose format is pi's; "" = none
}

// table has the formats in order of detection.
var table = []Format{
	{
		Name: interop.Codex, Profile: transcript.Coppice, Program: &codex.Program,
		detect: codex.Detect, open: opener(codex.NewReader), write: codex.Write, extend: codex.Continue,
		images: &message.OpenAIImages,
	},
	{
		Name: interop.Operator, Profile: transcript.Operator,
		detect: operator.Detect, open: opener(operator.NewReader), write: operator.Write,
		extend: after(operator.Extend), amends: true,
	},
	{
		Name: interop.Omp, Profile: transcript.OMP, Program: &omp.Program,
		detect: omp.Detect, open: opener(omp.NewReader), write: omp.Write, extend: after(omp.Extend), amends: true,
		folder: "/.omp/agent/sessions/",
	},
	{
		Name: interop.Atomic, Profile: transcript.Atomic,
		detect: atomic.Detect, open: opener(atomic.NewReader), write: atomic.Write, extend: after(atomic.Extend),
		amends: true, folder: "/.atomic/agent/sessions/",
	},
	{
		Name: interop.ClaudeCode, Profile: transcript.Coppice, Program: &claudecode.Program,
		detect: claudecode.Detect, open: opener(claudecode.NewReader), write: toClaude,
		extend: after(claudecode.Append), images: &message.AnthropicImages,
	},
	{
		Name: interop.Pi, Profile: transcript.Pi, Program: &pi.Program,
		detect: isPi, open: openPi, write: pi.Write, extend: continuePi, amends: true,
	},
}

// All returns all formats, pi first.
func All() []Format {
	list := slices.Clone(table)
	slices.Reverse(list)
	return list
}

// opener adapts a function that returns a specific reader type.
func opener[R interop.Reader](
	open func(interop.Source, interop.Options) R,
) func(interop.Source, interop.Options) interop.Reader {
	return func(src interop.Source, o interop.Options) interop.Reader { return open(src, o) }
}

// ErrUnknown is wrapped by the error for an unknown format, or for one without the requested operation.
var ErrUnknown = errors.New("unknown format")

// Of returns the row of a format, or an error that wraps ErrUnknown.
func Of(f interop.Format) (Format, error) {
	for _, t := range table {
		if t.Name == f {
			return t, nil
		}
	}
	return Format{}, fmt.Errorf("%w: %q", ErrUnknown, f)
}

// Detect returns the format of a file, or "". head is its beginning: 256 KiB, or the whole file. name is its path,
// which only matters if the content is pi's.
func Detect(head []byte, name string) interop.Format {
	if harness.Detect(head) {
		return interop.Pi
	}
	for _, t := range table {
		if !t.detect(head) {
			continue
		}
		if t.Name == interop.Pi {
			return byFolder(name)
		}
		return t.Name
	}
	return ""
}

// byFolder returns the program of a file in pi's format.
func byFolder(name string) interop.Format {
	path := strings.ReplaceAll(name, `\`, "/")
	for _, t := range table {
		if t.folder != "" && strings.Contains(path, t.folder) {
			return t.Name
		}
	}
	return interop.Pi
}

// isPi reports whether the beginning of a file has a session header of pi's family, or an entry with an ID and a
// parent.
func isPi(head []byte) bool {
	for _, l := range jsonl.HeadLines(head) {
		if l.Type == "session" || l.Type != "" && l.ID != "" && rawjson.Field(l.Raw, "parentId") != nil {
			return true
		}
	}
	return false
}

// Open returns a reader for format f; "" = the detected format. A file of unknown format gets pi's reader, which
// returns a precise error.
func Open(src interop.Source, f interop.Format, o interop.Options) (interop.Reader, error) {
	if f == "" {
		head, err := readHead(src)
		if err != nil {
			return nil, err
		}
		if f = Detect(head, src.Name); f == "" {
			f = interop.Pi
		}
	}
	t, err := Of(f)
	if err != nil {
		return nil, err
	}
	return t.open(src, o), nil
}

// Told returns the format that Open detects.
func Told(src interop.Source) (interop.Format, error) {
	head, err := readHead(src)
	if err != nil {
		return "", err
	}
	return Detect(head, src.Name), nil
}

func readHead(src interop.Source) (head []byte, err error) {
	r, err := src.Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	head = make([]byte, headBytes)
	n, err := io.ReadFull(r, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("read %s: %w", src.Name, err)
	}
	return head[:n], nil
}

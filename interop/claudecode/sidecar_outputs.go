package claudecode

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
)

// toolOutputType is the customType of an entry that contains a file with a tool's output.
const toolOutputType = "claude-code.tool-output"

// Bounds of the tool outputs that are kept, in bytes. One note names the files over them.
const (
	maxOutput  = jsonl.MaxEntry // of one file, and of its entry
	maxOutputs = 64 << 20       // of all files together
	maxShown   = 20             // names in the note

	outputsFolder = "/tool-results"
)

// outputFiles makes entries of the files with tool outputs in a session's folder. A truncated result names its file;
// other files are named after the ID of the call. Agents of the session keep their files there too.
//
// Each entry's parent is the one before; the first one's is the root entry. They are a branch of their own and part of
// no context.
type outputFiles struct {
	s      *sidecar
	names  []string
	parent string
	stamp  []byte
	left   int      // remaining bytes
	stay   []string // files that were not kept, with their folders
}

// Outputs lists the files. stamp is the time of the entries, a JSON string.
func (s *sidecar) Outputs(stamp []byte) *outputFiles {
	o := &outputFiles{s: s, parent: rootID, stamp: stamp, left: maxOutputs}
	if s.src.Beside != nil {
		o.names = s.list(s.folders(outputsFolder))
	}
	return o
}

// Next returns the next entry; nil = no more.
func (o *outputFiles) Next() []byte {
	for len(o.names) > 0 {
		name := o.names[0]
		o.names = o.names[1:]
		data, err := o.read(name)
		if err != nil {
			o.s.note(fmt.Sprintf("%s: %s", name, err))
			continue
		}
		if raw := o.entry(name, data); data != nil && len(raw) <= jsonl.MaxEntry {
			o.left -= len(data)
			return raw
		}
		o.stay = append(o.stay, name)
	}
	if n := len(o.stay); n > 0 {
		shown := o.stay[:min(n, maxShown)]
		o.s.note(fmt.Sprintf("outputs of tools: %d files stay in %s, over the limit of %d bytes each and %d "+
			"together: %s",
			n, path.Dir(shown[0]), maxOutput, maxOutputs, strings.Join(shown, ", ")))
		o.stay = nil
	}
	return nil
}

// read returns the content of a file; nil = over the bounds.
func (o *outputFiles) read(name string) (data []byte, err error) {
	if o.left <= 0 {
		return nil, nil
	}
	in, err := o.s.src.Beside(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	most := min(o.left, maxOutput)
	data, err = io.ReadAll(io.LimitReader(in, int64(most)+1))
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	if len(data) > most {
		return nil, nil
	}
	if data == nil {
		data = []byte{}
	}
	return data, nil
}

// entry makes the entry of a file, as text or base64.
func (o *outputFiles) entry(name string, data []byte) []byte {
	if data == nil {
		return nil
	}
	kind, val := "text", []byte(nil)
	if utf8.Valid(data) {
		val = rawjson.AppendString(nil, data)
	} else {
		kind, val = "base64", rawjson.AppendString(nil, base64.StdEncoding.EncodeToString(data))
	}
	sum := sha256.Sum256([]byte(name))
	id := "cc-output-" + hex.EncodeToString(sum[:]) // longer than an ID made from a line's
	raw := rawjson.Object("type", []byte(`"custom"`), "id", rawjson.AppendString(nil, id),
		"parentId", rawjson.AppendString(nil, o.parent),
		"timestamp", o.stamp, "customType", rawjson.AppendString(nil, toolOutputType),
		"data", rawjson.Object("file", rawjson.AppendString(nil, name),
			"bytes", strconv.AppendInt(nil, int64(len(data)), 10), kind, val))
	if len(raw) <= jsonl.MaxEntry {
		o.parent = id
	}
	return raw
}

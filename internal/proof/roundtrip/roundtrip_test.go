// Package roundtrip hands sessions to each program, imports the resulting files, and compares the model's context.
// Every difference must be explained by a loss that the writer listed.
package roundtrip

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/examples/session"
	"github.com/coppice-go/coppice/internal/exporter"
	"github.com/coppice-go/coppice/internal/importer"
	"github.com/coppice-go/coppice/internal/proof"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/formats"
	"github.com/coppice-go/coppice/transcript"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// file is a session file in a store of its own.
type file struct {
	t      *testing.T
	store  *coppice.Store
	id     string
	format interop.Format
}

// read imports a file of a format, "" = the detected one.
func read(t *testing.T, src interop.Source, f interop.Format) (file, error) {
	st := testutil.Must(coppice.New(memory.New(), nil))(t)
	res, err := importer.Import(t.Context(), st, src, importer.Options{Format: f, Now: now})
	return file{t, st, res.Session, interop.Format(res.Format)}, err
}

// as hands the session to a program.
func (in file) as(f interop.Format) (out file, losses interop.Losses, err error) {
	var text bytes.Buffer
	losses, err = exporter.Exporter{Store: in.store, Now: now}.Write(in.t.Context(), in.id, string(f), &text)
	if err != nil {
		return out, nil, err
	}
	out, err = read(in.t, interop.Bytes("f.jsonl", text.Bytes()), f)
	return out, losses, err
}

// context returns the model's context by the rules of a profile, "" = those of the file's program.
func (in file) context(p transcript.Profile) []unit {
	o := &coppice.SessionOptions{ReadOnly: true, Profile: p, ContextBytes: -1}
	s := testutil.Must(in.store.Open(in.t.Context(), in.id, o))(in.t)
	c := testutil.Must(s.Context(in.t.Context()))(in.t)
	testutil.OK(in.t, s.Close())
	return messages(c)
}

// shown returns a pi session with an image of the user and one of a tool.
func shown() []byte {
	const image = `{"type":"image","mimeType":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAA` +
		`DUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}`
	data := `{"type":"session","version":3,"id":"s","timestamp":"2026-02-01T00:00:00.000Z","cwd":"/w"}` + "\n"
	for i, m := range []string{
		`"role":"user","content":[{"type":"text","text":"this"},` + image + `]`,
		`"role":"assistant","content":[{"type":"toolCall","id":"c","name":"draw","arguments":{"n":1}}]`,
		`"role":"toolResult","toolCallId":"c","toolName":"draw","isError":false,"content":[` + image + `]`,
	} {
		data += fmt.Sprintf(`{"type":"message","id":"%d","parentId":"%d","timestamp":"2026-02-01T00:00:00.000Z",`+
			`"message":{%s}}`+"\n", i+1, i, m)
	}
	return []byte(strings.Replace(data, `"0"`, "null", 1))
}

// The model's context of a session is the same in the file of each program, except for the listed losses.
// COPPICE_ROUNDTRIP names a folder of more session files.
func TestProofRoundTrip(t *testing.T) {
	r := proof.Begin(t, "roundtrip")
	check := func(name string, in file) {
		for _, to := range formats.All() {
			pair := fmt.Sprintf("%s, %s as %s", name, in.format, to.Name)
			r.Explored(1)
			back, losses, err := in.as(to.Name)
			if err != nil {
				r.Violation("%s: %v", pair, err)
				continue
			}
			n := compare(in.context(""), back.context(""))
			if applies(losses) { // under pi's rules both files must have the same context
				n = compare(in.context(transcript.Pi), back.context(transcript.Pi))
			}
			wrong := unexplained(n, losses)
			testutil.OK(t, back.store.Close())
			switch {
			case n == [aspects]int{} && !applies(losses):
				r.Figure("equal", 1)
				continue
			case wrong == "":
				r.Figure("explained", 1)
			default:
				r.Violation("%s: %s; losses: %v", pair, wrong, losses)
			}
			t.Logf("%s: %v %v; losses: %v %s", pair, aspectNames, n, slices.Sorted(maps.Keys(losses)), wrong)
		}
	}
	for name, data := range map[string][]byte{"the bundled session": session.JSONL(), "images": shown()} {
		made := testutil.Must(read(t, interop.Bytes("f.jsonl", data), ""))(t)
		for _, f := range formats.All() {
			in, _, err := made.as(f.Name)
			testutil.OK(t, err)
			check(name, in)
			testutil.OK(t, in.store.Close())
		}
		testutil.OK(t, made.store.Close())
	}
	for _, pattern := range []string{"*/testdata/*.jsonl", "*/*/testdata/*.jsonl"} {
		for _, name := range testutil.Must(filepath.Glob("../../../interop/" + pattern))(t) {
			in := testutil.Must(read(t, importer.FromFile(name), ""))(t)
			check(name, in)
			testutil.OK(t, in.store.Close())
		}
	}
	if folder := os.Getenv("COPPICE_ROUNDTRIP"); folder != "" {
		testutil.OK(t, filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(name) != ".jsonl" {
				return err
			}
			in, err := read(t, importer.FromFile(name), "")
			if err == nil {
				check(name, in)
			}
			if errors.Is(err, interop.ErrNotSession) {
				return nil
			}
			return errors.Join(err, in.store.Close())
		}))
	}
}

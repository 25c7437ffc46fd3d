package provider_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/examples/session"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/formats"
	"github.com/coppice-go/coppice/provider"
	"github.com/coppice-go/coppice/transcript"
)

var folder = flag.String("files", "", "a folder of session files that TestFilesOfAFolder makes requests of")

// corpus returns the session files of the tests of all formats.
func corpus(t *testing.T) (list [][]byte) {
	t.Helper()
	list = append(list, session.JSONL())
	names, err := filepath.Glob("../interop/*/testdata/*.jsonl")
	if err != nil || len(names) < 10 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, data)
	}
	return list
}

// imported is a session file as it is read.
type imported struct {
	format formats.Format
	header interop.Header
	drafts []transcript.Draft
	path   []transcript.Entry // to the last entry
}

func importFile(name string, data []byte) (in imported, err error) {
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	src := interop.Source{Name: name, Open: open}
	r, err := formats.Open(src, "", interop.Options{Now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)})
	if err != nil {
		return in, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	told, err := formats.Told(src)
	if err != nil {
		return in, err
	}
	if in.format, err = formats.Of(told); err != nil {
		return in, err
	}
	if in.header, err = r.Header(); err != nil {
		return in, err
	}
	var lines []transcript.Line
	for {
		d, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return in, err
		}
		l, err := transcript.ParseLine(d.Raw)
		if err != nil {
			return in, err
		}
		lines, in.drafts = append(lines, l), append(in.drafts, d)
	}
	parents, _ := transcript.ResolveParents(lines)
	for i := int64(len(lines) - 1); i >= 0; i = parents[i] {
		in.path = append(in.path, lines[i].Entry(uint64(i)))
	}
	slices.Reverse(in.path)
	return in, nil
}

// tally counts, by API or program, what it takes, and the losses of each kind.
type tally map[string]int

// requests returns what is wrong with the requests of a session; "" = each API takes its own.
func (in imported) requests(t *testing.T, n tally) (wrong string) {
	c := transcript.BuildContext(in.path, in.format.Profile)
	for _, api := range provider.APIs() {
		r, err := provider.Convert(t.Context(), c, api, nil)
		if err != nil {
			return err.Error()
		}
		if fault := check(r); fault != "" {
			wrong += fmt.Sprintf("%s: %.500s\n", api, fault)
			continue
		}
		n[string(api)]++
		for _, l := range r.Lost {
			n[string(api)+" lost "+string(l.Kind)]++
		}
	}
	return wrong
}

// files returns what is wrong with the files that are written of a session in these formats.
func (in imported) files(list ...formats.Format) (wrong string) {
	head := ""
	if n := len(in.path); n > 0 {
		head = in.path[n-1].ID
	}
	for _, to := range list {
		var out bytes.Buffer
		_, err := formats.Write(&out, to.Name, in.header, transcript.Drafts(in.drafts...), head)
		if err != nil {
			return fmt.Sprintf("%s: %v", to.Name, err)
		}
		for line := range bytes.Lines(out.Bytes()) {
			if fault := lineFault(line); fault != "" {
				wrong += fmt.Sprintf("%s: %s: %.300s\n", to.Name, fault, line)
			}
		}
	}
	return wrong
}

func lineFault(line []byte) (wrong string) {
	defer func() {
		if p := recover(); p != nil {
			wrong = fmt.Sprint(p)
		}
	}()
	must(json.Valid(line), "not JSON")
	wholeText("the line", line)
	return ""
}

// Whatever values a session file has, each API takes the requests of it, and each program the files.
func TestMutatedSessions(t *testing.T) {
	testutil.SkipLong(t)
	list := corpus(t)
	rapid.Check(t, func(rt *rapid.T) {
		file := mutated(rt, list[rapid.IntRange(0, len(list)-1).Draw(rt, "file")])
		in, err := importFile("mutated.jsonl", file)
		if err != nil {
			return // its header or its format is not known any more
		}
		to := formats.All()[rapid.IntRange(0, len(formats.All())-1).Draw(rt, "to")]
		if wrong := in.requests(t, tally{}) + in.files(to); wrong != "" {
			rt.Fatalf("%s", wrong)
		}
	})
}

// TestFilesOfAFolder makes requests and files of the session files below -files, as they are.
func TestFilesOfAFolder(t *testing.T) {
	if *folder == "" {
		t.Skip("no -files")
	}
	n := tally{}
	err := filepath.WalkDir(*folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(name) != ".jsonl" {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		in, err := importFile(name, data)
		if err != nil {
			t.Logf("%s: no session: %v", name, err)
			return nil
		}
		t.Logf("%s: %s, %d entries, %d on the path", name, in.format.Name, len(in.drafts), len(in.path))
		n["files"]++
		if wrong := in.requests(t, n) + in.files(formats.All()...); wrong != "" {
			t.Errorf("%s: %s", name, wrong)
		}
		return nil
	})
	for _, what := range slices.Sorted(maps.Keys(n)) {
		t.Logf("%6d %s", n[what], what)
	}
	if err != nil {
		t.Fatal(err)
	}
}

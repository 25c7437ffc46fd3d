package formats

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// spoiled returns a file with a byte that is not UTF-8 within n of its strings.
func spoiled(file []byte, n int, seed byte) []byte {
	var inside []int
	quoted := false
	for i := 0; i < len(file); i++ {
		switch c := file[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			if quoted = !quoted; quoted {
				inside = append(inside, i+1)
			}
		}
	}
	r := rand.New(rand.NewChaCha8([32]byte{seed}))
	at := map[int]bool{}
	for range min(n, len(inside)) {
		at[inside[r.IntN(len(inside))]] = true
	}
	out := make([]byte, 0, len(file)+n)
	for i, c := range file {
		if at[i] {
			out = append(out, 0xe9)
		}
		out = append(out, c)
	}
	return out
}

// all returns every line that a reader makes, headers and children included, and closes the reader.
func all(r interop.Reader) (lines [][]byte, err error) {
	h, err := r.Header()
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	lines = append(lines, h.Raw)
	take := func(d transcript.Draft) error {
		line, err := d.Line(d.ID, d.Parent, testNow)
		lines = append(lines, line)
		return err
	}
	for {
		d, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = take(d)
		}
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	if f, ok := r.(interop.Family); ok {
		for c, err := range f.Children() {
			if err != nil {
				return nil, errors.Join(err, r.Close())
			}
			lines = append(lines, c.Header.Raw)
			for d, err := range c.Entries {
				if err == nil {
					err = take(d)
				}
				if err != nil {
					return nil, errors.Join(err, r.Close())
				}
			}
		}
	}
	return lines, r.Close()
}

// A file with bytes that are not UTF-8 is read, whatever its format: as the file is that has U+FFFD in their place. The
// lines are valid UTF-8, the file is not taken for its lines, so that an import keeps its bytes, and there is a
// diagnostic.
func TestTextThatIsNotUTF8(t *testing.T) {
	files, err := filepath.Glob("../*/testdata/*.jsonl")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	harness, err := filepath.Glob("../pi/harness/testdata/*.jsonl")
	if err != nil || len(harness) == 0 {
		t.Fatalf("%d files of pi's harness, %v", len(harness), err)
	}
	files = append(files, harness...)
	formats := map[interop.Format]int{}
	for _, from := range written {
		files = append(files, string(from))
	}
	for _, name := range files {
		file, err := os.ReadFile(name)
		if err != nil {
			file = []byte(lf(everyType(interop.Format(name), true)...))
		}
		for seed := range byte(8) {
			text := spoiled(file, 1+int(seed)*3, seed)
			r, err := Open(source(name, text), "", options())
			if err != nil {
				t.Fatalf("%s, %d: %v", name, seed, err)
			}
			got, err := all(r)
			want, werr := all(reader(t, name, rawjson.ValidText(text)))
			if (err == nil) != (werr == nil) || notSession(err) != notSession(werr) {
				t.Fatalf("%s, %d: %v; with U+FFFD %v", name, seed, err, werr)
			}
			if err != nil {
				continue
			}
			formats[Detect(text, name)]++
			if !bytes.Equal(bytes.Join(got, []byte("\n")), bytes.Join(want, []byte("\n"))) {
				t.Fatalf("%s, %d: the lines are not those of the file with U+FFFD", name, seed)
			}
			for i, line := range got {
				if !utf8.Valid(line) {
					t.Fatalf("%s, %d: line %d: %q", name, seed, i, line)
				}
			}
			if r.Verbatim() {
				t.Errorf("%s, %d: the file is taken for its lines", name, seed)
			}
			if !notes(r.Diagnostics()) {
				t.Errorf("%s, %d: no diagnostic: %v", name, seed, r.Diagnostics())
			}
		}
	}
	for _, f := range table {
		if formats[f.Name] == 0 {
			t.Errorf("no file of %s was read: %v", f.Name, formats)
		}
	}
}

func notSession(err error) bool { return errors.Is(err, interop.ErrNotSession) }

func reader(t *testing.T, name string, file []byte) interop.Reader {
	t.Helper()
	r, err := Open(source(name, file), "", options())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// notes reports whether a diagnostic is about bytes that are not UTF-8, or the list is full.
func notes(list []transcript.Diagnostic) bool {
	for _, d := range list {
		if strings.Contains(d.Detail, "not valid UTF-8") || d.Kind == transcript.DiagMore {
			return true
		}
	}
	return false
}

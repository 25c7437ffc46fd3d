package omp

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/readtest"
	"github.com/coppice-go/coppice/transcript"
)

var (
	testNow = readtest.Now
	lf      = readtest.Lines
	readAll = readtest.All[*Reader]
)

// folder holds the other files of a session.
type folder = readtest.Files[[]byte]

func open(data []byte, beside func(string) (io.ReadCloser, error)) *Reader {
	src := interop.Bytes("x", data)
	src.Beside = beside
	return NewReader(src, interop.Options{Now: testNow})
}

func sumOf(p []byte) string {
	s := sha256.Sum256(p)
	return hex.EncodeToString(s[:])
}

const (
	slot   = `{"type":"title","v":1,"title":"From the slot","source":"auto","updatedAt":"2026-01-01T00:00:00.000Z","pad":"      "}`
	header = `{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}`
	line1  = `{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"a","timestamp":1}}`
)

// The title line sets the title and is neither an entry nor a finding; the original keeps its bytes.
func TestTitleLine(t *testing.T) {
	tests := []struct {
		name, data, title string
		verbatim          bool
		found             int
	}{
		{"none", lf(header, line1), "", true, 0},
		{"in front", lf(slot, header, line1), "From the slot", false, 0},
		{"empty title", lf(strings.Replace(slot, "From the slot", "", 1), header, line1), "", false, 0},
		{"in the middle", lf(header, slot, line1), "", false, 0},
		{"header has one too", lf(slot, strings.Replace(header, `"cwd"`, `"title":"From the header","cwd"`, 1), line1), "From the slot", false, 0},
		{"header alone has one", lf(strings.Replace(header, `"cwd"`, `"title":"From the header","cwd"`, 1), line1), "From the header", true, 0},
		{"torn", lf(slot[:30], header, line1), "", false, 1},
	}
	for _, tt := range tests {
		r := open([]byte(tt.data), nil)
		h, lines, err := readAll(r)
		if err != nil || h.Title != tt.title || len(lines) != 1 || r.Verbatim() != tt.verbatim || len(r.Diagnostics()) != tt.found {
			t.Errorf("%s: title %q, %d lines, verbatim %v, %v, %v", tt.name, h.Title, len(lines), r.Verbatim(), r.Diagnostics(), err)
		}
	}
}

// A reference to a blob becomes the image again, wherever omp's own folder or a copy of it is.
func TestBlobs(t *testing.T) {
	png, url := []byte("\x89PNG not really"), []byte("data:image/png;base64,QUFB")
	p, u := sumOf(png), sumOf(url)
	b64 := base64.StdEncoding.EncodeToString(png)
	line := func(content string) string {
		return `{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":[` + content + `],"n":1.0}}`
	}
	ref := `blob:sha256:`
	have := folder{"../../blobs/" + p: png, "../../blobs/" + u: url}
	tests := []struct {
		name, in, want string
		beside         folder
		found          int
	}{
		{"image", `{"type":"image","data":"` + ref + p + `","mimeType":"image/png"}`, `{"type":"image","data":"` + b64 + `","mimeType":"image/png"}`, have, 0},
		{"type last", `{"data":"` + ref + p + `","type":"image"}`, `{"data":"` + b64 + `","type":"image"}`, have, 0},
		{"twice", `{"type":"image","data":"` + ref + p + `"},{"type":"image","data":"` + ref + p + `"}`, `{"type":"image","data":"` + b64 + `"},{"type":"image","data":"` + b64 + `"}`, have, 0},
		{"generated", `{"type":"image_generation_call","result":"` + ref + p + `"}`, `{"type":"image_generation_call","result":"` + b64 + `"}`, have, 0},
		{"URL", `{"type":"input_image","image_url":"` + ref + u + `"}`, `{"type":"input_image","image_url":"` + string(url) + `"}`, have, 0},
		{"URL that is none", `{"type":"input_image","image_url":"` + ref + p + `"}`, "", have, 1},
		{"beside", `{"type":"image","data":"` + ref + p + `"}`, `{"type":"image","data":"` + b64 + `"}`, folder{"blobs/" + p: png}, 0},
		{"a level up", `{"type":"image","data":"` + ref + p + `"}`, `{"type":"image","data":"` + b64 + `"}`, folder{"../blobs/" + p: png}, 0},
		{"missing", `{"type":"image","data":"` + ref + u + `"}`, "", folder{}, 1},
		{"damaged", `{"type":"image","data":"` + ref + p + `"}`, "", folder{"blobs/" + p: png[1:]}, 1},
		{"malformed", `{"type":"image","data":"` + ref + `../../../etc/passwd"}`, "", have, 1},
		{"upper case", `{"type":"image","data":"` + ref + strings.ToUpper(p) + `"}`, "", have, 1},
		{"text that says so", `{"type":"text","text":"` + ref + p + `"}`, "", have, 0},
		{"data of no image", `{"type":"file","data":"` + ref + p + `"}`, "", have, 0},
		{"a key", `{"type":"image","` + ref + p + `":"data"}`, "", have, 0},
	}
	for _, tt := range tests {
		asked := func(name string) (io.ReadCloser, error) {
			if strings.Count(name, "..") > 2 || strings.Contains(name, "passwd") {
				t.Errorf("%s: asked for %s", tt.name, name)
			}
			return tt.beside.Open(name)
		}
		r := open([]byte(lf(header, line(tt.in), line1)), asked)
		_, lines, err := readAll(r)
		if err != nil || len(lines) != 2 || string(lines[1].Raw) != line1 {
			t.Fatalf("%s: %v", tt.name, err)
		}
		want, changed := tt.want, true
		if want == "" {
			want, changed = tt.in, false
		}
		if diff := cmp.Diff(line(want), string(lines[0].Raw)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if len(r.Diagnostics()) != tt.found || tt.found > 0 && (r.Diagnostics()[0].Kind != DiagBlob || r.Diagnostics()[0].Ordinal != 2 || r.Diagnostics()[0].Entry != "a") {
			t.Errorf("%s: %v", tt.name, r.Diagnostics())
		}
		if r.Verbatim() == changed {
			t.Errorf("%s: verbatim %v", tt.name, r.Verbatim())
		}
	}
	r := open([]byte(lf(header, line(`{"type":"image","data":"`+ref+p+`"}`))), nil)
	if _, lines, err := readAll(r); err != nil || len(lines) != 1 || !r.Verbatim() || len(r.Diagnostics()) != 1 {
		t.Errorf("nothing beside: %v, %v", r.Diagnostics(), err)
	}
	failing := func(string) (io.ReadCloser, error) { return nil, fs.ErrPermission }
	r = open([]byte(lf(header, line(`{"type":"image","data":"`+ref+p+`"}`))), failing)
	if _, _, err := readAll(r); err != nil || !strings.Contains(r.Diagnostics()[0].Detail, "permission") {
		t.Errorf("no permission: %v, %v", r.Diagnostics(), err)
	}
}

// What a line takes of blobs is bounded, and an entry that would be too large with its images stays as it was.
func TestBlobBounds(t *testing.T) {
	big := make([]byte, 1<<20+1)
	half := make([]byte, 1<<19+1)
	at := folder{"blobs/" + sumOf(big): big, "blobs/" + sumOf(half): half}
	image := func(p []byte) string { return `{"type":"image","data":"blob:sha256:` + sumOf(p) + `"}` }
	line := func(id, content string) string {
		return `{"type":"custom_message","id":"` + id + `","parentId":null,"customType":"x","display":true,"content":[` + content + `]}`
	}
	small := make([]byte, 20<<10)
	at["blobs/"+sumOf(small)] = small
	if usual.blob > usual.line || usual.line > usual.file {
		t.Errorf("bounds %+v", usual)
	}
	r := open([]byte(lf(header, line("a", image(big)), line("b", strings.Repeat(image(half)+",", 12)+"1"), line("c", strings.Repeat(image(small)+",", 300)+"1"))), at.Open)
	r.blobs.limits = limits{blob: 1 << 20, line: 8 << 20, file: 1 << 30}
	_, lines, err := readAll(r)
	if err != nil || len(lines) != 3 {
		t.Fatal(len(lines), err)
	}
	if len(lines[0].Raw) > 1000 || strings.Count(string(lines[1].Raw), "blob:sha256:") != 1 || strings.Count(string(lines[2].Raw), "blob:sha256:") != 300 {
		t.Errorf("lines of %d, %d and %d bytes", len(lines[0].Raw), len(lines[1].Raw), len(lines[2].Raw))
	}
	if len(r.Diagnostics()) != 3 {
		t.Errorf("%v", r.Diagnostics())
	}
}

// FuzzReader: for any bytes, reading ends and returns only valid lines, and the lines of a verbatim file are its bytes.
func FuzzReader(f *testing.F) {
	sum := sumOf([]byte("x"))
	for _, s := range []string{
		"", lf(slot, header, line1), lf(header, slot, line1), lf(slot), lf(header, `{"type":"model_change","id":"m","parentId":"a","model":"a/b"}`),
		lf(header, `{"type":"message","id":"i","message":{"content":[{"type":"image","data":"blob:sha256:`+sum+`"},{"image_url":"blob:sha256:`+sum+`"},{"data":"blob:sha256:","mimeType":1}]}}`),
		lf(`{"type":"session","id":"s"}`, `{"type":"message","message":{"role":"hookMessage","content":[{"type":"image","data":"blob:sha256:`+sum+`"}]}}`),
		lf(header, `{"type":"title"}`, `{"type":"title","id":"t"}`, "\x00", `{"type":"x","id":"blob:sha256:`+sum+`"`),
	} {
		f.Add([]byte(s))
	}
	f.Add([]byte(lf(header, `{"type":"x","id":"i","parentId":null,"a":"artifact://0, agent://A.","artifactId":"0"}`, `{"type":"x","id":"j","artifacts":1,"b":"agent://A"}`)))
	at := folder{"blobs/" + sum: []byte("x"), "s/0.bash.log": []byte("out"), "s/A.md": []byte("done")}
	f.Fuzz(func(t *testing.T, data []byte) {
		Detect(data)
		r := openAt("s.jsonl", string(data), at)
		h, lines, err := readAll(r)
		if err != nil {
			if !errors.Is(err, interop.ErrNotSession) {
				t.Fatal(err)
			}
			return
		}
		rebuilt := string(h.Raw) + "\n"
		for i, l := range lines {
			if l.Type == "" || l.ID == "" || bytes.IndexByte(l.Raw, '\n') >= 0 {
				t.Fatalf("line %d: %q", i, l.Raw)
			}
			rebuilt += string(l.Raw) + "\n"
		}
		if r.Verbatim() && rebuilt != string(data) {
			t.Fatalf("verbatim, but %q became %q", data, rebuilt)
		}
		transcript.ResolveParents(lines)
		var entries []transcript.Entry
		for i, l := range lines {
			entries = append(entries, l.Entry(uint64(i)))
		}
		transcript.BuildContext(entries, transcript.OMP)
		if again, _, err := readAll(open([]byte(rebuilt), at.Open)); err != nil || string(again.Raw) != string(h.Raw) {
			t.Fatalf("not stable: %v", err)
		}
	})
}

package omp

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

func openAt(name, data string, at folder) *Reader {
	src := interop.Bytes(name, []byte(data))
	src.Beside, src.List = at.Open, at.List
	return NewReader(src, interop.Options{Now: testNow})
}

// An artifact is added to the first entry that names it; the import reports how many stay because no entry names them,
// they are too large, or not text.
func TestArtifacts(t *testing.T) {
	line := func(id, content string) string {
		return `{"type":"message","id":"` + id + `","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"toolResult","content":[{"type":"text","text":"` + content + `"}],"details":{"meta":{"truncation":{"artifactId":"7"}}}}}`
	}
	const home = "2026-01-01_s"
	at := folder{
		home + "/0.bash.log": []byte("all\nof \"it\""), home + "/7.read.log": []byte("seven"), home + "/70.read.log": []byte("seventy"), home + "/.artifact-0.json": []byte("{}"),
		home + "/Scout.md": []byte("report"), home + "/Scout.jsonl": []byte("{}"), home + "/8.bash.log": {0xff, 0xfe}, home + "/9.bash.log": bytes.Repeat([]byte("x"), 1<<20+1), home + "/plan.txt": nil,
	}
	said := func(r *Reader) (out []string) {
		for _, d := range r.Diagnostics() {
			out = append(out, d.Kind+": "+d.Detail)
		}
		return out
	}
	r := openAt("/x/"+home+".jsonl", lf(header, line1, line("b", "cut: artifact://0. See agent://Scout, artifact://8, artifact://9 and artifact://12"), line("c", "artifact://0 again, artifact://70")), at)
	_, lines, err := readAll(r)
	if err != nil || len(lines) != 3 || string(lines[0].Raw) != line1 || r.Verbatim() {
		t.Fatal(len(lines), r.Verbatim(), err)
	}
	var got []string
	for _, l := range lines[1:] {
		if was := rawjson.WithField(l.Raw, Artifacts, nil); string(rawjson.Field(was, "message")) != string(rawjson.Field(l.Raw, "message")) {
			t.Errorf("the message is another: %s", l.Raw)
		}
		got = append(got, string(rawjson.Field(l.Raw, Artifacts)))
	}
	want := []string{`[{"name":"0.bash.log","text":"all\nof \"it\""},{"name":"Scout.md","text":"report"},{"name":"7.read.log","text":"seven"}]`, `[{"name":"70.read.log","text":"seventy"}]`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{`artifacts: the folder "2026-01-01_s" beside the file has files that are not taken and stay there (3), and sessions of agents, which are imported with the folder (1)`}, said(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if l := transcript.BuildContext([]transcript.Entry{lines[1].Entry(0)}, transcript.OMP); len(l.Messages) != 1 || strings.Contains(string(l.Messages[0].Raw), "all") {
		t.Errorf("models see artifacts: %v", l.Messages)
	}

	// No other files, and names that are not file names.
	for _, name := range []string{"/x/other.jsonl", "x", ".jsonl", "...jsonl"} {
		r := openAt(name, lf(header, line("b", "artifact://0")), at)
		if _, _, err := readAll(r); err != nil || !r.Verbatim() || len(r.Diagnostics()) > 0 {
			t.Errorf("%s: %v, %v", name, said(r), err)
		}
	}
	denied := openAt("x/"+home+".jsonl", lf(header, line1), at)
	denied.src.List = func(string) ([]string, error) { return nil, fs.ErrPermission }
	if _, _, err := readAll(denied); err != nil || len(said(denied)) != 1 || !strings.Contains(said(denied)[0], "permission") {
		t.Errorf("no permission: %v, %v", said(denied), err)
	}
}

// What is taken of artifacts is bounded for each, for a line and for a file, and each is read once at most.
func TestArtifactBounds(t *testing.T) {
	at, text := folder{}, bytes.Repeat([]byte("x"), 1000)
	for i := range 10 {
		at[fmt.Sprintf("s/%d.t.log", i)] = text
	}
	at["s/3.t.log"] = append(text, text...)
	var lines []string
	for i := range 10 {
		lines = append(lines, fmt.Sprintf(`{"type":"custom","id":"%d","parentId":null,"customType":"artifact://%d artifact://%d artifact://%d"}`, i, i, (i+1)%10, (i+2)%10))
	}
	reads := 0
	r := openAt("s.jsonl", lf(append([]string{header}, lines...)...), at)
	r.src.Beside = func(name string) (io.ReadCloser, error) {
		reads++
		return at.Open(name)
	}
	r.artifacts.room = room{one: 1500, line: 2500, file: 4500}
	_, got, err := readAll(r)
	if err != nil || len(got) != 10 {
		t.Fatal(len(got), err)
	}
	taken := 0
	for _, l := range got {
		n := strings.Count(string(l.Raw), `"name"`)
		if taken += n; n > 2 {
			t.Errorf("%d in one line", n)
		}
	}
	if taken != 4 || reads > 10 || len(r.Diagnostics()) != 1 || !strings.Contains(r.Diagnostics()[0].Detail, "(6)") {
		t.Errorf("%d taken, %d read, %v", taken, reads, r.Diagnostics())
	}
	if usualRoom.one > usualRoom.line || usualRoom.line > usualRoom.file {
		t.Errorf("bounds %+v", usualRoom)
	}
}

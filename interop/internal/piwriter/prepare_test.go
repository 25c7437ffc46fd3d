package piwriter_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"iter"
	"regexp"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/atomic"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
	"github.com/coppice-go/coppice/interop/omp"
	"github.com/coppice-go/coppice/interop/operator"
	"github.com/coppice-go/coppice/transcript"
)

var header = interop.Header{ID: "s", Raw: []byte(`{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}`)}

type (
	writer   func(w io.Writer, h interop.Header, entries iter.Seq2[transcript.Draft, error], head string) (interop.Losses, error)
	extender func(w io.Writer, h interop.Header, known int, entries iter.Seq2[transcript.Draft, error], head string) (interop.Losses, error)
)

func seq(lines ...string) iter.Seq2[transcript.Draft, error] {
	return transcript.Drafts(lines...)
}

func line(id, parent, message string) string {
	p := "null"
	if parent != "" {
		p = fmt.Sprintf("%q", parent)
	}
	return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-01-01T00:00:00.000Z","message":%s}`, id, p, message)
}

// written returns the entries of a file by ID.
func written(t *testing.T, write writer, head string, lines ...string) (map[string][]byte, interop.Losses) {
	t.Helper()
	var out bytes.Buffer
	losses, err := write(&out, header, seq(lines...), head)
	if err != nil {
		t.Fatal(err)
	}
	return byID(out.String()), losses
}

func byID(data string) map[string][]byte {
	found := map[string][]byte{}
	for raw := range strings.Lines(data) {
		found[rawjson.Text(rawjson.Field([]byte(raw), "id"))] = []byte(strings.TrimSuffix(raw, "\n"))
	}
	return found
}

func toolOf(raw []byte) string {
	return rawjson.Text(rawjson.Field(rawjson.Field(raw, "message"), "toolName"))
}

// A result of a tool has the name that its call on the way to it has, whichever provider's shapes they are in.
func TestNamesOfTools(t *testing.T) {
	calls := map[string]string{
		"anthropic": `{"role":"assistant","content":[{"type":"tool_use","id":"k","name":"%s","input":{}}]}`,
		"openai":    `{"role":"assistant","content":null,"tool_calls":[{"id":"k","type":"function","function":{"name":"%s","arguments":"{}"}}]}`,
		"responses": `{"type":"function_call","call_id":"k","name":"%s","arguments":"{}"}`,
		"bedrock":   `{"role":"assistant","content":[{"toolUse":{"toolUseId":"k","name":"%s","input":{}}}]}`,
	}
	results := map[string]string{
		"anthropic": `{"role":"user","content":[{"type":"tool_result","tool_use_id":"k","content":"r"}]}`,
		"openai":    `{"role":"tool","tool_call_id":"k","content":"r"}`,
		"responses": `{"type":"function_call_output","call_id":"k","output":"r"}`,
		"bedrock":   `{"role":"user","content":[{"toolResult":{"toolUseId":"k","content":[{"text":"r"}]}}]}`,
	}
	for shape, call := range calls {
		for name, write := range map[string]writer{"omp": omp.Write, "atomic": atomic.Write} {
			// The same id is called twice on two branches, and once more above; another result has no call.
			other := strings.ReplaceAll(results[shape], `"k"`, `"nobody"`)
			got, _ := written(t, write, "e",
				line("a", "", fmt.Sprintf(call, "old")), line("b", "a", fmt.Sprintf(call, "left")), line("c", "a", fmt.Sprintf(call, "right")),
				line("d", "b", results[shape]), line("n", "d", other), line("e", "c", results[shape]), line("o", "a", results[shape]))
			for id, want := range map[string]string{"d": "left", "e": "right", "o": "old", "n": "unknown"} {
				if tool := toolOf(got[id]); tool != want {
					t.Errorf("%s as %s, result %s: tool %q, want %q\n%s", shape, name, id, tool, want, got[id])
				}
			}
		}
		for name, extend := range map[string]extender{"omp": omp.Extend, "atomic": atomic.Extend} {
			var out bytes.Buffer
			if _, err := extend(&out, header, 1, seq(line("a", "", fmt.Sprintf(call, "ls")), line("b", "a", results[shape])), "b"); err != nil {
				t.Fatal(err)
			}
			if got := byID(out.String()); len(got) != 1 || toolOf(got["b"]) != "ls" {
				t.Errorf("%s added to a file of %s: %s", shape, name, out.String())
			}
		}
	}
}

// Calls without ids get one each, and what their tools gave has it too: in a new file, and behind one.
func TestIDsOfCalls(t *testing.T) {
	entries := []string{
		line("a", "", `{"role":"model","parts":[{"functionCall":{"name":"ls","args":{"n":1}}},{"functionCall":{"name":"ls","args":{"n":2}}}]}`),
		line("b", "a", `{"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"output":"one"}}},{"functionResponse":{"name":"ls","response":{"output":"two"}}}]}`),
		line("c", "b", `{"role":"model","parts":[{"functionCall":{"name":"ls","args":{"n":3}}}]}`),
		line("d", "c", `{"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"output":"three"}}}]}`),
	}
	id := regexp.MustCompile(`call_[0-9a-f]{24}`)
	for name, write := range map[string]writer{"omp": omp.Write, "atomic": atomic.Write, "operator": operator.Write} {
		var out bytes.Buffer
		if _, err := write(&out, header, seq(entries...), "d"); err != nil {
			t.Fatal(err)
		}
		got := id.FindAllString(out.String(), -1)
		if len(got) != 6 || got[0] == got[1] || got[2] != got[0] || got[3] != got[1] || got[4] == got[0] || got[4] == got[1] || got[5] != got[4] {
			t.Errorf("%s: %v\n%s", name, got, out.String())
		}
	}
}

// Documents and recordings are named in words, their bytes are no text for a model, and both are counted. What is
// text is kept whole, and operator has a place for recordings.
func TestDocuments(t *testing.T) {
	data := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("%PDF"), 10_000))
	small := base64.StdEncoding.EncodeToString([]byte("%PDF-"))
	long := strings.Repeat("words ", 10_000)
	const gone, form = piwriter.LostDocument, piwriter.LostForm
	for _, tt := range []struct{ name, block, want, lost string }{
		{"anthropic", `{"type":"document","title":"T","source":{"type":"base64","media_type":"application/pdf","data":"` + data + `"}}`, "[document: T, application/pdf, 40000 bytes, not in this file]", gone},
		{"small", `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + small + `"}}`, "[document, application/pdf, 5 bytes, not in this file]", gone},
		{"text", `{"type":"document","title":"T","source":{"type":"text","media_type":"text/plain","data":"` + long + `"}}`, "[document: T, text/plain]\n" + long, form},
		{"blocks", `{"type":"document","source":{"type":"content","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}`, "[document]\na\nb", form},
		{"elsewhere", `{"type":"document","source":{"type":"url","url":"https://x/y.pdf"}}`, "[document, https://x/y.pdf]", form},
		{"title alone", `{"type":"document","title":"T"}`, "[document: T]", form},
		{"chat completions", `{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,` + data + `"}}`, "[file: a.pdf, application/pdf, 40000 bytes, not in this file]", gone},
		{"responses", `{"type":"input_file","filename":"a.pdf","file_id":"f1"}`, "[input_file: a.pdf, f1]", form},
		{"gemini", `{"inlineData":{"mimeType":"application/pdf","data":"` + data + `"}}`, "[file, application/pdf, 40000 bytes, not in this file]", gone},
		{"gemini, elsewhere", `{"fileData":{"mimeType":"video/mp4","fileUri":"gs://x"}}`, "[file, video/mp4, gs://x]", form},
		{"bedrock", `{"document":{"format":"pdf","name":"n","source":{"bytes":"` + data + `"}}}`, "[document: n, pdf, 40000 bytes, not in this file]", gone},
		{"a recording", `{"type":"input_audio","input_audio":{"data":"` + data + `","format":"wav"}}`, "[input_audio, wav, 40000 bytes, not in this file]", gone},
		{"operator's recording", `{"type":"audio","audio":["` + data + `"]}`, "[audio, 40000 bytes, not in this file]", gone},
		{"an image's reference", `{"type":"image","data":"blob:sha256:00","mimeType":"image/png"}`, "[image: blob:sha256:00]", piwriter.LostImage},
	} {
		for place, message := range map[string]string{
			"user": `{"role":"user","content":[` + tt.block + `]}`, "parts": `{"role":"user","parts":[` + tt.block + `]}`, "model": `{"role":"assistant","content":[` + tt.block + `]}`,
			"result": `{"role":"user","content":[{"type":"tool_result","tool_use_id":"k","content":[` + tt.block + `]}]}`, "custom": `{"role":"custom","customType":"c","display":true,"content":[` + tt.block + `]}`,
		} {
			for name, write := range map[string]writer{"omp": omp.Write, "atomic": atomic.Write, "operator": operator.Write} {
				if name == "omp" && tt.lost == piwriter.LostImage {
					continue // its folder has the blob
				}
				got, losses := written(t, write, "a", line("a", "", message))
				if name == "operator" && strings.Contains(tt.name, "recording") && place != "result" && place != "custom" {
					if !strings.Contains(string(got["a"]), `"audio":["`+data+`"]`) {
						t.Errorf("%s in %s: operator has no recording: %.300s", tt.name, place, got["a"])
					}
					continue
				}
				text := string(rawjson.AppendString(nil, tt.want))
				if !strings.Contains(string(got["a"]), text) || strings.Contains(string(got["a"]), data) || losses[tt.lost] != 1 {
					t.Errorf("%s in %s as %s: %v\n%.400s", tt.name, place, name, losses, got["a"])
				}
			}
		}
	}
	// What is known to the target is left alone, byte for byte.
	for _, content := range []string{`"text"`, `[ {"type":"text","text":"a"} , {"type":"image","data":"AA==","mimeType":"image/png"} ]`, `[]`} {
		raw := line("a", "", `{"role":"user","content":`+content+`,"timestamp":1}`)
		if got, losses := written(t, atomic.Write, "a", raw); string(got["a"]) != raw || len(losses) > 0 {
			t.Errorf("%s became %s, %v", raw, got["a"], losses)
		}
	}
}

// Stubs of an import are a loss in every format.
func TestStubs(t *testing.T) {
	stub := `"stub":{"bytes":5000000,"limit":4194304}}`
	whole := strings.TrimSuffix(line("a", "", `{"role":"user","content":"[5000000 bytes left out]","timestamp":1}`), "}") + "," + stub
	bare := `{"type":"message","id":"b","parentId":"a","timestamp":"2026-01-01T00:00:00.000Z",` + stub
	foreign := `{"type":"custom","id":"c","parentId":"b","timestamp":"2026-01-01T00:00:00.000Z","customType":"x","data":{` + stub + "}"
	for name, write := range map[string]writer{"omp": omp.Write, "atomic": atomic.Write, "operator": operator.Write} {
		if got, losses := written(t, write, "c", whole, bare, foreign); losses[piwriter.LostStub] != 3 || len(got) != 4 {
			t.Errorf("%s: %v", name, losses)
		}
	}
	for name, extend := range map[string]extender{"omp": omp.Extend, "atomic": atomic.Extend, "operator": operator.Extend} {
		if losses, err := extend(io.Discard, header, 2, seq(whole, bare, line("d", "b", `{"role":"user","content":"x","timestamp":1}`)), "d"); err != nil || losses[piwriter.LostStub] != 0 {
			t.Errorf("%s: the file has them whole: %v, %v", name, losses, err)
		}
	}
}

// Only omp, which recognises its files by it, gets a title in the header; atomic has it as an entry.
func TestTitles(t *testing.T) {
	for _, raw := range []string{string(header.Raw), strings.Replace(string(header.Raw), `"cwd"`, `"title":"T","cwd"`, 1), strings.Replace(string(header.Raw), `"cwd"`, `"title":"Old","titleSource":"auto","cwd"`, 1)} {
		h := header
		h.Raw, h.Title = []byte(raw), "T"
		one := line("a", "", `{"role":"user","content":"x","timestamp":1}`)
		var out bytes.Buffer
		if _, err := omp.Write(&out, h, seq(one), "a"); err != nil {
			t.Fatal(err)
		}
		if first, _, _ := strings.Cut(out.String(), "\n"); !omp.Detect(out.Bytes()) || !strings.Contains(first, `"title":"T"`) || !strings.Contains(first, `"titleSource":"user"`) {
			t.Errorf("omp: %s", out.String())
		}
		out.Reset()
		if _, err := atomic.Write(&out, h, seq(one), "a"); err != nil {
			t.Fatal(err)
		}
		if first, rest, _ := strings.Cut(out.String(), "\n"); omp.Detect(out.Bytes()) || strings.Contains(first, "itle") || !strings.Contains(rest, `"type":"session_info"`) || !strings.Contains(rest, `"name":"T"`) {
			t.Errorf("atomic: %s", out.String())
		}
	}
	old := strings.Replace(string(header.Raw), `"cwd"`, `"title":"T","cwd"`, 1) + "\n"
	if omp.Detect([]byte(old)) {
		t.Error("a title alone is taken for omp's")
	}
	if !omp.Detect([]byte(old + `{"type":"model_change","id":"m","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","model":"a/b"}` + "\n")) {
		t.Error("omp's older files are not told")
	}
}

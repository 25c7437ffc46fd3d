package importer

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/testutil"
)

// The file of a family is kept with one of its sessions: what is erased in another one goes out of it too.
func TestEraseInTheFileOfAFamily(t *testing.T) {
	for kind, b := range map[string]backend.Backend{"append": memory.NewAppender(), "replace": memory.New()} {
		t.Run(kind, func(t *testing.T) {
			st, dir := storeOn(t, b), t.TempDir()
			path := filepath.Join(dir, claudeID+".jsonl")
			const side = `"userType":"external",`
			text := claudeLine(1, 0, "") + claudeLine(2, 1, "") + claudeLine(3, 0, side) + claudeLine(4, 3, side)
			writeFile(t, path, []byte(text), time.Unix(1, 0))
			r := take(t, st, Options{}, path)[0]
			if len(r.Children) != 1 {
				t.Fatalf("%+v", r)
			}
			child := r.Children[0]
			s := testutil.Must(st.Open(t.Context(), child, &coppice.SessionOptions{ReadOnly: true}))(t)
			prompt := testutil.Must(s.Context(t.Context()))(t).Messages[0].Entry
			here := testutil.Must(st.Erase(t.Context(), child, []string{prompt}, nil))(t)
			if len(here.Others) != 1 || here.Others[0].Session != r.Session {
				t.Errorf("the session that keeps the file is not named: %+v", here.Others)
			}
			if p := testutil.Must(st.Prove(t.Context(), "question 3"))(t); len(p.Found) != 1 {
				t.Errorf("the text is in %v", p.Found)
			}
			all := &coppice.EraseOptions{Everywhere: true}
			testutil.Must(st.Erase(t.Context(), child, []string{prompt}, all))(t)
			if p := testutil.Must(st.Prove(t.Context(), "question 3"))(t); len(p.Found) > 0 {
				t.Errorf("the text is in %v", p.Found)
			}
			if p := testutil.Must(st.Prove(t.Context(), "question 1"))(t); len(p.Found) < 2 {
				t.Errorf("the text that stays is in %v", p.Found)
			}
		})
	}
}

// A file that still has a message which was erased in its session does not bring it back: unchanged, compared as a
// whole, or under another name. Once the file has grown its import is refused.
func TestImportOfErased(t *testing.T) {
	_, pi := piFile(1)
	claude := claudeLine(1, 0, "") + claudeLine(2, 1, "")
	for name, file := range map[string]struct{ text, more, erased string }{
		"claude": {claude, claudeLine(3, 2, "") + claudeLine(4, 3, ""), "question 1"},
		"pi": {string(pi), `{"type":"message","id":"b","parentId":"a","timestamp":"2026-01-01T00:00:02.000Z",` +
			`"message":{"role":"user","content":"more"}}` + "\n", `"hi"`},
	} {
		for kind, b := range map[string]backend.Backend{"append": memory.NewAppender(), "replace": memory.New()} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				st, dir := storeOn(t, b), t.TempDir()
				path := filepath.Join(dir, claudeID+".jsonl")
				again := func(what, path string, o Options) (Result, error) {
					t.Helper()
					var batch Batch
					r, err := batch.Import(t.Context(), st, Find(t.Context(), []string{path})[0], o)
					if p := testutil.Must(st.Prove(t.Context(), file.erased))(t); len(p.Found) > 0 {
						t.Fatalf("%s: the text is in %v", what, p.Found)
					}
					return r, err
				}
				writeFile(t, path, []byte(file.text), time.Unix(1, 0))
				id := take(t, st, growing(), path)[0].Session
				s := testutil.Must(st.Open(t.Context(), id, &coppice.SessionOptions{ReadOnly: true}))(t)
				prompt := testutil.Must(s.Context(t.Context()))(t).Messages[0].Entry
				testutil.Must(st.Erase(t.Context(), id, []string{prompt}, nil))(t)

				verify, other := growing(), filepath.Join(dir, "other.jsonl")
				verify.Verify = true
				writeFile(t, other, []byte(file.text), time.Unix(2, 0))
				for _, c := range []struct {
					what, path string
					o          Options
				}{{"unchanged", path, growing()}, {"verified", path, verify}, {"another name", other, growing()}} {
					if r, err := again(c.what, c.path, c.o); err != nil || !r.Unchanged || r.Session != id {
						t.Errorf("%s: %+v, %v", c.what, r, err)
					}
				}
				writeFile(t, path, []byte(file.text+file.more), time.Unix(3, 0))
				for _, o := range []Options{growing(), verify} {
					if _, err := again("grown", path, o); !errors.Is(err, coppice.ErrErased) {
						t.Errorf("a file that grew: %v", err)
					}
				}
			})
		}
	}
}

// Of an answer that has several lines in the file each goes out of it, also one in the middle whose texts and ids are
// short, and a line that repeats it. An equal text of another entry stays.
func TestEraseShortPartsOfAnAnswer(t *testing.T) {
	at := func(n int, text string) string {
		return strings.Replace(text, "{", fmt.Sprintf(`{"timestamp":"2026-01-01T00:00:%02d.000Z",`, n), 1) + "\n"
	}
	said := func(role, kind, text string) string {
		return fmt.Sprintf(`{"type":"response_item","payload":{"type":"message","role":%q,`+
			`"content":[{"type":%q,"text":%q}]}}`, role, kind, text)
	}
	const head = `{"type":"session_meta","payload":{"id":"0198aaaa-0000-7000-8000-000000000001",` +
		`"timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w","originator":"codex_cli_rs","cli_version":"0.104.0",` +
		`"source":"cli","model_provider":"openai"}}`
	count := `{"type":"event_msg","payload":{"type":"token_count","info":null}}`
	codex := at(1, head) + at(2, said("user", "input_text", "quobly")) +
		at(3, `{"type":"response_item","payload":{"type":"reasoning",`+
			`"summary":[{"type":"summary_text","text":"hm"}]}}`) +
		at(4, count) + at(5, said("assistant", "output_text", "zorbal")) +
		at(6, `{"type":"event_msg","payload":{"type":"agent_message","message":"zorbal"}}`) +
		at(7, `{"type":"response_item","payload":{"type":"function_call","name":"f",`+
			`"arguments":"{\"a\":\"dirmow\",\"b\":\"a quite long one, zorbalonquist\"}",`+
			`"call_id":"c1"}}`) +
		at(8, `{"type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"quobly"}}`)
	part := func(n, parent int, content string) string {
		l := claudeLine(n, parent, "")
		i, j := strings.Index(l, `"content":[`), strings.Index(l, `],"stop_reason"`)
		return strings.Replace(l[:i]+`"content":[`+content+l[j:], fmt.Sprint("msg_", n), "msg_2", 1)
	}
	claude := strings.Replace(claudeLine(1, 0, ""), "question 1", "quobly", 1) +
		part(2, 1, `{"type":"text","text":"hm"}`) + part(4, 2, `{"type":"text","text":"zorbal"}`) +
		part(6, 4, `{"type":"tool_use","id":"c1","name":"f","input":{"a":"dirmow",`+
			`"b":"a quite long one, zorbalonquist"}}`) +
		strings.Replace(claudeLine(7, 6, ""), `"question 7"`,
			`[{"type":"tool_result","tool_use_id":"c1","content":"quobly"}]`, 1)
	for name, text := range map[string]string{"codex": codex, "claude": claude} {
		for kind, b := range map[string]backend.Backend{"append": memory.NewAppender(), "replace": memory.New()} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				st, dir := storeOn(t, b), t.TempDir()
				path := filepath.Join(dir, claudeID+".jsonl")
				writeFile(t, path, []byte(text), time.Unix(1, 0))
				id := take(t, st, growing(), path)[0].Session
				s := testutil.Must(st.Open(t.Context(), id, &coppice.SessionOptions{ReadOnly: true}))(t)
				messages := testutil.Must(s.Context(t.Context()))(t).Messages
				if len(messages) != 3 {
					t.Fatalf("%d messages", len(messages))
				}
				testutil.Must(st.Erase(t.Context(), id, []string{messages[1].Entry}, nil))(t)
				for _, gone := range []string{"zorbal", "dirmow", "zorbalonquist"} {
					if p := testutil.Must(st.Prove(t.Context(), gone))(t); len(p.Found) > 0 {
						t.Errorf("%s is in %v", gone, p.Found)
					}
				}
				var file bytes.Buffer
				testutil.OK(t, st.Export(t.Context(), id, &file))
				if n := strings.Count(file.String(), "quobly"); n != 2 {
					t.Errorf("what stays is %d times in the file: %s", n, file.String())
				}
			})
		}
	}
}

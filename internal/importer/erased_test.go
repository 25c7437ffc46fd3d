package importer

import (
	"errors"
	"path/filepath"
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

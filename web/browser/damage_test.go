package browser

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/entry"
)

// A session of which a part cannot be read shows the rest, says what is damaged and what to do, and hides no other one.
func TestDamagedSession(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, err := local.Open(dir, nil)
	ok(t, err)
	st := stored(t, b)
	for _, id := range []string{"whole", "hurt"} {
		h, err := st.Create(id, &coppice.SessionOptions{Title: "The session " + id})
		ok(t, err)
		for i := range 150 {
			_, err = h.Commit(t.Context(), coppice.Turn{
				Entries: drafts(entry.User(fmt.Sprintf("message %d of the session", i))),
				State:   jsonText(fmt.Sprintf(`{"n":%d}`, i)),
			})
			ok(t, err)
		}
		ok(t, h.Close())
	}
	logs, err := filepath.Glob(filepath.Join(dir, "sessions", "hurt", "transcript", "*.jsonl"))
	ok(t, err)
	raw, err := os.ReadFile(logs[0])
	ok(t, err)
	at := bytes.Index(raw, []byte("message 9 of the session"))
	raw[at] ^= 1
	ok(t, os.WriteFile(logs[0], raw, 0o600))

	s := newSite(t, st)
	p := newTab(t, s, wide)
	p.allow("status of 500")
	p.navigate("/s/hurt?pane=state")
	p.see(".talk .failed|coppice repair")
	p.see(".state .line|149")
	p.see(".state-changed|The state before this commit cannot be read.")
	p.see(".sessions a|The session hurt >> .facts|damaged")
	p.click(".tabs a|Model saw")
	p.see(".saw li:last-child|message 149 of the session")
	p.click(".sessions a|The session whole")
	p.see(".talk article|message 149 of the session")
	p.miss(".sessions a|The session whole >> .facts|damaged")
}

// A session that lost its newest commits says so.
func TestLostCommits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, err := local.Open(dir, nil)
	ok(t, err)
	st := stored(t, b)
	h, err := st.Create("short", nil)
	ok(t, err)
	for i := range 3 {
		_, err = h.Commit(t.Context(), coppice.Turn{Entries: drafts(entry.User(fmt.Sprintf("message %d", i)))})
		ok(t, err)
	}
	ok(t, h.Close())
	ok(t, st.Close())
	logs, err := filepath.Glob(filepath.Join(dir, "sessions", "short", "transcript", "*.jsonl"))
	ok(t, err)
	raw, err := os.ReadFile(logs[0])
	ok(t, err)
	lines := bytes.SplitAfter(raw, []byte("\n"))
	ok(t, os.WriteFile(logs[0], bytes.Join(lines[:len(lines)-3], nil), 0o600))

	st, err = coppice.Open(t.Context(), dir, nil)
	ok(t, err)
	t.Cleanup(func() { ok(t, st.Close()) })
	p := newTab(t, newSite(t, st), wide)
	p.navigate("/s/short")
	p.see(".talk article|message 1")
	p.see(".talk [role=alert]|Commits up to seq 3 were made, and are lost")
}

// An image that is gone leaves its place empty, and takes nothing else away.
func TestMissingImage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, err := local.Open(dir, nil)
	ok(t, err)
	st := stored(t, b)
	h, err := st.Create("pics", nil)
	ok(t, err)
	picture := base64.StdEncoding.EncodeToString(append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 80_000)...))
	for i := range 60 {
		e := entry.User(fmt.Sprintf("message %d", i))
		if i == 55 {
			e = entry.Message(map[string]any{"role": "user", "content": []any{
				map[string]any{"type": "text", "text": "this one"},
				map[string]any{"type": "image", "mimeType": "image/png", "data": picture},
			}})
		}
		_, err = h.Commit(t.Context(), coppice.Turn{Entries: drafts(e)})
		ok(t, err)
	}
	ok(t, h.Close())
	ok(t, st.Close())
	ok(t, os.RemoveAll(filepath.Join(dir, "sessions", "pics", "blobs")))

	st, err = coppice.Open(t.Context(), dir, nil)
	ok(t, err)
	t.Cleanup(func() { ok(t, st.Close()) })
	p := newTab(t, newSite(t, st), wide)
	p.allow("status of 404")
	p.navigate("/s/pics")
	p.see(".talk article|message 59")
	p.see(".talk article|this one >> .picture|png · 80 KB: it is not stored any more")
	p.see(".talk article|message 54")
	p.press("g g")
	p.see(".talk article|message 0")
	p.see(".talk .edge|start of the session")
}

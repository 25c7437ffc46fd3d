package browser

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
)

// onDisk writes sessions of so many commits to a new folder. turn makes each.
func onDisk(t *testing.T, commits int, turn func(i int) coppice.Turn, ids ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	st, err := coppice.Open(t.Context(), dir, nil)
	ok(t, err)
	for _, id := range ids {
		h, err := st.Create(id, &coppice.SessionOptions{Title: "The session " + id})
		ok(t, err)
		for i := range commits {
			_, err = h.Commit(t.Context(), turn(i))
			ok(t, err)
		}
		ok(t, h.Close())
	}
	ok(t, st.Close())
	return dir
}

// message is a turn of one message.
func message(i int) coppice.Turn {
	return coppice.Turn{
		Entries: drafts(entry.User(fmt.Sprintf("message %d of the session", i))), State: jsonText(fmt.Sprintf(`{"n":%d}`, i)),
	}
}

// damage changes the newest log of a session.
func damage(t *testing.T, dir, id string, change func(log []byte) []byte) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "sessions", id, "transcript", "*.jsonl"))
	ok(t, err)
	raw, err := os.ReadFile(logs[len(logs)-1])
	ok(t, err)
	ok(t, os.WriteFile(logs[len(logs)-1], change(raw), 0o600))
}

// served serves the store in a folder.
func served(t *testing.T, dir string) *site {
	t.Helper()
	st, err := coppice.Open(t.Context(), dir, nil)
	ok(t, err)
	t.Cleanup(func() { ok(t, st.Close()) })
	return newSite(t, st)
}

// A session of which a part cannot be read shows the rest, names what is damaged and what to do, and hides no other
// one.
func TestDamagedSession(t *testing.T) {
	t.Parallel()
	dir := onDisk(t, 150, message, "whole", "hurt")
	damage(t, dir, "hurt", func(log []byte) []byte {
		log[bytes.Index(log, []byte("message 9 of the session"))] ^= 1
		return log
	})
	p := newTab(t, served(t, dir), wide)
	p.allow("status of 500")
	p.navigate("/s/hurt?pane=state")
	p.see(".talk [role=alert]|A part of this session cannot be read")
	p.see(".state .line|149")
	p.see(".state-changed|The state before this commit cannot be read.")
	p.see(".sessions a|The session hurt >> .facts|damaged")
	p.click(".tabs a|Model saw")
	p.see(".saw li:last-child|message 149 of the session")
	p.click(".sessions a|The session whole")
	p.see(".talk article|message 149 of the session")
	p.miss(".sessions a|The session whole >> .facts|damaged")
}

// A list of messages that is cut short is marked where it ends; it is not the start of the session.
func TestListThatIsCutShort(t *testing.T) {
	t.Parallel()
	p := newTab(t, served(t, onDisk(t, 60, message, "cut")), wide)
	before(p, `(() => {
		const real = window.fetch;
		window.fetch = async (request) => {
			const answer = await real(request);
			if (!request.url.includes("/entries?")) return answer;
			const { next, ...page } = await answer.json();
			const error = { title: "Internal Server Error", status: 500, code: "corrupt", detail: "line 9 does not match" };
			return Response.json({ ...page, ...(next ? { error } : {}) });
		};
	})()`)
	p.navigate("/s/cut")
	p.see(".talk article|message 59")
	p.see(".talk .edge|What was said before cannot be read. This session is damaged.")
	p.miss(".talk .edge|start of the session")
	p.navigate("/s/cut?seq=1")
	p.see(".talk article|message 0")
	p.press("g g")
	p.see(".talk .edge|start of the session")
}

// A session that lost its newest commits is marked.
func TestLostCommits(t *testing.T) {
	t.Parallel()
	dir := onDisk(t, 3, message, "short")
	damage(t, dir, "short", func(log []byte) []byte {
		lines := bytes.SplitAfter(log, []byte("\n"))
		return bytes.Join(lines[:len(lines)-3], nil)
	})
	p := newTab(t, served(t, dir), wide)
	p.navigate("/s/short")
	p.see(".talk article|message 1")
	p.see(".talk [role=alert]|Commits up to seq 3 were made, and are lost")
}

// An image that is gone leaves its place empty, and takes nothing else away.
func TestMissingImage(t *testing.T) {
	t.Parallel()
	dir := onDisk(t, 60, func(i int) coppice.Turn {
		if i != 55 {
			return message(i)
		}
		picture := append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 80_000)...)
		return coppice.Turn{Entries: drafts(entry.User("this one", entry.Image("image/png", picture)))}
	}, "pics")
	ok(t, os.RemoveAll(filepath.Join(dir, "sessions", "pics", "blobs")))
	p := newTab(t, served(t, dir), wide)
	p.allow("blobs.*status of 404|status of 404.*blobs")
	p.navigate("/s/pics")
	p.see(".talk article|message 59")
	p.see(".talk article|this one >> .picture|png · 80 KB: it is not stored any more")
	p.see(".talk article|message 54")
	p.press("g g")
	p.see(".talk article|message 0")
	p.see(".talk .edge|start of the session")
	p.miss(".sessions a|The session pics >> .facts|damaged")
	if status := eval[int](p, `fetch("/v1/sessions/pics/usage").then((r) => r.status)`); status != 200 {
		t.Errorf("usage: %d", status)
	}
}

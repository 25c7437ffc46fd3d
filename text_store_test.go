package coppice_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/export"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/provider"
	"github.com/coppice-go/coppice/server"
	"github.com/coppice-go/coppice/transcript"
)

// latinDir holds a store on disk (local/) and the objects of a store that only replaces (objects/, a file a key), which
// an earlier release wrote while it still stored bytes that are not valid UTF-8: in messages, a whole line, an id, an
// amendment, arguments of an open call, states, documents, an explicit context, partial output, a title, the names of a
// branch, a tag and a writer, and an imported pi file. No release writes such a store again, so it is never made again.
const latinDir = "testdata/compat/latin1"

// latinKinds are the two stores, and how a copy of each is opened.
var latinKinds = kindsBelow(latinDir)

// latinFile is the file that the session "imported" was made of.
var latinFile = strings.Join([]string{
	`{"type":"session","version":3,"id":"pi-file","timestamp":"2026-02-03T08:00:00.000Z",` +
		`"cwd":"/home/ren` + "\xe9" + `","title":"Caf` + "\xe9" + `"}`,
	`{"type":"message","id":"q1","parentId":null,"timestamp":"2026-02-03T08:00:01.000Z",` +
		`"message":{"role":"user","content":"un caf` + "\xe9" + `","timestamp":1}}`,
	`{"type":"message","id":"a1","parentId":"q1","timestamp":"2026-02-03T08:00:02.000Z",` +
		`"message":{"role":"assistant","content":[{"type":"text","text":"caf` + "\xe9\xe9" + ` noir"}],` +
		`"stopReason":"stop","timestamp":2},"extra":"` + "\xff" + `"}`,
}, "\n") + "\n"

// Sessions that hold bytes which are not UTF-8 are read with U+FFFD in their place, by everything that reads them;
// the stored bytes stay, verify finds nothing, and the sessions go on.
func TestStoredTextThatIsNotUTF8(t *testing.T) {
	testutil.SkipLong(t)
	for kind, openBackend := range latinKinds {
		t.Run(kind, func(t *testing.T) {
			b := openBackend(t)
			store := compatStore(t, b)
			before := objects(t, b)
			compatSound(t, store, 0)
			var list []string
			for _, sum := range collect(t, store.List(bg, coppice.ListOptions{Docs: []string{"notes"}})) {
				list = append(list, sum.ID)
				isText(t, "listed "+sum.ID, sum)
			}
			same(t, "sessions", len(list), 5)
			for _, id := range list {
				latinRead(t, store, id)
				latinExported(t, store, id)
			}
			latinSpoken(t, store)
			latinServed(t, store, list)
			same(t, "the file as it came", exported(t, store.Export, "imported"), latinFile)
			same(t, "reading writes nothing", maps.Equal(objects(t, b), before), true)

			for _, id := range list {
				latinGoesOn(t, store, id)
			}
			latinGrows(t, store)
			compatSound(t, store, 0)
			ok(t, store.Close())
			compatSound(t, compatStore(t, b), 0)
		})
	}
}

// isText checks that JSON, or every text of a value, is valid UTF-8.
func isText(t testing.TB, what string, v any) {
	t.Helper()
	if _, err := rawjson.Marshal(what, v); err != nil {
		t.Error(err)
	}
}

// latinRead reads all that the library returns of a session.
func latinRead(t *testing.T, store *coppice.Store, id string) {
	t.Helper()
	s := open(t, store, id)
	defer func() { ok(t, s.Close()) }()
	isText(t, id+": info", s.Info())
	c := must(s.Context(bg))(t)
	for _, m := range c.Messages {
		isText(t, id+": context", m.Raw)
	}
	for _, call := range c.OpenCalls {
		isText(t, id+": open call", call.Arguments)
	}
	for _, api := range provider.APIs() {
		isText(t, id+": request", must(provider.Convert(bg, c, api, nil))(t))
	}
	for what, seq := range map[string]iter.Seq2[transcript.Entry, error]{
		"entries": s.Entries(bg), "originals": s.Originals(bg), "path": s.Path(bg, ""),
		"newest": s.Page(bg, coppice.Page{Reverse: true, Limit: 9}),
		"page":   s.Page(bg, coppice.Page{All: true}),
	} {
		for _, e := range collect(t, seq) {
			isText(t, id+": "+what, json.RawMessage(e.Raw))
		}
	}
	for name, p := range s.Docs() {
		isText(t, id+": document "+name, p)
	}
	for _, at := range collect(t, s.States(bg, coppice.Target{})) {
		latinDocument(t, id, at.Document)
		if at.Commit.Seq == 0 {
			continue
		}
		v := must(s.At(bg, coppice.Target{Seq: at.Commit.Seq}))(t)
		latinDocument(t, id, v.Document())
		for _, m := range must(v.Context(bg))(t).Messages {
			isText(t, id+": context then", m.Raw)
		}
		d := must(v.Diff(bg, must(s.At(bg, coppice.Target{}))(t)))(t)
		isText(t, id+": diff", d.State)
	}
	ctx, stop := context.WithCancel(bg)
	defer stop()
	for c, err := range s.WatchPartial(ctx, 0) {
		ok(t, err)
		isText(t, id+": patch", must(c.StatePatch(bg))(t))
		for _, e := range c.Entries {
			isText(t, id+": watched", json.RawMessage(e.Raw))
		}
		if c.Commit.Seq == s.Head().Seq {
			stop()
		}
	}
}

func latinDocument(t *testing.T, id string, d checkpoint.Document) {
	t.Helper()
	isText(t, id+": state", d.State)
	isText(t, id+": manager", d.Manager)
	for name, p := range d.Docs {
		isText(t, id+": document "+name, p)
	}
	for _, it := range d.Context {
		isText(t, id+": item", it.Message)
	}
}

// latinExported checks every form of an export but the original.
func latinExported(t *testing.T, store *coppice.Store, id string) {
	t.Helper()
	s := open(t, store, id)
	defer func() { ok(t, s.Close()) }()
	var text, page bytes.Buffer
	ok(t, export.Markdown(bg, s, &text, nil))
	ok(t, export.HTML(bg, s, &page, nil))
	for what, p := range map[string]string{
		"pi": exported(t, store.ExportPi, id), "markdown": text.String(), "html": page.String(),
	} {
		if !utf8.ValidString(p) || !strings.Contains(p, "\ufffd") {
			t.Errorf("%s as %s: %q", id, what, p)
		}
	}
}

// latinSpoken checks what a session of all kinds of text reads as.
func latinSpoken(t *testing.T, store *coppice.Store) {
	t.Helper()
	s := open(t, store, "spoken")
	defer func() { ok(t, s.Close()) }()
	same(t, "context", texts(t, s), "un caf\ufffd, please th\ufffd ordered They ordered caf\ufffd. and th\ufffd")
	var state, notes json.RawMessage
	ok(t, s.State(&state))
	ok(t, s.Doc("notes", &notes))
	same(t, "state", string(state), "{\"name\":\"caf\ufffd\",\"turns\":1}")
	same(t, "document", string(notes), "{\"n\":\"\ufffd\"}")
	same(t, "title", s.Info().Title, "caf\ufffd")
	e := must(s.Entry(bg, "id-\ufffd"))(t)
	same(t, "an id", e.ID, "id-\ufffd")
	m, _ := e.Message()
	same(t, "its text", m.Text(), "raw caf\ufffd")
}

// latinServed checks that all answers of the HTTP service are valid UTF-8.
func latinServed(t *testing.T, store *coppice.Store, list []string) {
	t.Helper()
	srv := must(server.New(server.Options{Store: store}))(t)
	h := httptest.NewServer(srv)
	defer h.Close()
	paths := []string{"/v1/sessions", "/v1/search?q=caf", "/v1/prompts"}
	for _, id := range list {
		for _, what := range []string{
			"", "/resume", "/state", "/state?at=seq:1", "/entries", "/entries?path=all", "/commits", "/commits/1",
			"/context", "/context?provider=anthropic", "/branches", "/snapshots", "/labels", "/usage", "/rows",
			"/map", "/blame?path=/name", "/diff?a=seq:1", "/events?after=0&wait=1",
			"/export?format=pi", "/export?format=html", "/export?format=claude-code", "/export?format=codex",
		} {
			paths = append(paths, "/v1/sessions/"+id+what)
		}
	}
	for _, path := range paths {
		r := must(http.Get(h.URL + path))(t)
		body := must(io.ReadAll(r.Body))(t)
		ok(t, r.Body.Close())
		if !utf8.Valid(body) || r.StatusCode != http.StatusOK {
			t.Errorf("GET %s: %d %.300q", path, r.StatusCode, body)
		}
	}
}

// latinGoesOn resumes a session and commits a turn.
func latinGoesOn(t *testing.T, store *coppice.Store, id string) {
	t.Helper()
	s := open(t, store, id)
	defer func() { ok(t, s.Close()) }()
	must(s.Append(bg, entry.User("and tea")))(t)
	commit(t, s, nil)
	commit(t, s, state{Turns: 3})
	same(t, id+": state", stateOf(t, s).Turns, 3)
	must(s.Rollback(bg, coppice.Target{Seq: 1}))(t)
	f := must(s.Fork(bg, coppice.Target{Seq: 1}, "", nil))(t)
	same(t, id+": a fork", f.Info().Title, s.Info().Title)
	ok(t, f.Close())
}

// latinGrows imports a longer file into the session that earlier lines were imported to.
func latinGrows(t *testing.T, store *coppice.Store) {
	t.Helper()
	const more = `{"type":"message","id":"q2","parentId":"a1","timestamp":"2026-02-03T08:00:03.000Z",` +
		`"message":{"role":"user","content":"et un th` + "\xe9" + `"}}` + "\n"
	lines, o := fileLines([]byte(latinFile + more))
	s := must(store.Import(bg, lines, o))(t)
	same(t, "imported again", texts(t, s), "un caf\ufffd caf\ufffd\ufffd noir et un th\ufffd")
	same(t, "the file as it came", exported(t, store.Export, s.ID()), latinFile+more)
	ok(t, s.Close())
}

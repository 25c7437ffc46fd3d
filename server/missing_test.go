package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// noCommitID is the id of no commit and of no entry.
const noCommitID = "01900000-0000-7000-8000-000000000000"

// 404 is for what the path names. An entry or a commit that a body or a query names, and that does not exist, is 422
// no-entry: not another writer's commit, and not the absence of the session. Nothing is stored.
func TestNoEntry(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		s.create("s")
		tag := s.do("POST", commits, hello("one"), "If-Match: *").etag()
		orphan := `{"type":"message","id":"x1","parentId":"nobody","timestamp":"2026-01-02T03:04:05Z",` +
			`"message":{"role":"user","content":"a"}}`
		for _, c := range []struct{ method, path, body string }{
			{"POST", "/commits", `{"entries":[` + orphan + `]}`},
			{"POST", "/commits", `{"entries":[{"type":"message","parentId":"nobody","message":{"role":"user"}}]}`},
			{"POST", "/commits", `{"entries":[{"type":"message","id":"x","parentId":"x","message":{"role":"user"}}]}`},
			{"POST", "/switch", `{"to":"nobody"}`},
			{"POST", "/branch", `{"entry":"nobody"}`},
			{"POST", "/edit", `{"entry":"nobody","message":{"role":"user","content":"b"}}`},
			{"POST", "/rollback", `{"to":"entry:nobody"}`},
			{"POST", "/rollback", `{"to":"commit:` + noCommitID + `"}`},
			{"POST", "/rollback", `{"to":"seq:99"}`},
			{"POST", "/label", `{"entry":"nobody","label":"red"}`},
			{"POST", "/compact", `{"summary":"in short","from":"nobody"}`},
			{"POST", "/fork", `{"to":"entry:nobody"}`},
			{"GET", "/state?at=entry:nobody", ""},
			{"GET", "/context?at=commit:" + noCommitID, ""},
			{"GET", "/diff?a=seq:99", ""},
			{"GET", "/diff?a=seq:0&b=entry:nobody", ""},
			{"GET", "/commits?at=entry:nobody", ""},
			{"GET", "/entries?path=nobody", ""},
			{"GET", "/entries?path=nobody&below=true", ""},
			{"GET", "/entries?from=nobody", ""},
			{"GET", "/entries?ids=nobody", ""},
			{"GET", "/rows?around=nobody", ""},
			{"GET", "/blame?at=seq:99", ""},
			{"GET", "/usage?at=seq:99", ""},
			{"GET", "/export?format=markdown&line=nobody", ""},
		} {
			for _, match := range []string{tag, "*"} {
				headers := []string{"If-Match: " + match}
				for _, key := range []string{"", "Idempotency-Key: k"} {
					if key != "" {
						headers = append(headers, key)
					}
					r := s.do(c.method, "/v1/sessions/s"+c.path, c.body, headers...)
					if p := r.want(t, 422); p["code"] != "no-entry" || r.etag() != "" {
						t.Errorf("%s %s, %v: %s", c.method, c.path, headers, r.body)
					}
					if strings.Contains(string(r.body), "another") {
						t.Errorf("%s %s: it speaks of another writer: %s", c.method, c.path, r.body)
					}
				}
			}
			// What the path names comes first.
			r := s.do(c.method, "/v1/sessions/none"+c.path, c.body, "If-Match: *")
			if p := r.want(t, 404); p["code"] != "not-found" {
				t.Errorf("%s %s: %s", c.method, c.path, r.body)
			}
		}
		for _, path := range []string{
			"/entries/nobody", "/versions/nobody", "/commits/99", "/blobs/" + strings.Repeat("0", 64),
		} {
			if p := s.do("GET", "/v1/sessions/s"+path, "").want(t, 404); p["code"] != "not-found" {
				t.Errorf("%s: %v", path, p)
			}
		}
		// A commit of If-Match that does not exist is a conflict, as before.
		stale := s.do("POST", commits, hello("two"), `If-Match: "`+noCommitID+`"`)
		if p := stale.want(t, 412); p["code"] != "conflict" || p["winner"] == nil {
			t.Errorf("%s", stale.body)
		}
		if now := s.do("GET", "/v1/sessions/s", "").etag(); now != tag {
			t.Errorf("the head is %s, was %s", now, tag)
		}
	})
}

// An entry without an id, or without a parentId, has the parent that its parentId names: an entry of the session or of
// the same commit. Without one, or with null, that is the head.
func TestParentOfAnEntryWithoutID(t *testing.T) {
	s := newSite(t, "mem:")
	s.create("s")
	said := func(head string) string {
		return `{` + head + `"type":"message","message":{"role":"user","content":"x"}}`
	}
	type receipt struct{ Entries []string }
	var first, second receipt
	send := func(into *receipt, entries string) {
		t.Helper()
		r := s.do("POST", commits, `{"entries":[`+entries+`]}`, "If-Match: *")
		r.want(t, 200)
		if err := json.Unmarshal(r.body, into); err != nil {
			t.Fatal(err)
		}
	}
	send(&first, said("")+","+said(""))
	a, b := first.Entries[0], first.Entries[1]
	send(&second, said(`"id":"c","parentId":"`+a+`",`)+","+said(`"parentId":"`+b+`",`)+","+said(`"parentId":"c",`)+","+
		said(`"parentId":null,`)+","+said(""))
	ids := slices.Concat(first.Entries, second.Entries)
	var list struct {
		Entries []struct{ ID, ParentID string }
	}
	if err := json.Unmarshal(s.do("GET", "/v1/sessions/s/entries?path=all", "").body, &list); err != nil {
		t.Fatal(err)
	}
	want := []string{"", a, a, b, "c", ids[4], ids[5]}
	if len(list.Entries) != len(want) {
		t.Fatalf("%d entries", len(list.Entries))
	}
	for i, e := range list.Entries {
		if e.ID != ids[i] || e.ParentID != want[i] {
			t.Errorf("entry %d is %s below %s, want %s below %s", i, e.ID, e.ParentID, ids[i], want[i])
		}
	}
	for _, head := range []string{`"parentId":5,`, `"id":"d","parentId":[],`, `"ParentId":"c",`, `"id":"e","id":"d",`} {
		body := `{"entries":[` + said(head) + `]}`
		if p := s.do("POST", commits, body, "If-Match: *").want(t, 400); p["code"] != "usage" {
			t.Errorf("%s: %v", head, p)
		}
	}
}

// An entry that another server has committed since is a parent like any other, whatever If-Match is.
func TestParentOfAnotherServer(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s, other := newSite(t, url), newSite(t, url)
		s.create("s")
		s.do("POST", commits, hello("one"), "If-Match: *").want(t, 200) // the handle is open
		theirs := other.do("POST", commits, hello("two"), "If-Match: *").want(t, 200)["entries"].([]any)[0].(string)
		line := `{"type":"message","id":"x1","parentId":"` + theirs + `","timestamp":"2026-01-02T03:04:05Z",` +
			`"message":{"role":"user","content":"a"}}`
		s.do("POST", commits, `{"entries":[`+line+`]}`, "If-Match: *").want(t, 200)
	})
}

// Every operation on a deleted session is 410 deleted, on the server that deleted it and on another one that had it
// open; its id is never used again.
func TestDeletedIsGone(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		d := readDescription(t)
		s, other := newSite(t, url), newSite(t, url)
		s.create("s")
		r := s.do("POST", commits, hello("one"), "If-Match: *")
		entry := r.want(t, 200)["entries"].([]any)[0].(string)
		view := s.do("GET", "/v1/sessions/s/rows", "").want(t, 200)["view"].(string)
		other.do("POST", commits, hello("two"), "If-Match: *").want(t, 200)
		other.do("GET", "/v1/sessions/s/branches", "").want(t, 200)
		s.do("DELETE", "/v1/sessions/s", "", "If-Match: *").want(t, 200)
		for _, op := range d.operations {
			if !strings.Contains(op.path, "{id}") || op.OperationID == "deleteSession" {
				continue
			}
			c := valid(op, subject{id: "s", fresh: "s", entries: []string{entry, entry, entry, entry, entry, entry}})
			path := strings.NewReplacer("{id}", "s", "{entry}", entry, "{seq}", "1", "{name}", "d",
				"{sha256}", "0").Replace(op.path)
			if c.query != "" {
				path += "?" + c.query
			}
			c.headers = append(c.headers, "If-None-Match: *")
			for name, on := range map[string]*site{"the server that deleted it": s, "another one": other} {
				if on == other && op.OperationID == "partial" { // it asks no store: until the session is closed there
					continue
				}
				r := on.do(op.method, path, c.body, c.headers...)
				if p := r.want(t, http.StatusGone); p["code"] != "deleted" {
					t.Errorf("%s on %s: %s", op.OperationID, name, r.body)
				}
			}
		}
		for _, query := range []string{"view=" + view, "view=none", "around=nobody"} {
			if p := s.do("GET", "/v1/sessions/s/rows?"+query, "").want(t, 410); p["code"] != "deleted" {
				t.Errorf("%s: %v", query, p)
			}
		}
		if p := s.do("GET", "/v1/sessions/none/rows?view=none", "").want(t, 404); p["code"] != "not-found" {
			t.Errorf("a view of no session: %v", p)
		}
	})
}

// A stream of a session ends when the session is deleted, and so does a long poll.
func TestStreamOfADeleted(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		s.create("s")
		begun := make(chan struct{})
		ended := make(chan reply, 1)
		go func() {
			defer close(ended)
			resp, err := http.Get(s.url + "/v1/sessions/s/events") //nolint:noctx // ends with the server
			close(begun)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = resp.Body.Close() }()
			ended <- reply{Response: resp, body: readAll(resp)}
		}()
		<-begun
		s.do("DELETE", "/v1/sessions/s", "", "If-Match: *").want(t, 200)
		if r := <-ended; r.StatusCode != http.StatusOK {
			t.Errorf("%d %s", r.StatusCode, r.body)
		}
	})
}

func readAll(resp *http.Response) []byte {
	raw, _ := io.ReadAll(resp.Body) // a stream ends as it likes
	return raw
}

package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/server"
)

// say commits messages to the session s, and returns the receipt.
func (s *site) say(texts ...string) (ids []string, etag string) {
	s.t.Helper()
	var list []string
	for _, text := range texts {
		list = append(list, `{"role":"user","content":"`+text+`"}`)
	}
	r := s.do("POST", commits, `{"entries":[`+strings.Join(list, ",")+`]}`, "If-Match: *")
	return r.entries(s.t), r.etag()
}

// entries returns the ids in a receipt.
func (r reply) entries(t testing.TB) (ids []string) {
	t.Helper()
	for _, id := range r.want(t, 200)["entries"].([]any) {
		ids = append(ids, id.(string))
	}
	return ids
}

// context returns the texts of the context of the session s.
func (s *site) context() (texts []string) {
	s.t.Helper()
	var doc struct{ Context []struct{ Content string } }
	r := s.do("GET", "/v1/sessions/s/resume", "")
	r.want(s.t, 200)
	decodeInto(s.t, r.body, &doc)
	for _, m := range doc.Context {
		texts = append(texts, m.Content)
	}
	return texts
}

func wantTexts(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// A commit with from moves the head and appends, in one commit: the line that it leaves has a name. A repeat gets the
// same receipt.
func TestCommitFrom(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		s.create("s")
		ids, etag := s.say("a", "b", "c")
		body := `{"from":"` + ids[0] + `","entries":[{"role":"user","content":"B"}],"state":{"n":1}}`
		r := s.do("POST", commits, body, "If-Match: "+etag, "Idempotency-Key: k")
		got := r.want(t, 200)
		if got["left"] == nil || got["kept"] != nil || got["seq"].(float64) != 2 {
			t.Errorf("receipt %s", r.body)
		}
		wantTexts(t, "context", s.context(), "a", "B")
		again := s.do("POST", commits, body, "If-Match: "+etag, "Idempotency-Key: k")
		if doc := again.want(t, 200); doc["repeated"] != true || doc["seq"].(float64) != 2 || again.etag() != r.etag() {
			t.Errorf("repeat %s", again.body)
		}
		root := `{"from":"","entries":[{"role":"user","content":"root"}]}`
		s.do("POST", commits, root, "If-Match: "+r.etag()).want(t, 200)
		wantTexts(t, "context from before the first entry", s.context(), "root")
		s.do("POST", commits, `{"from":"nobody"}`, "If-Match: *").want(t, 422)
		s.do("POST", commits, body, "If-Match: "+etag).want(t, 412)
		lost := s.do("POST", commits, strings.Replace(body, `{`, `{"onConflict":"keep-both",`, 1), "If-Match: "+etag)
		if doc := lost.want(t, 200); doc["kept"] == nil || doc["left"] != nil {
			t.Errorf("kept: %s", lost.body)
		}
	})
}

// A commit sets the context: of entries and messages, and what it appends. An empty one is derived again.
func TestCommitContext(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		s.create("s")
		ids, etag := s.say("a", "b", "c")
		body := `{"context":[{"message":{"role":"user","content":"short"}},{"entry":"` + ids[2] +
			`"}],"entries":[{"role":"user","content":"d"}]}`
		r := s.do("POST", commits, body, "If-Match: "+etag, "Idempotency-Key: k")
		r.want(t, 200)
		wantTexts(t, "set", s.context(), "short", "c", "d")
		again := s.do("POST", commits, body, "If-Match: "+etag, "Idempotency-Key: k")
		if doc := again.want(t, 200); doc["repeated"] != true || again.etag() != r.etag() {
			t.Errorf("repeat %s", again.body)
		}
		if p := s.do("POST", commits, body, "If-Match: "+etag).want(t, 412); p["winner"] == nil {
			t.Errorf("stale: %v", p)
		}
		s.say("e") // through the handle that was open before
		wantTexts(t, "kept up", s.context(), "short", "c", "d", "e")
		s.do("POST", commits, `{"context":[]}`, "If-Match: *").want(t, 200)
		wantTexts(t, "derived", s.context(), "a", "b", "c", "d", "e")
		for _, bad := range []string{
			`{"context":[{}]}`, `{"context":[],"from":""}`, `{"context":[],"onConflict":"keep-both"}`,
			`{"context":[{"message":"x"}]}`,
		} {
			s.do("POST", commits, bad, "If-Match: *").want(t, 400)
		}
		s.do("POST", commits, `{"context":[{"entry":"nobody"}]}`, "If-Match: *").want(t, 422)
	})
}

// Each entry may have a rule of its own for an id that the session has, and a message may bring along what its program
// has of it, byte for byte.
func TestEntriesInEnvelopes(t *testing.T) {
	s := newSite(t, "mem:")
	s.create("s")
	original := `{"b":1.50,"a":[1e3]}`
	first := `{"id":"x","message":{"role":"user","content":"one"},"original":` + original +
		`,"timestamp":"2026-01-02T03:04:05.678Z"}`
	s.do("POST", commits, `{"entries":[`+first+`]}`, "If-Match: *").want(t, 200)
	line := string(s.do("GET", "/v1/sessions/s/entries/x", "").body)
	stamp := `"timestamp":"2026-01-02T03:04:05.678Z"`
	if !strings.Contains(line, `"original":`+original) || !strings.Contains(line, stamp) {
		t.Errorf("stored as %s", line)
	}
	wantTexts(t, "context", s.context(), "one")
	s.do("POST", commits, `{"entries":[`+first+`]}`, "If-Match: *").want(t, 409)
	mixed := `{"entries":[` + strings.Replace(first, `{`, `{"onKnownId":"ignore",`, 1) + `,` +
		`{"entry":{"type":"message","id":"y","parentId":"x","message":{"role":"user","content":"two"}},` +
		`"onKnownId":"ignore"},` +
		`{"role":"user","content":"three"}]}`
	r := s.do("POST", commits, mixed, "If-Match: *")
	if ids := r.entries(t); len(ids) != 3 || ids[0] != "x" || ids[1] != "y" {
		t.Errorf("%s", r.body)
	}
	wantTexts(t, "known is passed over", s.context(), "one", "two", "three")
	s.do("POST", commits, `{"entries":[{"entry":{"type":"message","id":"y","message":{"role":"user","content":"TWO"}},`+
		`"onKnownId":"amend"}],"onKnownId":"error"}`, "If-Match: *").want(t, 200)
	wantTexts(t, "amended", s.context(), "one", "TWO", "three")
	for _, bad := range []string{
		`{"message":{"role":"user"},"onKnownId":"never"}`, `{"message":{"role":"user"},"id":5,"original":1}`,
		`{"message":{"role":"user"},"timestamp":"now"}`, `{"entry":{"entry":{"role":"user"}},"onKnownId":"ignore"}`,
	} {
		s.do("POST", commits, `{"entries":[`+bad+`]}`, "If-Match: *").want(t, 400)
	}
}

// A commit with create begins a session that is not there, and is an ordinary one where it is. A deleted session begins
// again on request.
func TestCommitCreates(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		body := func(text, more string) string {
			return `{"create":{"title":"New","meta":{"team":"blue"}` + more + `},"entries":[` +
				`{"role":"user","content":"` + text + `"}]}`
		}
		s.do("POST", commits, hello("x"), "If-Match: *").want(t, 404)
		s.do("POST", commits, body("x", ""), `If-Match: "`+noCommitID+`"`).want(t, 404)
		r := s.do("POST", commits, body("one", ""), "If-Match: *", "Idempotency-Key: k")
		if doc := r.want(t, 200); doc["seq"].(float64) != 1 || doc["created"] != true {
			t.Errorf("receipt %s", r.body)
		}
		again := s.do("POST", commits, body("one", ""), "Idempotency-Key: k")
		if doc := again.want(t, 200); doc["repeated"] != true || doc["created"] != nil {
			t.Errorf("repeat %s", again.body)
		}
		if doc := s.do("POST", commits, body("two", ""), "If-Match: "+r.etag()).want(t, 200); doc["created"] != nil {
			t.Errorf("the second one: %v", doc)
		}
		info := s.do("GET", "/v1/sessions/s", "").want(t, 200)
		if info["title"] != "New" || fmt.Sprint(info["meta"]) != "map[team:blue]" {
			t.Errorf("%v", info)
		}
		s.do("DELETE", "/v1/sessions/s", "", "If-Match: *").want(t, 200)
		s.do("POST", commits, body("gone", ""), "If-Match: *").want(t, 410)
		s.do("POST", commits, body("again", `,"again":true`), "If-Match: *").want(t, 200)
		wantTexts(t, "the next one", s.context(), "again")
		s.do("DELETE", "/v1/sessions/s", "", "If-Match: *").want(t, 200)
		s.do("PUT", "/v1/sessions/s", `{}`, "If-None-Match: *").want(t, 410)
		s.do("PUT", "/v1/sessions/s", `{"again":true}`, "If-None-Match: *").want(t, 201)
		s.say("third")
		wantTexts(t, "the one after it", s.context(), "third")
	})
}

// Clients that begin a session at the same time by their first commits store each of them once.
func TestCommitsCreateTogether(t *testing.T) {
	s := newSite(t, "mem:")
	const n = 8
	done := make(chan reply, n)
	for i := range n {
		go func() {
			r, err := s.try(t.Context(), "POST", commits, fmt.Sprintf(
				`{"create":{},"entries":[{"role":"user","content":"%d"}]}`, i), "If-Match: *",
				fmt.Sprintf("Idempotency-Key: %d", i))
			if err != nil {
				t.Error(err)
			}
			done <- r
		}()
	}
	created := 0
	for range n {
		r := <-done
		if r.want(t, 200)["created"] == true {
			created++
		}
	}
	if got := s.context(); created != 1 || len(got) != n {
		t.Errorf("%d created it, context %q", created, got)
	}
}

// An entry is amended, hidden, and shown again; a branch is renamed, and loses its name. None of that moves the head or
// conflicts, and a repeat is made once.
func TestAnnotationsOverHTTP(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		s.create("s")
		ids, etag := s.say("a", "b")
		seq := s.do("GET", "/v1/sessions/s", "").want(t, 200)["seq"].(float64)
		note := func(name, body string) map[string]any {
			t.Helper()
			var first map[string]any
			for i, match := range []string{etag, "*", ""} {
				headers := []string{fmt.Sprint("Idempotency-Key: ", name, seq)}
				if match != "" {
					headers = append(headers, "If-Match: "+match)
				}
				doc := s.do("POST", "/v1/sessions/s/"+name, body, headers...).want(t, 200)
				if i == 0 {
					first = doc
				} else if doc["repeated"] != true || doc["seq"] != first["seq"] {
					t.Errorf("%s again: %v, was %v", name, doc, first)
				}
			}
			if seq++; first["seq"].(float64) != seq {
				t.Errorf("%s: %v, want seq %v", name, first, seq)
			}
			return first
		}
		note("amend", `{"entry":"`+ids[0]+`","message":{"role":"user","content":"A"}}`)
		wantTexts(t, "amended", s.context(), "A", "b")
		note("hide", `{"entry":"`+ids[0]+`"}`)
		wantTexts(t, "hidden", s.context(), "b")
		note("amend", `{"entry":"`+ids[0]+`"}`)
		wantTexts(t, "as it was", s.context(), "a", "b")
		s.do("POST", "/v1/sessions/s/hide", `{"entry":"nobody"}`).want(t, 422)
		s.do("POST", "/v1/sessions/s/amend", `{"entry":"nobody","message":{"role":"user","content":"A"}}`).want(t, 422)

		s.do("POST", "/v1/sessions/s/branch", `{"entry":"`+ids[0]+`","name":"side"}`, "If-Match: *").want(t, 200)
		etag = s.do("GET", "/v1/sessions/s", "").etag()
		seq++
		names := func() (list []string) {
			for _, b := range s.do("GET", "/v1/sessions/s/branches", "").want(t, 200)["branches"].([]any) {
				list = append(list, b.(map[string]any)["name"].(string))
			}
			slices.Sort(list)
			return list
		}
		if doc := note("rename-branch", `{"branch":"side","name":"other"}`); doc["branch"] != "other" {
			t.Errorf("renamed: %v", doc)
		}
		wantTexts(t, "branches", names(), "main", "other")
		s.do("POST", "/v1/sessions/s/rename-branch", `{"branch":"other","name":"main"}`).want(t, 409)
		note("rename-branch", `{"branch":"main","name":""}`)
		wantTexts(t, "branches", names(), "other")
		s.do("POST", "/v1/sessions/s/rename-branch", `{"branch":"side","name":"x"}`).want(t, 422)
		if p := s.do("POST", "/v1/sessions/s/rename-branch", `{"branch":"side"}`).want(t, 400); p["code"] != "usage" {
			t.Errorf("without a name: %v", p)
		}
	})
}

// A partial of a session that another server has deleted is 410, as a commit is.
func TestPartialOfADeleted(t *testing.T) {
	below := memory.New()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := func(o *server.Options) { o.Now = func() time.Time { return now } }
	s, other := siteOn(t, storeOn(t, below), clock), siteOn(t, storeOn(t, below))
	s.create("s")
	partial := func(status int) {
		t.Helper()
		r := s.do("POST", "/v1/sessions/s/partial", `{"partial":{"role":"assistant","content":"so f"}}`)
		if r.StatusCode != status {
			t.Errorf("status %d, want %d: %s", r.StatusCode, status, r.body)
		}
	}
	partial(204)
	other.do("DELETE", "/v1/sessions/s", "", "If-Match: *").want(t, 200)
	now = now.Add(3 * time.Second)
	partial(410)
	partial(410)
}

// A snapshot whose answer was lost is looked for. Where that is impossible the answer is 504, with what to do.
func TestSnapshotOfUnknownOutcome(t *testing.T) {
	s, b := newFaulty(t, memory.New())
	s.create("s")
	s.say("a")
	take := func() reply { return s.do("POST", "/v1/sessions/s/snapshot", `{"tag":"t"}`, "If-Match: *") }
	b.Add(fault.Rule{When: fault.On("put", ""), Kind: fault.After, Count: -1})
	if doc := take().want(t, 200); doc["tag"] != "t" {
		t.Errorf("found: %v", doc)
	}
	b.Add(fault.Rule{When: fault.On("list", ""), Kind: fault.Before, Count: -1})
	if p := take().want(t, 504); p["code"] != "outcome-unknown" || !strings.Contains(p["hint"].(string), "snapshots") {
		t.Errorf("%v", p)
	}
	b.Clear()
}

// A deletion with children deletes what the session has started, and what that has, and no fork. If it fails in the
// middle, it reports what is left, and a repeat continues.
func TestDeleteWithChildren(t *testing.T) {
	b := fault.New(memory.New(), 1)
	s := siteOn(t, storeOn(t, b))
	for id, parent := range map[string]string{"s": "", "c1": "s", "c2": "s", "g": "c1", "alone": ""} {
		body := `{"parent":"` + parent + `","relation":"agent"}`
		s.do("PUT", "/v1/sessions/"+id, body, "If-None-Match: *").want(t, 201)
	}
	s.do("POST", "/v1/sessions/s/fork", `{"id":"f"}`, "If-Match: *").want(t, 201)
	list := func() (ids []string) {
		ids = s.do("GET", "/v1/sessions?order=id", "").ids(t, "sessions", "id")
		slices.Sort(ids)
		return ids
	}
	remove := func() reply { return s.do("DELETE", "/v1/sessions/s?children=true", "", "If-Match: *") }

	b.Add(fault.Rule{
		When: fault.On("put", "checkpoint_latest/c1"), Kind: fault.Before, Outcome: backend.NotApplied, Count: -1,
	})
	p := remove().want(t, 500)
	left := fmt.Sprint(p["left"])
	if left != "[c1 s]" && left != "[c2 c1 s]" && left != "[c1 c2 s]" || p["hint"] == nil {
		t.Errorf("failed: %v", p)
	}
	b.Clear()
	if now := list(); slices.Contains(now, "g") || !slices.Contains(now, "s") {
		t.Errorf("there are %q", now)
	}
	doc := remove().want(t, http.StatusOK)
	if doc["session"] != "s" || len(doc["children"].([]any)) == 0 {
		t.Errorf("%v", doc)
	}
	wantTexts(t, "left", list(), "alone", "f")
	remove().want(t, 410)
	s.do("DELETE", "/v1/sessions/s?childs=true", "", "If-Match: *").want(t, 400)
}

// A quota of sessions holds for commits that create one. A token for sessions with a value in their metadata creates
// such, and reaches none that has another value.
func TestCommitCreatesWithinBounds(t *testing.T) {
	s, _ := byTenant(t, withTokens(parse(t, line("all", "-", "read,write,issue")+"quota acme sessions=2\n")))
	const at = "/t/acme/v1/"
	send := func(token, id string) reply {
		return s.do("POST", at+"sessions/"+id+"/commits", `{"create":{"meta":{"a":"b"}},"state":1}`, "If-Match: *",
			"Authorization: Bearer "+token)
	}
	short := s.do("POST", at+"tokens", `{"meta":{"user":"u1"},"write":true}`, "Authorization: Bearer all").
		want(t, 201)["token"].(string)
	send("all", "theirs").want(t, 200)
	send(short, "theirs").want(t, 403)
	send(short, "mine").want(t, 200)
	send(short, "mine").want(t, 200)
	meta := s.do("GET", at+"sessions/mine", "", "Authorization: Bearer "+short).want(t, 200)["meta"]
	if fmt.Sprint(meta) != "map[a:b user:u1]" {
		t.Errorf("metadata %v", meta)
	}
	if p := send("all", "third").want(t, 507); p["code"] != "quota" {
		t.Errorf("%v", p)
	}
	s.do("DELETE", at+"sessions/mine?children=true", "", "If-Match: *", "Authorization: Bearer "+short).want(t, 403)
}

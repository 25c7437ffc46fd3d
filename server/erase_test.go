package server_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/server"
)

const erased = "zorbalonquist"

// shown are requests that show an entry of the session s.
var shown = []string{
	"/v1/sessions/s", "/v1/sessions/s/rows", "/v1/sessions/s/resume", "/v1/sessions/s/context?limit=1",
	"/v1/sessions/s/entries?limit=all", "/v1/sessions/s/export?format=markdown", "/v1/sessions",
	"/v1/search?q=" + erased, "/v1/prompts?q=" + erased, "/v1/sessions/s/context?at=seq:1",
}

// showing returns those of the requests whose answer has the text.
func (s *site) showing() (which []string) {
	s.t.Helper()
	for _, path := range shown {
		r := s.do("GET", path, "")
		r.want(s.t, 200)
		if strings.Contains(string(r.body), erased+" opens") {
			which = append(which, path)
		}
	}
	return which
}

// An erased entry is in no answer any more, not in the index and not in the trash. The writer that was there
// continues, and a repeat changes nothing.
func TestEraseOverHTTP(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		dir := t.TempDir()
		file := filepath.Join(dir, "history.db")
		s := newSite(t, url, func(o *server.Options) {
			o.Trash = dir
			o.Index = server.Index{File: func(string) string { return file }}
		})
		s.create("s")
		ids, _ := s.say(erased+" opens the door", "and again")
		s.do("POST", "/v1/sessions/s/fork", `{"id":"fork"}`, "If-Match: *").want(t, 201)
		s.do("POST", "/v1/sessions/s/fork", `{"id":"gone"}`, "If-Match: *").want(t, 201)
		s.do("DELETE", "/v1/sessions/gone?trash=true", "", "If-Match: *").want(t, 200)
		_, before := s.say("later")
		if got := s.showing(); len(got) != len(shown) {
			t.Fatalf("only %q show the entry", got)
		}
		ask := func(more string) map[string]any {
			t.Helper()
			return s.do("POST", "/v1/sessions/s/erase", `{"entries":["`+ids[0]+`"]`+more+`}`).want(t, 200)
		}
		dry := ask(`,"dryRun":true`)
		if dry["dryRun"] != true || dry["io"].(map[string]any)["put"] == 0.0 || len(s.showing()) != len(shown) {
			t.Errorf("a dry run: %v", dry)
		}
		doc := ask(`,"reason":"asked","everywhere":true,"purgeTrash":true`)
		if doc["commit"] == nil || len(doc["others"].([]any)) != 1 || len(doc["trash"].([]any)) != 1 ||
			doc["purged"] != true {
			t.Errorf("%v", doc)
		}
		for _, suffix := range []string{"", "-wal"} {
			raw, err := os.ReadFile(file + suffix)
			if err != nil && !errors.Is(err, fs.ErrNotExist) || bytes.Contains(raw, []byte(erased)) {
				t.Errorf("the index%s has the text: %v", suffix, err)
			}
		}
		if got := s.showing(); len(got) > 0 {
			t.Errorf("%q show the entry", got)
		}
		if p, err := s.st.Prove(t.Context(), erased); err != nil || len(p.Found) > 0 {
			t.Errorf("the text is in %v: %v", p.Found, err)
		}
		s.do("POST", commits, hello("on the commit before"), "If-Match: "+before).want(t, 200)
		again := ask("")
		if again["commit"] != nil || len(again["already"].([]any)) != 1 || len(again["trash"].([]any)) != 0 {
			t.Errorf("again: %v", again)
		}
		stub := s.do("GET", "/v1/sessions/s/entries/"+ids[0], "").want(t, 200)["erased"]
		if got := fmt.Sprint(stub); !strings.Contains(got, "reason:asked") {
			t.Errorf("the stub is %s", got)
		}
	})
}

// Values within states, and documents, go by their place; what asks for nothing is refused.
func TestEraseStatesOverHTTP(t *testing.T) {
	s := newSite(t, "mem:")
	s.create("s")
	s.do("POST", commits, `{"entries":[],"state":{"plan":["`+erased+`",1]},"docs":{"notes":"`+erased+`"}}`,
		"If-Match: *").want(t, 200)
	s.do("POST", "/v1/sessions/s/erase", `{"entries":[]}`).want(t, 400)
	s.do("POST", "/v1/sessions/s/erase", `{"entries":[],"states":["plan"]}`).want(t, 400)
	doc := s.do("POST", "/v1/sessions/s/erase", `{"entries":[],"states":["/plan/0"],"docs":["notes","x"]}`).want(t, 200)
	if fmt.Sprint(doc["states"], doc["docs"]) != "[/plan/0] [notes]" {
		t.Errorf("%v", doc)
	}
	if p, err := s.st.Prove(t.Context(), erased); err != nil || len(p.Found) > 0 {
		t.Errorf("the text is in %v: %v", p.Found, err)
	}
	state := s.do("GET", "/v1/sessions/s/resume", "").want(t, 200)["state"]
	if got := fmt.Sprint(state); got != "map[plan:[<nil> 1]]" {
		t.Errorf("the state is %s", got)
	}
}

func TestEraseRefusedOverHTTP(t *testing.T) {
	s := siteOn(t, storeOn(t, memory.New()), func(o *server.Options) {
		o.Authorize = func(r *http.Request) (server.Access, error) {
			a := server.Access{Rights: server.Admin}
			switch r.Header.Get("Authorization") {
			case "writer":
				a.Rights = server.Read | server.Write | server.Delete
			case "narrow":
				a.Only.Session = "s"
			}
			return a, nil
		}
	})
	s.create("s")
	ids, made := s.say(erased)
	one := `"entries":["` + ids[0] + `"]`
	for _, row := range []struct {
		path, body, who string
		status          int
	}{
		{"s", `{` + one + `}`, "writer", 403},
		{"s", `{` + one + `,"everywhere":true}`, "narrow", 403},
		{"s", `{` + one + `,"purgeTrash":true}`, "narrow", 403},
		{"s", `{"entries":[]}`, "", 400},
		{"s", `{"entries":["nothing"]}`, "", 422},
		{"s", `{"entries":[` + made + `]}`, "", 422},
		{"s", `{` + one + `,"reason":"` + strings.Repeat("x", 257) + `"}`, "", 413},
		{"s", `{` + one + `,"unknown":1}`, "", 400},
		{"none", `{` + one + `}`, "", 404},
	} {
		r := s.do("POST", "/v1/sessions/"+row.path+"/erase", row.body, "Authorization: "+row.who)
		if r.StatusCode != row.status {
			t.Errorf("%s, %s: status %d, want %d: %s", row.body, row.who, r.StatusCode, row.status, r.body)
		}
	}
	if p, err := s.st.Prove(t.Context(), erased); err != nil || len(p.Found) == 0 {
		t.Errorf("it was erased all the same: %v", err)
	}
	s.do("POST", "/v1/sessions/s/erase", `{`+one+`}`, "Authorization: narrow").want(t, 200)
	s.do("DELETE", "/v1/sessions/s", "", "If-Match: *").want(t, 200)
	s.do("POST", "/v1/sessions/s/erase", `{`+one+`}`).want(t, 410)
}

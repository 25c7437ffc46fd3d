package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"
)

// followed is what a client knows of a session that applies events, as docs/http.md describes.
type followed struct {
	head, branch string
	branches     map[string]string // heads by name
}

// followedEvent is the data of an event that it needs.
type followedEvent struct {
	Seq          uint64
	Head         *string
	Branch, Kept string
	Reason       string
	Writer       string
	Entries      []struct{ ID, Type, TargetID, Label string }
}

func (f *followed) apply(e *followedEvent) {
	head := ""
	if e.Head != nil {
		head = *e.Head
	}
	switch {
	case e.Kept != "" && e.Kept == e.Branch: // a turn that lost: the session stays where it was
		f.branches[e.Kept] = head
		return
	case e.Kept != "": // the line that was left got a name
		f.branches[e.Kept] = f.head
	}
	f.head, f.branch, f.branches[e.Branch] = head, e.Branch, head
}

// A client that applies events knows head, branches and labels of a session without asking again, whatever was done to it.
func TestEventsAreEnough(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		ids := longer(s, 4)
		stale := s.do("GET", "/v1/sessions/s", "").etag()
		post := func(op, body string, headers ...string) {
			t.Helper()
			if len(headers) == 0 {
				headers = []string{"If-Match: *"}
			}
			s.do("POST", "/v1/sessions/s/"+op, body, headers...).want(t, 200)
		}
		post("label", `{"entry":"`+ids[1]+`","label":"good"}`)
		post("commits", hello("main"))
		post("commits", `{"onConflict":"keep-both","entries":[{"role":"user","content":"lost"}]}`, "If-Match: "+stale)
		post("branch", `{"entry":"`+ids[1]+`","name":"try"}`)
		post("commits", hello("on try"))
		post("switch", `{"to":"main"}`)
		post("edit", `{"entry":"`+ids[2]+`","message":{"role":"user","content":"edited"}}`)
		post("rollback", `{"to":"seq:2"}`)
		post("commits", hello("after the rollback"))
		post("switch", `{"to":"`+ids[3]+`"}`)
		s.do("PATCH", "/v1/sessions/s", `{"title":"new"}`, "If-Match: *").want(t, 200)
		post("snapshot", `{"tag":"t"}`)

		f := followed{branches: map[string]string{}}
		labels := map[string]string{}
		raw := s.do("GET", "/v1/sessions/s/events?after=0&wait=1", "").want(t, 200)["commits"].([]any)
		for _, c := range raw {
			text, err := json.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			var e followedEvent
			decodeInto(t, text, &e)
			if f.apply(&e); e.Reason == "" || e.Writer == "" || e.Seq == 0 {
				t.Errorf("%s", text)
			}
			for _, entry := range e.Entries {
				if entry.Type == "label" {
					labels[entry.TargetID] = entry.Label
				}
			}
		}
		want := map[string]string{}
		for _, b := range s.do("GET", "/v1/sessions/s/branches", "").want(t, 200)["branches"].([]any) {
			head, _ := b.(map[string]any)["head"].(string)
			want[b.(map[string]any)["name"].(string)] = head
		}
		now := s.do("GET", "/v1/sessions/s/resume", "").want(t, 200)
		if !maps.Equal(f.branches, want) || f.head != now["head"] || f.branch != now["branch"] {
			t.Errorf("by events %+v; the session: head %v, branch %v, branches %v", f, now["head"], now["branch"], want)
		}
		if fmt.Sprint(labels) != fmt.Sprint(map[string]string{ids[1]: "good"}) {
			t.Errorf("labels %v", labels)
		}
	})
}

package server_test

import (
	"strings"
	"testing"
)

// What a write on an older commit meets depends on what came since: a move conflicts if branch, head or state differ,
// an annotation with nothing, what needs the newest commit with every commit, and all with a claim.
func TestWritesOnAnOlderCommit(t *testing.T) {
	const session = "/v1/sessions/s"
	since := map[string][][3]string{
		"label":     {{"POST", "/label", `{"entry":"ENTRY","label":"theirs"}`}},
		"title":     {{"PATCH", "", `{"title":"theirs"}`}},
		"keep-both": {{"POST", "/commits", `{"state":9,"onConflict":"keep-both"}`}},
		"claim":     {{"POST", "/claim", `{}`}},
		"state":     {{"POST", "/commits", `{"state":2}`}},
	}
	moves := [][3]string{
		{"POST", "/branch", `{"entry":"ENTRY"}`},
		{"POST", "/rollback", `{"to":"seq:1"}`},
		{"POST", "/edit", `{"entry":"ENTRY","message":{"role":"user","content":"uno"}}`},
		{"POST", "/commits", `{"state":7}`},
	}
	notes := [][3]string{
		{"PATCH", "", `{"title":"mine"}`},
		{"POST", "/label", `{"entry":"ENTRY","label":"mine"}`},
		{"POST", "/claim", `{}`},
	}
	newest := [][3]string{{"DELETE", "", ""}, {"POST", "/fork", `{}`}, {"POST", "/snapshot", `{}`}}
	for name, theirs := range since {
		try := func(w [3]string, status int) {
			t.Run(name+" "+w[0]+w[1], func(t *testing.T) {
				s := newSite(t, "mem:")
				created := s.create("s")
				made := s.do("POST", commits, hello("one"), "If-Match: *")
				entry := made.want(t, 200)["entries"].([]any)[0].(string)
				for _, w := range theirs {
					tag := "*"
					if name == "keep-both" {
						tag = created
					}
					s.do(w[0], session+w[1], strings.ReplaceAll(w[2], "ENTRY", entry), "If-Match: "+tag).want(t, 200)
				}
				before := s.do("GET", session, "").etag()
				r := s.do(w[0], session+w[1], strings.ReplaceAll(w[2], "ENTRY", entry), "If-Match: "+made.etag())
				r.want(t, status)
				after := s.do("GET", session, "").etag()
				note := w[1] == "" || w[1] == "/label" || w[1] == "/claim"
				switch {
				case status != 200 && after != before:
					t.Errorf("it was refused, and the newest commit is %s, was %s", after, before)
				case status == 200 && note && r.etag() != made.etag():
					t.Errorf("the ETag is %s: its client has not seen what came before", r.etag())
				case status == 200 && !note && r.etag() != after:
					t.Errorf("the ETag is %s, want that of the newest commit, %s", r.etag(), after)
				}
			})
		}
		for _, w := range moves {
			status := map[string]int{"claim": 409, "state": 412}[name]
			try(w, max(status, 200))
		}
		for _, w := range notes {
			if name == "claim" && w[1] != "/claim" {
				try(w, 409)
			} else {
				try(w, 200)
			}
		}
		for _, w := range newest {
			try(w, 412)
		}
	}
}

// "*" in quotes is a tag like any other, and no commit has it.
func TestQuotedStarIsNoWildcard(t *testing.T) {
	s := newSite(t, "mem:")
	tag := s.create("s")
	for _, star := range []string{`"*"`, `W/"*"`, `W/*`} {
		s.do("POST", commits, hello("one"), "If-Match: "+star).want(t, 412)
		s.do("DELETE", "/v1/sessions/s", "", "If-Match: "+star).want(t, 412)
		s.do("PUT", "/v1/sessions/t", `{}`, "If-None-Match: "+star).want(t, 428)
		s.do("GET", "/v1/sessions/s/resume", "", "If-None-Match: "+star).want(t, 200)
	}
	if got := s.do("GET", "/v1/sessions/s", "").etag(); got != tag {
		t.Errorf("the head is %s, was %s", got, tag)
	}
}

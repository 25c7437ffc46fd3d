package server_test

import (
	"strings"
	"testing"
)

// A write that was made on an older commit is refused, whatever came since: a label, a title, a branch that was kept,
// a claim, or a way that led back to where it began.
func TestOlderCommitIsRefused(t *testing.T) {
	const session = "/v1/sessions/s"
	since := map[string][][3]string{
		"label":     {{"POST", "/label", `{"entry":"ENTRY","label":"theirs"}`}},
		"title":     {{"PATCH", "", `{"title":"theirs"}`}},
		"keep-both": {{"POST", "/commits", `{"state":9,"onConflict":"keep-both"}`}},
		"claim":     {{"POST", "/claim", `{}`}},
		"away and back": {
			{"POST", "/commits", `{"state":2}`}, {"POST", "/commits", `{"state":{"said":"one"}}`},
		},
	}
	writes := [][3]string{
		{"PATCH", "", `{"title":"mine"}`},
		{"DELETE", "", ""},
		{"POST", "/label", `{"entry":"ENTRY","label":"mine"}`},
		{"POST", "/switch", `{"to":"main"}`},
		{"POST", "/branch", `{"entry":"ENTRY"}`},
		{"POST", "/rollback", `{"to":"seq:1"}`},
		{"POST", "/edit", `{"entry":"ENTRY","message":{"role":"user","content":"uno"}}`},
		{"POST", "/fork", `{}`},
		{"POST", "/snapshot", `{}`},
		{"POST", "/claim", `{}`},
	}
	for name, theirs := range since {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, "mem:")
			created := s.create("s")
			made := s.do("POST", commits, hello("one"), "If-Match: *")
			entry := made.want(t, 200)["entries"].([]any)[0].(string)
			for _, w := range theirs {
				tag := "*"
				if name == "keep-both" {
					tag = created
				}
				r := s.do(w[0], session+w[1], strings.ReplaceAll(w[2], "ENTRY", entry), "If-Match: "+tag)
				r.want(t, 200)
			}
			newest := s.do("GET", session, "").etag()
			status := 412
			if name == "claim" {
				status = 409
			}
			for _, w := range writes {
				r := s.do(w[0], session+w[1], strings.ReplaceAll(w[2], "ENTRY", entry), "If-Match: "+made.etag())
				if r.StatusCode != status {
					t.Errorf("%s %s on an older commit: %d %s", w[0], w[1], r.StatusCode, r.body)
				}
			}
			if got := s.do("GET", session, "").etag(); got != newest {
				t.Errorf("the head is %s, was %s", got, newest)
			}
		})
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

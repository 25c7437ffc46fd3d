package server_test

import (
	"strings"
	"testing"
)

// A move whose answer was lost can be sent again with its Idempotency-Key. It is not repeated and is no conflict: it
// returns the first answer, after later commits and from another server too.
func TestMovesAreMadeOnce(t *testing.T) {
	for name, body := range map[string]string{
		"switch": `{"to":"side"}`, "branch": `{"entry":"ENTRY","name":"new"}`,
		"edit": `{"entry":"ENTRY","message":{"role":"user","content":"again"}}`, "rollback": `{"to":"seq:1"}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, "mem:")
			s.create("s")
			say := func(on *site) reply {
				return on.do("POST", "/v1/sessions/s/commits", `{"entries":[{"role":"user","content":"hi"}]}`, "If-Match: *")
			}
			first := say(s).want(t, 200)["entries"].([]any)[0].(string)
			s.do("POST", "/v1/sessions/s/branch", `{"entry":"`+first+`","name":"side"}`, "If-Match: *").want(t, 200)
			say(s)
			s.do("POST", "/v1/sessions/s/switch", `{"to":"main"}`, "If-Match: *").want(t, 200)
			on := say(s).Header.Get("ETag")
			body := strings.ReplaceAll(body, "ENTRY", first)
			send := func(on *site, match, key, body string) reply {
				return on.do("POST", "/v1/sessions/s/"+name, body, "If-Match: "+match, "Idempotency-Key: "+key)
			}
			was := send(s, on, "k", body)
			want := was.want(t, 200)
			if want["repeated"] != nil {
				t.Error("the first one counts as a repeat")
			}
			repeat := func(from *site, match string) {
				t.Helper()
				again := send(from, match, "k", body)
				got := again.want(t, 200)
				if got["repeated"] != true || got["seq"] != want["seq"] || got["head"] != want["head"] || got["kept"] != want["kept"] ||
					again.Header.Get("ETag") != was.Header.Get("ETag") {
					t.Errorf("the repeat is %v, was %v", got, want)
				}
			}
			repeat(s, on)
			repeat(s, "*")
			say(s)
			repeat(s, on)
			other := siteOn(t, s.st)
			repeat(other, on)

			send(s, on, "other", body).want(t, 412)
			send(s, on, "k", strings.NewReplacer("side", "main", first, first[:len(first)-1], "seq:1", "seq:2").Replace(body)).want(t, 422)
			if seq := s.do("GET", "/v1/sessions/s", "").want(t, 200)["seq"].(float64); seq != want["seq"].(float64)+1 {
				t.Errorf("the session has %g commits", seq)
			}
		})
	}
}

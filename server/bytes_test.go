package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// anyJSON returns JSON as no encoder would write it: numbers and escapes of all spellings, keys in any order and more
// than once, and white space.
func anyJSON(t *rapid.T, depth int) string {
	kinds := 7
	if depth > 3 {
		kinds = 5
	}
	space := rapid.SampledFrom([]string{"", "", "", " ", "\n\t", "\r\n "}).Draw(t, "space")
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return rapid.SampledFrom([]string{
			"1", "1.0", "1e2", "1E+2", "-0", "-0.0", "9007199254740993", "12345678901234567890.10", "1e999999",
			"0.1000000000000000055511151231257827", "123456789012345678901234567890", "-1e-400",
		}).Draw(t, "number") + space
	case 1:
		return rapid.SampledFrom([]string{
			`"\u2028"`, "\"\u2028\"", `"\ud83d\ude00"`, `"\ud800"`, `"\udc00\ud800"`, `"\u0000"`, `"\/"`, `"/"`, `"\u003c"`,
			`"<&>"`, `"\u00e9"`, `"é"`, `"e\u0301"`, `"\b\f\n\r\t"`, `"\u000A"`, `""`, `"\\"`, `"\""`, `"\uFFFF"`,
		}).Draw(t, "text")
	case 2:
		return rapid.SampledFrom([]string{"true", "false", "null"}).Draw(t, "word") + space
	case 3, 4:
		raw, err := json.Marshal(rapid.String().Draw(t, "string"))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	case 5:
		items := make([]string, rapid.IntRange(0, 4).Draw(t, "items"))
		for i := range items {
			items[i] = space + anyJSON(t, depth+1)
		}
		return "[" + strings.Join(items, ",") + space + "]"
	}
	members := make([]string, rapid.IntRange(0, 4).Draw(t, "members"))
	for i := range members {
		key := rapid.SampledFrom([]string{`"a"`, `"z"`, `"a"`, `"\u0061"`, `""`, `"B"`, `"é"`}).Draw(t, "key")
		members[i] = space + key + space + ":" + anyJSON(t, depth+1)
	}
	return "{" + strings.Join(members, ",") + space + "}"
}

// compact is the JSON without insignificant white space, which is all that may change.
func compact(t *rapid.T, raw string) string {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(raw)); err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	return b.String()
}

// Messages and states come back byte for byte, wherever they are read, without insignificant white space.
func TestBytesPassThrough(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		n := 0
		rapid.Check(t, func(rt *rapid.T) {
			n++
			at := fmt.Sprintf("/v1/sessions/b%d", n)
			s.do("PUT", at, "{}", "If-None-Match: *").want(t, 201)
			message := `{"role": "user", "content": "x", "first":` + anyJSON(rt, 0) + `, "last" :` + anyJSON(rt, 0) + "}"
			state := anyJSON(rt, 0)
			if compact(rt, state) == "null" {
				state = "[null]" // null clears
			}
			r := s.do("POST", at+"/commits", `{"entries":[`+message+`],"state":`+state+`}`, "If-Match: *")
			r.want(t, 200)
			message, state = compact(rt, message), compact(rt, state)
			for path, want := range map[string]string{
				"/state": state + "\n", "/state?at=seq:1": state + "\n",
				"/resume": `"state":` + state + `,`, "/context": `[` + message + `]`, "/entries": `"message":` + message,
				"/entries?path=all": `"message":` + message, "/original": `"message":` + message,
				"/events?after=0&wait=1": `"message":` + message, "/blame": `"value":` + state + `}`,
				"/diff?a=seq:0": `"value":` + state + `}`,
			} {
				got := s.do("GET", at+path, "")
				if got.StatusCode != http.StatusOK || !strings.Contains(string(got.body), want) {
					rt.Errorf("%s has not %s: %s", path, want, got.body)
				}
			}
			if got := s.do("GET", at+"/resume", ""); !strings.Contains(string(got.body), `"context":[`+message+`]`) {
				rt.Errorf("resume has not %s: %s", message, got.body)
			}
			if got := s.do("GET", at+"/events?after=0&wait=1", ""); !strings.Contains(string(got.body), `"value":`+state+`}`) {
				rt.Errorf("the event has not %s: %s", state, got.body)
			}
		})
	})
}

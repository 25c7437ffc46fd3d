package server_test

import (
	"fmt"
	"strings"
	"testing"
)

// Members of a body match exactly, and occur once: encoding/json would take ENTRIES for entries, and the last of two.
// What the caller stores is the caller's own.
func TestMembersMatchExactly(t *testing.T) {
	s := newSite(t, "mem:")
	s.create("s")
	r := s.do("POST", commits, hello("one"), "If-Match: *")
	entry := r.want(t, 200)["entries"].([]any)[0].(string)
	tag := r.etag()
	for _, c := range []struct{ method, path, body, names string }{
		{"POST", "/commits", `{"ENTRIES":[{"role":"user","content":"a"}]}`, `"ENTRIES"`},
		{"POST", "/commits", `{"State":1}`, `"State"`},
		{"POST", "/commits", `{"\u017ftate":1}`, "\"\u017ftate\""}, // encoding/json folds this letter into s
		{"POST", "/commits", `{"onknownid":"ignore","state":1}`, `"onknownid"`},
		{"POST", "/commits", `{"state":1,"state":2}`, `"state"`},
		{"POST", "/commits", `{"state":1,"sta\u0074e":2}`, `"state"`},
		{"POST", "/commits", `{"docs":{"plan":1,"plan":2}}`, `"plan"`},
		{"POST", "/commits", `{"docs":{"plan":1,"p\u006can":2}}`, `"plan"`},
		{"POST", "/switch", `{"To":"main"}`, `"To"`},
		{"POST", "/switch", `{"to":"none","to":"main"}`, `"to"`},
		{"POST", "/branch", `{"entry":"` + entry + `","entry":""}`, `"entry"`},
		{"POST", "/label", `{"entry":"` + entry + `","label":"a","Label":"b"}`, `"Label"`},
		{"POST", "/partial", `{"partial":null,"partial":{"role":"assistant","content":"x"}}`, `"partial"`},
		{"POST", "/claim", `{"a":1}`, `"a"`},
		{"POST", "/verify", `{"deep":true,"deep":false}`, `"deep"`},
		{"POST", "/fork", `{"id":"f","ID":"g"}`, `"ID"`},
		{"PATCH", "", `{"title":"a","title":"b"}`, `"title"`},
		{"PATCH", "", `{"meta":{"k":"a","k":null}}`, `"k"`},
	} {
		r := s.do(c.method, "/v1/sessions/s"+c.path, c.body, "If-Match: *")
		p := r.want(t, 400)
		if detail, _ := p["detail"].(string); p["code"] != "usage" || !strings.Contains(detail, c.names) {
			t.Errorf("%s %s: %s", c.path, c.body, r.body)
		}
	}
	for _, body := range []string{`{"title":"a","title":"b"}`, `{"Title":"a"}`, `{"meta":{"k":"a","k":"b"}}`} {
		s.do("PUT", "/v1/sessions/new", body, "If-None-Match: *").want(t, 400)
	}
	if now := s.do("GET", "/v1/sessions/s", "").etag(); now != tag {
		t.Errorf("the head is %s, was %s", now, tag)
	}
	own := `{"role":"user","content":"a","x":1,"x":2,"X":3}`
	s.do("POST", commits, `{"entries":[`+own+`],"state":{"a":1,"a":2,"A":3}}`, "If-Match: *").want(t, 200)
	if got := s.do("GET", "/v1/sessions/s/state", "").body; strings.TrimSpace(string(got)) != `{"a":1,"a":2,"A":3}` {
		t.Errorf("the state is %s", got)
	}
}

// A body that is not UTF-8 is refused with the offset of its first bad byte. Escapes are text, also of half a surrogate
// pair, and an import has its own rules.
func TestBodyIsUTF8(t *testing.T) {
	s := newSite(t, "mem:")
	s.create("s")
	entry := s.do("POST", commits, hello("one"), "If-Match: *").want(t, 200)["entries"].([]any)[0].(string)
	tag := s.do("GET", "/v1/sessions/s", "").etag()
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/commits", `{"entries":[{"role":"user","content":"caf` + "\xe9" + `"}]}`},
		{"POST", "/commits", `{"state":"` + "\xed\xa0\x80" + `"}`},
		{"POST", "/commits", `{"docs":{"` + "\xc0\x80" + `":1}}`},
		{"POST", "/commits", `{"` + "\xff" + `":1}`},
		{"POST", "/commits", "\xff"},
		{"POST", "/label", `{"entry":"` + entry + `","label":"` + "\xe9" + `"}`},
		{"POST", "/branch", `{"entry":"` + entry + `","name":"` + "\xe9" + `"}`},
		{"POST", "/snapshot", `{"tag":"` + "\xe9" + `"}`},
		{"POST", "/partial", `{"partial":{"role":"assistant","content":"` + "\xe9" + `"}}`},
		{"PATCH", "", `{"title":"` + "\xe9" + `"}`},
		{"PATCH", "", `{"meta":{"k":"` + "\xe9" + `"}}`},
	} {
		at := strings.IndexFunc(c.body, func(r rune) bool { return r == '\ufffd' })
		r := s.do(c.method, "/v1/sessions/s"+c.path, c.body, "If-Match: *")
		p := r.want(t, 400)
		detail, _ := p["detail"].(string)
		if p["code"] != "usage" || !strings.Contains(detail, fmt.Sprintf("byte %d ", at)) {
			t.Errorf("%s %q, want byte %d: %s", c.path, c.body, at, r.body)
		}
	}
	s.do("PUT", "/v1/sessions/new", `{"title":"`+"\xe9"+`"}`, "If-None-Match: *").want(t, 400)
	if now := s.do("GET", "/v1/sessions/s", "").etag(); now != tag {
		t.Errorf("the head is %s, was %s", now, tag)
	}
	s.do("POST", commits, `{"state":"\ud800"}`, "If-Match: *").want(t, 200)
}

// Parameters are UTF-8 too, in the path, in the query and in headers that are stored.
func TestParametersAreUTF8(t *testing.T) {
	s := newSite(t, "mem:")
	s.create("s")
	for _, path := range []string{
		"/v1/sessions/s%FF", "/v1/sessions/s/entries/%E9", "/v1/sessions/s/commits/%80", "/v1/sessions/s/state?at=%E9",
		"/v1/sessions?q=caf%E9", "/v1/sessions?meta.%E9=x", "/v1/sessions?meta.k=%E9", "/v1/search?q=%FF",
	} {
		r := s.do("GET", path, "")
		if p := r.want(t, 400); p["code"] != "usage" || !strings.Contains(string(r.body), "UTF-8") {
			t.Errorf("%s: %s", path, r.body)
		}
	}
	r := s.do("POST", commits, hello("one"), "If-Match: *", "Idempotency-Key: caf\xe9")
	if r.want(t, 400); !strings.Contains(string(r.body), "UTF-8") {
		t.Errorf("%s", r.body)
	}
	s.do("POST", commits, hello("one"), "If-Match: *", "Idempotency-Key: café").want(t, 200)
}

// Of two headers with different values none is chosen.
func TestHeadersOccurOnce(t *testing.T) {
	s := newSite(t, "mem:")
	s.create("s")
	for _, name := range []string{"Idempotency-Key", "Coppice-Writer"} {
		r := s.do("POST", commits, hello("one"), "If-Match: *", name+": a", name+": b")
		if p := r.want(t, 400); p["code"] != "usage" || !strings.Contains(string(r.body), name) {
			t.Errorf("%s: %s", name, r.body)
		}
	}
}

// A query that an operation does not have is refused, with every operation: a misspelled limit would change nothing.
func TestUnknownParameters(t *testing.T) {
	d := readDescription(t)
	s := newSite(t, "mem:")
	s.create("s")
	tag := s.do("POST", commits, hello("one"), "If-Match: *").etag()
	for _, op := range d.operations {
		c := valid(op, subject{id: "s", fresh: "new", entries: []string{"a", "a", "a", "a", "a", "a"}})
		path := strings.NewReplacer("{id}", c.id, "{entry}", "a", "{seq}", "1", "{name}", "d",
			"{sha256}", "0").Replace(op.path)
		for query, names := range map[string]string{
			"nosuch=1": `"nosuch"`, "Limit=1": `"Limit"`, "=1": `""`, "limit%20=1": `"limit "`, "at[]=1": `"at[]"`,
			"a%00b": `"a\x00b"`, "meta=x": `"meta"`, "limit=%zz": "%zz", "a;b": "semicolon",
		} {
			r := s.do(op.method, path+"?"+query, c.body, c.headers...)
			p := r.want(t, 400)
			if detail, _ := p["detail"].(string); p["code"] != "usage" || !strings.Contains(detail, names) {
				t.Errorf("%s?%s: %s", op.OperationID, query, r.body)
			}
		}
	}
	if now := s.do("GET", "/v1/sessions/s", "").etag(); now != tag {
		t.Errorf("the head is %s, was %s", now, tag)
	}
	s.do("GET", "/v1/sessions?meta.a=x&meta.b=y", "").want(t, 200)
	s.do("GET", "/v1/usage?meta.a=x", "").want(t, 200)
	s.do("GET", "/v1/sessions/s/state?meta.a=x", "").want(t, 400)
}

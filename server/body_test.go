package server_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/testutil"
)

// A body without what the description requires of it is refused: it would move the head to where no one asked for.
func TestBodyWithoutRequiredMember(t *testing.T) {
	s := newSite(t, "mem:")
	s.create("s")
	r := s.do("POST", commits, hello("one"), "If-Match: *")
	entry := r.want(t, 200)["entries"].([]any)[0].(string)
	s.do("POST", "/v1/sessions/s/label", `{"entry":"`+entry+`","label":"green"}`, "If-Match: *").want(t, 200)
	tag := s.do("GET", "/v1/sessions/s", "").etag()
	for _, c := range [][2]string{
		{"switch", `{}`},
		{"switch", `{"to":""}`},
		{"branch", `{}`},
		{"branch", `{"name":"b"}`},
		{"rollback", `{}`},
		{"rollback", `{"to":""}`},
		{"rollback", `{"to":null}`},
		{"rollback", `null`},
		{"edit", `{"entry":"` + entry + `"}`},
		{"label", `{"entry":"` + entry + `"}`},
		{"label", `{"label":"red"}`},
		{"compact", `{}`},
		{"partial", `{}`},
		{"commits", `null`},
		{"claim", `null`},
		{"snapshot", ` null `},
		{"fork", `null`},
	} {
		r := s.do("POST", "/v1/sessions/s/"+c[0], c[1], "If-Match: *")
		if p := r.want(t, 400); p["code"] != "usage" {
			t.Errorf("%s %s: %s", c[0], c[1], r.body)
		}
	}
	s.do("PATCH", "/v1/sessions/s", `null`, "If-Match: *").want(t, 400)
	s.do("PUT", "/v1/sessions/t", `null`, "If-None-Match: *").want(t, 400)
	if got := s.do("GET", "/v1/sessions/s", "").etag(); got != tag {
		t.Errorf("the head is %s, was %s", got, tag)
	}
	// What is empty on purpose stays possible.
	s.do("POST", "/v1/sessions/s/partial", `{"partial":null}`).want(t, 204)
	s.do("POST", "/v1/sessions/s/label", `{"entry":"`+entry+`","label":""}`, "If-Match: *").want(t, 200)
	s.do("POST", "/v1/sessions/s/branch", `{"entry":""}`, "If-Match: *").want(t, 200)
}

// What is wrong with a body is found before its end comes.
func TestBodyIsReadAsItComes(t *testing.T) {
	testutil.SkipLong(t)
	s := newSite(t, "mem:")
	s.create("s")
	long := strings.Repeat("x", 33<<20)
	for _, c := range []struct {
		body   string
		status int
		names  string
	}{
		{`{"nosuch":`, 400, "nosuch"},
		{`{"state":1,"state":`, 400, "twice"},
		{"{\"state\":\"\xff", 400, "byte 10 "},
		{`{"entries":[` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + ",", 400, "deep"},
		{`{"state":"` + long, 413, "a value is longer"},
		{`{"entries":[{"role":"user","content":"` + long, 413, "a value is longer"},
	} {
		r, w := io.Pipe()
		req := httptest.NewRequest(http.MethodPost, s.url+commits, r)
		req.Header.Set("If-Match", "*")
		out := httptest.NewRecorder()
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.srv.ServeHTTP(out, req)
		}()
		if _, err := io.WriteString(w, c.body); err != nil {
			t.Error(err)
		}
		_ = w.CloseWithError(errors.New("the end is never read"))
		<-done
		if out.Code != c.status || !strings.Contains(out.Body.String(), c.names) {
			t.Errorf("%.40s: %d %s", c.body, out.Code, out.Body)
		}
	}
}

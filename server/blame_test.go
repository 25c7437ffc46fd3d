package server_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/internal/trace"
	"github.com/coppice-go/coppice/server"
)

// Pages of the history of a value have every change once, also where a page ends after so many commits without one.
func TestBlamePages(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		server.SetBlamed(s.srv, 4)
		s.create("s")
		want := []string{}
		for i := range 40 {
			if i%11 == 3 || i%11 == 4 {
				want = append([]string{fmt.Sprint(i)}, want...)
			}
			state := fmt.Sprintf(`{"v":%s,"other":%d}`, append(want, "null")[0], i)
			s.do("POST", commits, `{"state":`+state+`}`, "If-Match: *").want(t, 200)
		}
		want = append(want, "<nil>") // the value null of the first turn
		for _, limit := range []int{1, 3, 50} {
			var got []string
			empty, next := 0, ""
			for range 40 {
				r := s.do("GET", fmt.Sprintf("/v1/sessions/s/blame?path=/v&limit=%d&after=%s", limit, next), "")
				page := r.ids(t, "changes", "value")
				if got = append(got, page...); len(page) == 0 {
					empty++
				}
				if len(page) > limit {
					t.Errorf("%d changes, the limit is %d", len(page), limit)
				}
				if next, _ = r.want(t, 200)["next"].(string); next == "" {
					break
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) || empty == 0 || next != "" {
				t.Errorf("limit %d: %v with %d empty pages, want %v", limit, got, empty, want)
			}
		}
		s.do("GET", "/v1/sessions/s/blame?after=%21", "").want(t, 400)
		s.do("GET", "/v1/sessions/s/blame?after="+base64.RawURLEncoding.EncodeToString([]byte("999")), "").want(t, 422)
	})
}

// The history up to a commit begins with the change that is in force there.
func TestBlameAtTarget(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		s.create("s")
		for i := range 9 { // v changes with every third commit: 1, 4 and 7
			s.do("POST", commits, fmt.Sprintf(`{"state":{"v":%d,"i":%d}}`, i/3, i), "If-Match: *").want(t, 200)
		}
		s.do("POST", "/v1/sessions/s/snapshot", `{"tag":"end"}`, "If-Match: *").want(t, 200)
		for target, want := range map[string]string{
			"seq:4": "[4 1]", "seq:6": "[4 1]", "seq:3": "[1]", "seq:0": "[]", "tag:end": "[7 4 1]", "head": "[7 4 1]",
		} {
			r := s.do("GET", "/v1/sessions/s/blame?path=/v&at="+target, "")
			if got := r.ids(t, "changes", "seq"); fmt.Sprint(got) != want {
				t.Errorf("at=%s: %v, want %s", target, got, want)
			}
		}
		page := s.do("GET", "/v1/sessions/s/blame?path=/v&limit=1&at=seq:6", "").want(t, 200)
		next := page["next"].(string)
		older := s.do("GET", "/v1/sessions/s/blame?path=/v&after="+next, "").ids(t, "changes", "seq")
		if fmt.Sprint(older) != "[1]" {
			t.Errorf("older: %v", older)
		}
		s.do("GET", "/v1/sessions/s/blame?path=/v&at=seq:99", "").want(t, 422)
		s.do("GET", "/v1/sessions/s/blame?path=/v&at=seq:6&after="+next, "").want(t, 400)
	})
}

// A losing turn that was kept on a branch changed no value of the session; the history up to that turn begins with it.
func TestBlameOfKept(t *testing.T) {
	s := newSite(t, "mem:")
	first := s.create("s")
	s.do("POST", commits, `{"state":{"v":1}}`, "If-Match: *").want(t, 200)
	s.do("POST", commits, `{"state":{"v":7},"onConflict":"keep-both"}`, "If-Match: "+first).want(t, 200)
	s.do("POST", commits, `{"state":{"v":2}}`, "If-Match: *").want(t, 200)
	if got := s.do("GET", "/v1/sessions/s/blame?path=/v", "").ids(t, "changes", "value"); fmt.Sprint(got) != "[2 1]" {
		t.Errorf("%v", got)
	}
	for at, want := range map[string]string{"seq:2": "[7 1]", "seq:3": "[1]"} {
		got := s.do("GET", "/v1/sessions/s/blame?path=/v&at="+at, "").ids(t, "changes", "value")
		if fmt.Sprint(got) != want {
			t.Errorf("at=%s: %v, want %s", at, got, want)
		}
	}
}

// History and events read a segment once for many commits.
func TestReadsOfHistory(t *testing.T) {
	testutil.SkipLong(t)
	const n = 600
	b := trace.New(memory.New())
	st, err := coppice.New(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := siteOn(t, st)
	s.create("s")
	fill := strings.Repeat("x", 8<<10)
	for i := range n {
		s.do("POST", commits, fmt.Sprintf(`{"state":{"fill":%q,"n":%d}}`, fill, i), "If-Match: *").want(t, 200)
	}
	before := b.IO()
	if got := s.do("GET", "/v1/sessions/s/blame?path=/n&limit=500", "").ids(t, "changes", "seq"); len(got) != 500 {
		t.Errorf("%d changes", len(got))
	}
	if io := b.IO().Sub(before); io.Get > 8 || io.Put+io.Stat+io.List > 0 {
		t.Errorf("the history of a value costs %+v", io)
	}
	before = b.IO()
	next, seen := "0", 0
	for seen < n {
		r := s.do("GET", "/v1/sessions/s/events?wait=1&after="+next, "").want(t, 200)
		for _, c := range r["commits"].([]any) {
			ops := c.(map[string]any)["state"].([]any)
			if seen++; len(ops) != 1 {
				t.Fatalf("commit %d: %v", seen, ops)
			}
		}
		next = r["next"].(string)
	}
	// Each poll opens the session twice, and begins with a commit before which the state may have to be read.
	if io := b.IO().Sub(before); io.Get > n/10 {
		t.Errorf("%d commits by long polls cost %+v", n, io)
	}
}

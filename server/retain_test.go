package server_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/retain"
	"github.com/coppice-go/coppice/internal/seam"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/server"
)

// schedule runs the retention of a server, until the end of the test. Each look at its stores ends with a wait, which
// the test ends.
type schedule struct {
	t    *testing.T
	next chan time.Time
	wait chan time.Duration
	end  func()
}

func scheduled(t *testing.T, srv *server.Server) *schedule {
	t.Helper()
	r := &schedule{t: t, next: make(chan time.Time), wait: make(chan time.Duration, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		srv.Retain(ctx, time.Hour, func(d time.Duration) <-chan time.Time {
			r.wait <- d
			return r.next
		})
	}()
	r.end = func() {
		cancel()
		<-done
	}
	t.Cleanup(r.end)
	return r
}

// waits checks how long a look at the stores waits after it.
func (r *schedule) waits(want time.Duration) {
	r.t.Helper()
	if got := <-r.wait; got != want {
		r.t.Errorf("it waits for %v, want %v", got, want)
	}
}

// Servers on one store run its policy once in a time. What is removed is nowhere any more, a handle that was open
// included, and each removal is in the audit log.
func TestRetentionBySchedule(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		var passed atomic.Int64
		start := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
		now := func() time.Time { return start.Add(time.Duration(passed.Load())) }
		st, err := coppice.Open(t.Context(), url, &coppice.Options{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = st.Close() })
		file := filepath.Join(t.TempDir(), "audit.jsonl")
		same := func(o *server.Options) { o.Now, o.AuditFile = now, file }
		s, other := siteOn(t, st, same), siteOn(t, st, same)
		for i, id := range []string{"a", "b", "c"} {
			passed.Store(int64(i+1) * int64(time.Minute))
			s.do("PUT", "/v1/sessions/"+id, `{}`, "If-None-Match: *").want(t, 201)
			s.do("POST", "/v1/sessions/"+id+"/commits", hello("zorbal of "+id), "If-Match: *").want(t, 200)
		}
		s.do("GET", "/v1/search?q=zorbal", "").want(t, 200)
		if err := retain.Save(t.Context(), st, retain.Policy{KeepLast: 1}); err != nil {
			t.Fatal(err)
		}
		first := scheduled(t, s.srv)
		first.waits(time.Hour)
		s.do("POST", "/v1/sessions/a/commits", hello("again"), "If-Match: *").want(t, 410)
		s.do("GET", "/v1/sessions/b", "").want(t, 410)
		for _, at := range []string{"/v1/sessions", "/v1/search?q=zorbal", "/v1/prompts"} {
			body := s.do("GET", at, "").body
			if bytes.Contains(body, []byte("of a")) || bytes.Contains(body, []byte(`"b"`)) {
				t.Errorf("%s: %s", at, body)
			}
		}
		passed.Store(int64(20 * time.Minute))
		second := scheduled(t, other.srv)
		second.waits(43 * time.Minute) // the run of the other server ended at 3
		s.do("PUT", "/v1/sessions/d", `{}`, "If-None-Match: *").want(t, 201)
		passed.Store(int64(63 * time.Minute))
		second.next <- now()
		second.waits(time.Hour)
		first.next <- now()
		first.waits(time.Hour) // the run of the other server ended just now
		s.do("GET", "/v1/sessions/c", "").want(t, 410)
		s.do("GET", "/v1/sessions/d", "").want(t, 200)
		var acts []string
		for _, l := range auditLines(t, file) {
			acts = append(acts, fmt.Sprint(l.Act.Act, l.Result, l.Who, l.Session))
		}
		want := []string{
			"retainbegunretentiona", "retaindoneretentiona", "retainbegunretentionb", "retaindoneretentionb",
			"retainbegunretentionc", "retaindoneretentionc",
		}
		if !slices.Equal(acts, want) {
			t.Errorf("the audit log has %v", acts)
		}
	})
}

// Each tenant's policy is run on that tenant's store. What fails for one does not keep the others.
func TestRetentionOfTenants(t *testing.T) {
	b := memory.New()
	o := &coppice.Options{Now: testutil.Clock(time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC), time.Second)}
	open := func(name string) (*coppice.Store, error) { return coppice.New(backend.WithPrefix(b, name), o) }
	for i, name := range []string{"acme", "blue"} {
		st, err := open(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"old", "new"} {
			s, err := st.Create(id, nil)
			if err == nil {
				_, err = s.Commit(t.Context(), coppice.Turn{State: 1})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := retain.Save(t.Context(), st, retain.Policy{KeepLast: i + 1}); err != nil {
			t.Fatal(err)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := newSite(t, "mem:", func(o *server.Options) {
		o.Store, o.Tenant = nil, open
		names := []string{"no name", "sessions", "acme", "blue"}
		o.Tenants = func(context.Context) ([]string, error) { return names, nil }
	})
	scheduled(t, s.srv).waits(time.Hour)
	for at, status := range map[string]int{
		"/t/acme/v1/sessions/old": 410, "/t/acme/v1/sessions/new": 200, "/t/blue/v1/sessions/old": 200,
	} {
		s.do("GET", at, "").want(t, status)
	}
}

// A policy is set by an administrator and run by who may delete: nothing is removed unless that is asked for, and not
// while another run has the store.
func TestRetentionOverHTTP(t *testing.T) {
	now := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	s, _, lines := audited(t, line("admin", "-", "admin")+line("writer", "-", "read,write")+
		line("keeper", "-", "read,write,-delete"), func(o *server.Options) { o.Now = func() time.Time { return now } })
	for _, id := range []string{"a", "b"} {
		s.do("PUT", "/v1/sessions/"+id, `{}`, "If-None-Match: *", auth("writer")).want(t, 201)
	}
	const at = "/v1/retention"
	s.do("PUT", at, `{"keepLast":1}`, auth("writer")).want(t, 403)
	for _, body := range []string{`{"keepLast":-1}`, `{"groupBy":"x"}`, `{"snapshots":{}}`} {
		s.do("PUT", at, body, auth("admin")).want(t, 400)
	}
	if doc := s.do("GET", at, "", auth("keeper")).want(t, 200); len(doc["policy"].(map[string]any)) != 0 {
		t.Errorf("without a policy: %v", doc)
	}
	policy := `{"keepLast":1,"snapshots":{"keepDaily":7}}`
	s.do("PUT", at, policy, auth("admin")).want(t, 200)
	if r := s.do("GET", at, "", auth("keeper")); !bytes.Contains(r.body, []byte(`{"policy":`+policy)) {
		t.Errorf("%s", r.body)
	}
	s.do("POST", at, `{}`, auth("keeper")).want(t, 403)
	for _, body := range []string{`{}`, `{"dryRun":true}`, `{"dryRun":false}`} {
		doc := s.do("POST", at, body, auth("writer")).want(t, 200)
		if n := len(doc["removals"].([]any)); n != 1 || doc["dryRun"] != (body != `{"dryRun":false}`) {
			t.Errorf("%s: %v", body, doc)
		}
	}
	s.do("GET", "/v1/sessions/a", "", auth("writer")).want(t, 410)
	s.do("GET", "/v1/sessions/b", "", auth("writer")).want(t, 200)
	got := fmt.Sprint(lines())
	for _, want := range []string{
		"set retention done", "run retention refused", "run retention dry-run", "retain done", "run retention done",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the audit log has no %q: %s", want, got)
		}
	}
	claim := fmt.Sprintf(`{"version":1,"by":"00","until":%d}`, now.Add(time.Minute).UnixMilli())
	_, err := seam.Config(s.st).Backend.Put(t.Context(), layout.RetentionRunKey, []byte(claim), backend.Cond{})
	if err != nil {
		t.Fatal(err)
	}
	s.do("POST", at, `{"dryRun":false}`, auth("writer")).want(t, 503)
	s.do("POST", at, `{}`, auth("writer")).want(t, 200)
}

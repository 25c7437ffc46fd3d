package server_test

import (
	"fmt"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/sessiontest"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

// countedSite is a site on a store that counts its reads, with a session s of n commits.
func countedSite(t *testing.T, n int) (*site, *sessiontest.Counting) {
	t.Helper()
	b := &sessiontest.Counting{Backend: memory.New()}
	st := testutil.Must(coppice.New(b, nil))(t)
	t.Cleanup(func() { _ = st.Close() })
	h := testutil.Must(st.Create("s", nil))(t)
	for i := range n {
		testutil.Must(h.Append(t.Context(), transcript.Draft{
			Type: "message", Body: fmt.Appendf(nil, `{"message":{"role":"user","content":"question %d"}}`, i),
		}))(t)
		testutil.Must(h.Commit(t.Context(), coppice.Turn{State: i}))(t)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	return siteOn(t, st), b
}

// The pages of a list of commits read what they have in common once: the checkpoint, and a segment where commits are
// in one.
func TestPagesOfCommitsReadOnce(t *testing.T) {
	s, b := countedSite(t, 400)
	next, before := "", b.Gets.Load()
	for range 6 {
		page := s.do("GET", "/v1/sessions/s/commits?limit=20&after="+next, "").want(t, 200)
		next = page["next"].(string)
	}
	if n := b.Gets.Load() - before; n > 2 {
		t.Errorf("six pages cost %d reads", n)
	}
}

// The pages of a context are taken from what the first one has read: each of them opens the session, with one read more
// if its log was closed meanwhile.
func TestPagesOfAContextReadOnce(t *testing.T) {
	testutil.SkipLong(t)
	for _, at := range []string{"", "at=seq:300&"} {
		s, b := countedSite(t, 400)
		var reads []int64
		next, messages := "", 0
		for len(reads) < 5 {
			before := b.Gets.Load()
			page := s.do("GET", "/v1/sessions/s/context?limit=100&"+at+"after="+next, "").want(t, 200)
			if reads = append(reads, b.Gets.Load()-before); len(reads) > 1 && reads[len(reads)-1] > 2 {
				t.Errorf("%s: pages cost reads %v", at, reads)
			}
			next, _ = page["next"].(string)
			if messages += len(page["messages"].([]any)); next == "" {
				break
			}
			s.do("POST", commits, hello("later"), "If-Match: *").want(t, 200)
		}
		if want := map[string]int{"": 400}[at]; messages != max(want, 300) {
			t.Errorf("%s: %d messages", at, messages)
		}
	}
}

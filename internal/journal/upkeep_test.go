package journal

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
)

// slowAppends is a store on which something else happens while an append is under way.
type slowAppends struct {
	backend.Appender
	meanwhile func()
	reads     map[string]int
}

func (s *slowAppends) Append(ctx context.Context, key string, off int64, p []byte) (backend.Info, error) {
	s.meanwhile()
	return s.Appender.Append(ctx, key, off, p)
}

func (s *slowAppends) Get(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	s.reads[key]++
	return s.Appender.Get(ctx, key, r)
}

// A commit that is under way while the background seals a segment does not have it sealed again: its state does not
// know yet that it is.
func TestASegmentIsSealedOnce(t *testing.T) {
	var jobs []func()
	run := func() {
		for len(jobs) > 0 {
			job := jobs[0]
			jobs = jobs[1:]
			job()
		}
	}
	b := &slowAppends{memory.NewAppender(), run, map[string]int{}}
	w := newWorld(t, b)
	w.lim = Limits{RollEntries: 6}
	cfg := w.config("s1")
	cfg.Go = func(job func()) { jobs = append(jobs, job) }
	j := Create(cfg, state.Genesis{Header: header("s1")})
	w.closes(j)
	first := ""
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		if w.turn(j, id, `1`); first == "" {
			first = activeKey(j)
		}
	}
	run()
	if b.reads[first] != 1 {
		t.Errorf("the first segment was read %d times to be sealed", b.reads[first])
	}
}

// A state that grows past what a segment holds is not stored whole with every commit: what a store that replaces keeps
// is at most a few times what the commits brought.
func TestSegmentsOfALargeState(t *testing.T) {
	b := memory.New()
	cfg := newWorld(t, b).config("s1")
	cfg.Go = func(job func()) { job() }
	cfg.Limits = Limits{SealBytes: 4 << 10, WholeDoc: 1 << 10}
	j := Create(cfg, state.Genesis{Header: header("s1")})
	var all []string
	for i := range 100 {
		all = append(all, fmt.Sprintf(`"%04d %s"`, i, strings.Repeat("x", 200)))
		set := setState("[" + strings.Join(all, ",") + "]")
		if _, err := j.Commit(t.Context(), &Step{Reason: "turn", Edit: set}); err != nil {
			t.Fatal(err)
		}
	}
	segments := 0
	for _, err := range b.List(t.Context(), backend.ListOptions{Prefix: layout.SessionPrefix("s1") + "transcript/"}) {
		if err != nil {
			t.Fatal(err)
		}
		segments++
	}
	if segments > 15 {
		t.Errorf("%d segments, each with the whole state, for 100 commits", segments)
	}
}

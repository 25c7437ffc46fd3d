package journal

import (
	"context"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/journal/state"
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

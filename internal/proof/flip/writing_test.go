package flip

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/proof"
	"github.com/coppice-go/coppice/internal/testutil"
)

// TestProofDamagedLogs opens logs with one damaged byte for writing. Commits may continue only if the damage is in the
// last append, which a torn write may have damaged; otherwise writing stops with ErrCorrupt, and no byte of the log
// changes (I14).
func TestProofDamagedLogs(t *testing.T) {
	rep := proof.Begin(t, "damaged-logs")
	stride := proof.Pick(t, 211, 11, 1)
	s := built(t)[1]
	type job struct {
		key string
		at  int
	}
	each(func(yield func(job) bool) {
		for _, key := range slices.Sorted(maps.Keys(s.objects)) {
			if !isLog(s, key) || sessionOf(key) != sid {
				continue
			}
			for at := len(key) % stride; at < len(s.objects[key]); at += stride {
				if !yield(job{key, at}) {
					return
				}
			}
		}
	}, func(j job) {
		rep.Explored(1)
		if wrong := writeOn(t, s, j.key, j.at); wrong != "" {
			rep.Violation("%s, byte %d: %s", j.key, j.at, wrong)
		}
	})
}

// writeOn damages a byte of the log, and continues to write.
func writeOn(t *testing.T, s *stored, key string, at int) string {
	ctx := context.Background()
	b := memory.NewAppender()
	q := bytes.Clone(s.objects[key])
	q[at] ^= 1 << (at % 8)
	for k, p := range s.objects {
		if k == key {
			p = q
		}
		testutil.Must(b.Put(ctx, k, p, backend.Cond{}))(t)
	}
	name, _, _ := layout.ParseSegmentKey(key)
	l := testutil.Must(readLog(name, s.objects[key]))(t)
	tail := key == s.active && at >= l.ends[len(l.ends)-2]
	store := testutil.Must(coppice.New(b, &coppice.Options{Now: clock(), Rand: chance(3), Writer: "w"}))(t)
	session, err := store.Open(ctx, sid, nil)
	if err == nil {
		_, err = session.Append(ctx, entry.User("one more"))
	}
	if err == nil {
		_, err = session.Commit(ctx, coppice.Turn{})
	}
	now, _, gerr := b.Get(ctx, key, backend.Range{})
	testutil.OK(t, gerr)
	switch {
	case tail && err != nil:
		return "the end of the log is what a torn write leaves, and a commit fails: " + err.Error()
	case tail:
		return tornTail(t, b, l.ends[len(l.ends)-2], now, q)
	case err == nil:
		return "a commit is acknowledged on a damaged log"
	case !errors.Is(err, coppice.ErrCorrupt):
		return "a commit fails with " + err.Error()
	case !bytes.Equal(now, q):
		return "the damaged log was changed"
	}
	return ""
}

// tornTail checks a log whose last append was damaged: its bytes were moved aside, and everything before it is
// unchanged.
func tornTail(t *testing.T, b backend.Backend, good int, now, before []byte) string {
	if !bytes.Equal(now[:good], before[:good]) {
		return "the log was changed before its torn tail"
	}
	for info, err := range b.List(context.Background(), backend.ListOptions{Prefix: layout.SessionPrefix(sid)}) {
		testutil.OK(t, err)
		if strings.Contains(info.Key, "/torn/") {
			p, _, err := b.Get(context.Background(), info.Key, backend.Range{})
			testutil.OK(t, err)
			if bytes.Equal(p, before[good:]) {
				return ""
			}
		}
	}
	return "the torn bytes were not moved aside"
}

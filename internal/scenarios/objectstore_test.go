package scenarios_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/snapshot"
)

// host is a machine with its own handle on shared objects, and with its own faults.
type host struct {
	*coppice.Store
	b fault.Backend
}

func newHost(t testing.TB, b *memory.Backend, name string) host {
	t.Helper()
	f := fault.New(b.Share(), 1)
	seed := [32]byte{}
	copy(seed[:], name)
	s := newStore(t, f, &coppice.Options{Writer: name, Now: clock(), Rand: rand.NewChaCha8(seed)})
	setSleep(s, func(ctx context.Context) error { return ctx.Err() })
	return host{s, f}
}

// dies makes the host die at the first call that at selects: that one has the fault kind, and no later one is answered.
func (h host) dies(kind fault.Kind, at func(fault.Call) bool) {
	dead := false
	h.b.Add(fault.Rule{Kind: kind, When: func(c fault.Call) bool {
		dead = dead || at(c)
		return dead
	}}, fault.Rule{Count: -1, When: func(fault.Call) bool { return dead }})
}

// claims makes a host claim session s, and close it.
func claims(t testing.TB, store *coppice.Store) {
	t.Helper()
	s := open(t, store, "s")
	must(s.Claim(bg))(t)
	ok(t, s.Close())
}

// A host dies between the PUT of an object and the commit that would name it: before that PUT, after it, or so that it
// arrives when another host has long continued. Everything acknowledged is intact. A segment is removed once a later
// epoch is in force, and not before; an image and a snapshot exist as long as their session, or until they are pruned.
func TestDeathBeforeTheCommit(t *testing.T) {
	quiet := &coppice.SessionOptions{Snapshots: snapshot.Policy{Every: -1}}
	for _, c := range []struct {
		name, folder string
		acked        int // the last acknowledged turn, of 2
		o            *coppice.SessionOptions
		last         func(s *coppice.Session) error // what the host does when it dies
		stays        bool                           // removed only with the session
	}{
		{"segment", "/transcript/", 2, quiet, func(s *coppice.Session) error { bulk(t, s, 2, 300); return s.Close() }, false},
		{"image", "/blobs/", 1, quiet, func(s *coppice.Session) error {
			_, err := s.Append(bg, image(1))
			_, cerr := s.Commit(bg, coppice.Turn{State: state{Turns: 2}})
			return errors.Join(err, cerr)
		}, true},
		{"snapshot", "/snapshots/", 1, quiet, func(s *coppice.Session) error { _, err := s.Snapshot(bg, "tag"); return err }, true},
		{"snapshot by the way", "/snapshots/", 2, &coppice.SessionOptions{Snapshots: snapshot.Policy{Every: 1}}, func(s *coppice.Session) error {
			bulk(t, s, 2, 2)
			return nil
		}, true},
	} {
		for _, kind := range []fault.Kind{fault.Before, fault.After, fault.Late} {
			t.Run(fmt.Sprintf("%s/%v", c.name, kind), func(t *testing.T) {
				b := memory.New()
				one, two := newHost(t, b, "one"), newHost(t, b, "two")
				s := create(t, one.Store, "s", c.o)
				bulk(t, s, 1, 2)
				before := len(keysIn(t, b, c.folder))
				one.dies(kind, putIn(c.folder))
				if err := c.last(s); err == nil && c.acked == 1 {
					t.Error("its host is dead, and it says that all is well")
				}
				_ = s.Close() // its background work ends
				met := one.b.Faults()
				if len(met) == 0 || met[0].Kind != kind {
					t.Fatalf("faults: %v", met)
				}
				extra := map[fault.Kind]int{fault.After: 1}[kind]
				same(t, "objects", len(keysIn(t, b, c.folder)), before+extra)
				whole := texts(t, open(t, two.Store, "s"))
				same(t, "state", stateOf(t, open(t, two.Store, "s")), state{Turns: c.acked})
				sound(t, two.Store)
				same(t, "collected while its writer may still name it", must(two.GC(bg, "s", false))(t).Removed, 0)

				claims(t, two.Store)
				heirs := len(keysIn(t, b, c.folder)) - before - extra // it may have sealed lines of the dead host
				one.b.Clear()
				late := len(one.b.Deliver(bg))
				same(t, "late", late, map[fault.Kind]int{fault.Late: 1}[kind])
				orphans := map[bool]int{true: extra + late}[!c.stays]
				same(t, "collected", must(two.GC(bg, "s", false))(t).Removed, orphans)
				same(t, "left", len(keysIn(t, b, c.folder)), before+heirs+extra+late-orphans)
				same(t, "left over", sound(t, two.Store), 0)
				again := open(t, two.Store, "s")
				same(t, "context", texts(t, again), whole)
				same(t, "entries", len(collect(t, again.Entries(bg))), len(strings.Fields(whole)))
				must(again.Prune(bg, snapshot.Retention{Tags: []string{"other"}}))(t)
				same(t, "snapshots", keysIn(t, b, "/snapshots/"), []string(nil))
				bulk(t, again, 3, 300)
				ok(t, again.Close())
				ok(t, two.Delete(bg, "s"))
				same(t, "with the session", keysIn(t, b, "/s/"), []string(nil))
			})
		}
	}
}

// written makes a session with every kind of object, by the host.
func written(t *testing.T, h host) *coppice.Session {
	t.Helper()
	s := create(t, h.Store, "s", nil)
	bulk(t, s, 1, 300)
	must(s.Append(bg, image(2)))(t)
	commit(t, s, state{Turns: 2})
	must(s.Snapshot(bg, "x"))(t)
	ok(t, s.Close())
	if n := len(keysIn(t, h.b, "/s/")); n < 3 {
		t.Fatalf("%d objects", n)
	}
	return s
}

// Nothing that arrives after a deletion revives the session: commits, its creation by a host with lost answers, and
// objects, which the next collection removes. The id is never used again.
func TestDeletedForGood(t *testing.T) {
	b := memory.New()
	creator, writer, other := newHost(t, b, "creator"), newHost(t, b, "writer"), newHost(t, b, "other")
	creator.dies(fault.Late, putIn("checkpoint_latest/"))
	s := create(t, creator.Store, "s", nil)
	say(t, s, "u")
	if _, err := s.Commit(bg, coppice.Turn{}); !errors.Is(err, coppice.ErrCommitUnknown) {
		t.Fatalf("commit: %v", err)
	}
	written(t, writer)
	for _, folder := range []string{"checkpoint_latest/", "/blobs/", "/transcript/", "/snapshots/"} {
		writer.b.Add(fault.Rule{Kind: fault.Late, Count: -1, When: putIn(folder)})
	}
	s = open(t, writer.Store, "s")
	reader := open(t, other.Store, "s")
	must(s.Append(bg, image(3)))(t)
	if _, err := s.Commit(bg, coppice.Turn{}); err == nil {
		t.Fatal("it went through")
	}
	if _, err := s.Snapshot(bg, "y"); err == nil {
		t.Fatal("it went through")
	}
	ok(t, other.Delete(bg, "s"))
	creator.b.Clear()
	writer.b.Clear()
	refused := 0
	for _, err := range slices.Concat(creator.b.Deliver(bg), writer.b.Deliver(bg)) {
		if errors.Is(err, backend.ErrPrecondition) {
			refused++
		}
	}
	if refused == 0 {
		t.Error("no late commit met the tombstone")
	}
	if len(keysIn(t, b, "/s/")) == 0 {
		t.Error("no late object arrived")
	}
	for _, h := range []host{creator, writer, other} {
		if _, err := h.Open(bg, "s", nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("open: %v", err)
		}
		fresh := create(t, h.Store, "s", nil)
		say(t, fresh, "u")
		if _, err := fresh.Commit(bg, coppice.Turn{}); !errors.Is(err, fs.ErrExist) {
			t.Errorf("create: %v", err)
		}
	}
	from, _ := grown(t, other.Store, "other", 1, nil)
	if _, err := from.Fork(bg, coppice.Target{}, "s", nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("fork: %v", err)
	}
	for _, err := range reader.Entries(bg) {
		if err != nil && (!errors.Is(err, fs.ErrNotExist) || errors.Is(err, coppice.ErrCorrupt)) {
			t.Errorf("a reader of the deleted session: %v", err)
		}
	}
	if _, err := s.Commit(bg, coppice.Turn{State: state{Turns: 9}, KeepBoth: true}); err == nil {
		t.Error("a turn that is kept revived it")
	}
	if must(other.GC(bg, "", false))(t).Removed == 0 {
		t.Error("nothing was collected")
	}
	same(t, "what is left", keysIn(t, b, "/s"), []string{latestKey})
	same(t, "the other", texts(t, open(t, other.Store, "other")), "u1 a1")
}

package scenarios_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/fault"
)

// foreign returns bytes that are no checkpoint of session s. good is one, other is that of another session.
func foreign(good, other []byte) map[string][]byte {
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 4
	return map[string][]byte{
		"nothing": nil, "{}": []byte("{}"), "42": []byte("42"), "null": []byte("null"), "cut JSON": []byte(`{"state":`),
		"a run of NUL": make([]byte, 512), "cut short": good[:len(good)-1], "half": good[:len(good)/2], "head only": good[:40],
		"one bit": flipped, "one byte more": append(bytes.Clone(good), 0), "another session's": other,
	}
}

// 14, 35, a corrupt latest: if the checkpoint is the only copy, a typed error with the object's name; if there is a
// log, the log is used, and the session continues from its last commit.
func TestForeignBytesForACheckpoint(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend.Backend) {
		store := newStore(t, b, nil)
		s, rs := grown(t, store, "s", 5, nil)
		ok(t, s.Close())
		s2, _ := grown(t, store, "s2", 1, nil)
		ok(t, s2.Close())
		read := func(key string) []byte {
			p, _, err := b.Get(bg, key, backend.Range{})
			ok(t, err)
			return p
		}
		for name, junk := range foreign(read(latestKey), read("checkpoint_latest/s2")) {
			must(b.Put(bg, latestKey, junk, backend.Cond{}))(t)
			again, err := store.Open(bg, "s", nil)
			if appends(b) {
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				same(t, name, again.Head(), rs[4].Head)
				same(t, name, texts(t, again), "u1 a1 u2 a2 u3 a3 u4 a4 u5 a5")
				same(t, name, stateOf(t, again), state{Turns: 5})
				continue // without Close, which may write the checkpoint
			}
			var e *coppice.Error
			if !errors.Is(err, coppice.ErrCorrupt) || !errors.As(err, &e) || e.Object != latestKey || e.Hint == "" {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// 14: a checkpoint of a later release is no damage: it is not repaired, and no older state is used instead.
func TestCheckpointOfALaterFormat(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend.Backend) {
		store := newStore(t, b, nil)
		s, _ := grown(t, store, "s", 2, nil)
		ok(t, s.Close())
		p, _, err := b.Get(bg, latestKey, backend.Range{})
		ok(t, err)
		const version, sumAt, head = 12, 28, 32 // of a container: the format's number, its head's checksum, the summary
		binary.LittleEndian.PutUint16(p[version:], 999)
		summary := p[head : head+binary.LittleEndian.Uint32(p[16:])]
		binary.LittleEndian.PutUint32(p[sumAt:], codec.CRC(p[:sumAt], summary))
		binary.LittleEndian.PutUint32(p[len(p)-4:], codec.CRC(p[:len(p)-4]))
		must(b.Put(bg, latestKey, p, backend.Cond{}))(t)
		for what, open := range map[string]func() error{
			"open":           func() error { _, err := store.Open(bg, "s", nil); return err },
			"open or create": func() error { _, err := store.OpenOrCreate(bg, "s", nil); return err },
		} {
			if err := open(); !errors.Is(err, codec.ErrVersion) || errors.Is(err, coppice.ErrCorrupt) || !strings.Contains(err.Error(), "999") {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// 34: damage is never taken for a missing session: no new session replaces one that can be repaired.
func TestDamageIsNotTakenForNew(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend.Backend) {
		store := newStore(t, b, nil)
		s, _ := grown(t, store, "s", 3, nil)
		ok(t, s.Close())
		for key, object := range objects(t, b) {
			if key == latestKey || strings.Contains(key, "/transcript/") {
				must(b.Put(bg, key, []byte("?"+object), backend.Cond{}))(t)
			}
		}
		before := objects(t, b)
		setSleep(store, func(context.Context) error { return nil })
		if _, err := store.OpenOrCreate(bg, "s", nil); !errors.Is(err, coppice.ErrCorrupt) {
			t.Errorf("open or create: %v", err)
		}
		fresh := create(t, store, "s", nil)
		say(t, fresh, "u")
		if r, err := fresh.Commit(bg, coppice.Turn{}); err == nil {
			t.Errorf("a new session stands on a damaged one: %+v", r)
		}
		_ = fresh.Close()
		same(t, "objects", objects(t, b), before)
	})
}

// 34: a resume that fails because of the network returns an error, changes nothing, and succeeds when it is tried
// again.
func TestFailedOpenHarmsNothing(t *testing.T) {
	for kind, open := range backends {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			inner := open(t)
			b := fault.New(inner, 1)
			store := newStore(t, b, nil)
			s, _ := grown(t, store, "s", 3, nil)
			ok(t, s.Close())
			before := objects(t, inner)
			cause := errors.New("no route to host")
			b.Add(fault.Rule{Count: -1, Err: cause})
			for range 2 {
				if _, err := store.OpenOrCreate(bg, "s", nil); !errors.Is(err, cause) || errors.Is(err, coppice.ErrCorrupt) {
					t.Errorf("open: %v", err)
				}
			}
			b.Clear()
			same(t, "objects", objects(t, inner), before)
			same(t, "tried again", texts(t, must(store.OpenOrCreate(bg, "s", nil))(t)), "u1 a1 u2 a2 u3 a3")
		})
	}
}

// Damage found during a commit is reported as damage at once, not as a failed precondition after many retries.
func TestCommitMeetsDamage(t *testing.T) {
	b := memory.New()
	store := newStore(t, b, nil)
	tries := 0
	setSleep(store, func(context.Context) error { tries++; return nil })
	s, _ := grown(t, store, "s", 3, nil)
	must(b.Put(bg, latestKey, []byte("?"), backend.Cond{}))(t)
	say(t, s, "u4")
	_, err := s.Commit(bg, coppice.Turn{})
	var e *coppice.Error
	if !errors.Is(err, coppice.ErrCorrupt) || !errors.As(err, &e) || e.Object != latestKey || e.Hint == "" || tries > 0 {
		t.Errorf("after %d pauses: %v", tries, err)
	}
}

// A commit that meets damage is in doubt: once the checkpoint is repaired, Settle stores it.
func TestCommitAfterDamage(t *testing.T) {
	b := memory.New()
	store := newStore(t, b, nil)
	s, _ := grown(t, store, "s", 1, nil)
	good := objects(t, b)[latestKey]
	say(t, s, "u2")
	must(b.Put(bg, latestKey, []byte("?"), backend.Cond{}))(t)
	if _, err := s.Commit(bg, coppice.Turn{}); !errors.Is(err, coppice.ErrCorrupt) {
		t.Errorf("commit: %v", err)
	}
	must(b.Put(bg, latestKey, []byte(good), backend.Cond{}))(t)
	same(t, "entries", must(s.Settle(bg, ""))(t).Entries, 1)
	same(t, "context", texts(t, s), "u1 a1 u2")
	same(t, "reopened", texts(t, open(t, store, "s")), "u1 a1 u2")
}

// 30: a missing image is reported, blocks neither context nor commit, and is used again when its object is restored.
func TestLostImageBlocksNothing(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b backend.Backend) {
		store := newStore(t, b, nil)
		s := create(t, store, "s", nil)
		must(s.Append(bg, entry.User("look", entry.Image("image/png", bytes.Repeat([]byte("0123456789abcdef"), 20_000)))))(t)
		want := must(s.Context(bg))(t).Messages[0].Raw
		commit(t, s, nil)
		ok(t, s.Close())
		var key, blob string
		for k, object := range objects(t, b) {
			if strings.Contains(k, "/blobs/") {
				key, blob = k, object
			}
		}
		ok(t, b.Delete(bg, key))
		again := open(t, store, "s")
		c := must(again.Context(bg))(t)
		same(t, "messages", len(c.Messages), 1)
		if len(c.Diagnostics) != 1 || c.Diagnostics[0].Entry != again.Head().Entry {
			t.Errorf("diagnostics: %+v", c.Diagnostics)
		}
		say(t, again, "a1")
		commit(t, again, nil)
		ok(t, again.Close())
		must(b.Put(bg, key, []byte(blob), backend.Cond{}))(t)
		c = must(open(t, store, "s").Context(bg))(t)
		same(t, "back", bytes.Equal(c.Messages[0].Raw, want), true)
		same(t, "diagnostics", len(c.Diagnostics), 0)
	})
}

// A log that lost commits at its end, at the end of a line or within one, is read up to there. Writes return
// ErrCorrupt, since checkpoint_latest has the missing commits and a new one would hide their loss. After a repair,
// commits succeed again. Verify finds the loss, also that of a commit without entries.
func TestLostEndOfTheLog(t *testing.T) {
	b := memory.NewAppender()
	st := newStore(t, b, nil)
	s, _ := grown(t, st, "s", 5, nil)
	last := commit(t, s, state{Turns: 6}).Seq // a line without entries
	ok(t, s.Close())
	var log string
	for info, err := range b.List(bg, backend.ListOptions{Prefix: "sessions/s/transcript/"}) {
		ok(t, err)
		log = info.Key
	}
	raw, _, err := b.Get(bg, log, backend.Range{})
	ok(t, err)
	latest, _, err := b.Get(bg, latestKey, backend.Range{})
	ok(t, err)
	lines := bytes.SplitAfter(raw, []byte("\n"))
	for _, cut := range []int{len(lines) - 4, len(lines) - 3, len(lines) - 2, len(lines) - 1} {
		whole := bytes.Join(lines[:cut], nil)
		for name, left := range map[string][]byte{"a line's end": whole, "in a line": raw[:len(whole)-20]} {
			if cut == len(lines)-1 && name == "a line's end" {
				continue // all of it
			}
			t.Run(fmt.Sprint(cut-len(lines), " ", name), func(t *testing.T) {
				b := memory.NewAppender()
				must(b.Put(bg, log, left, backend.Cond{}))(t)
				must(b.Put(bg, latestKey, latest, backend.Cond{}))(t)
				st := newStore(t, b, nil)
				s := open(t, st, "s")
				same(t, "missing", s.Info().Missing, last)
				problems := must(st.Verify(bg, "s", true))(t).Problems
				if !slices.ContainsFunc(problems, func(p *coppice.Error) bool { return p.Object == log }) {
					t.Errorf("verify does not name the log: %v", problems)
				}
				if s.Head().Seq >= last || !strings.HasPrefix(texts(t, s), "u1 a1") {
					t.Errorf("it is read up to %v: %s", s.Head(), texts(t, s))
				}
				say(t, s, "more")
				_, err := s.Commit(bg, coppice.Turn{})
				if !errors.Is(err, coppice.ErrCorrupt) || !strings.Contains(err.Error(), "commits up to 6 were stored") {
					t.Errorf("a commit upon it: %v", err)
				}
				if _, err := open(t, st, "s").Branch(bg, "", nil); !errors.Is(err, coppice.ErrCorrupt) {
					t.Errorf("a move upon it: %v", err)
				}
				if now, _, err := b.Get(bg, log, backend.Range{}); err != nil || !bytes.Equal(now, left) {
					t.Errorf("the log was changed: %v", err)
				}
				must(st.Repair(bg, "s", false))(t)
				again := open(t, st, "s")
				say(t, again, "after the repair")
				commit(t, again, nil)
				same(t, "missing after the repair", again.Info().Missing, 0)
				ok(t, again.Close())
			})
		}
	}
}

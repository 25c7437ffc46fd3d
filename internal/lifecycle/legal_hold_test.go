package lifecycle_test

import (
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/sessiontest"
	"github.com/coppice-go/coppice/snapshot"
	"github.com/coppice-go/coppice/transcript"
)

// Nothing removes a session that is held, or a part of it, until the hold is released; its writers commit as before.
func TestLegalHold(t *testing.T) {
	sessiontest.OnEachBackend(t, func(t *testing.T, b backend.Backend) {
		store := newStore(t, b, nil)
		s := create(t, store, "s", nil)
		ids := say(t, s, "evidence")
		commit(t, s, 1)
		must(s.Snapshot(bg, "tagged"))(t)
		before := must(s.Hold(bg, "case 7"))(t)
		same(t, "a repeated hold", must(s.Hold(bg, "case 7"))(t).Seq, before.Seq)

		refused := func(when string, store *coppice.Store, s *coppice.Session) {
			t.Helper()
			sessiontest.IsErr(t, when+": delete", store.Delete(bg, "s"), coppice.ErrHeld)
			sessiontest.IsErr(t, when+": delete at", store.DeleteAt(bg, "s", s.Head().Commit), coppice.ErrHeld)
			_, err := store.Erase(bg, "s", ids, nil)
			sessiontest.IsErr(t, when+": erase", err, coppice.ErrHeld)
			_, err = store.Erase(bg, "s", ids, &coppice.EraseOptions{DryRun: true})
			sessiontest.IsErr(t, when+": dry run", err, coppice.ErrHeld)
			_, err = s.Prune(bg, snapshot.Retention{})
			sessiontest.IsErr(t, when+": prune", err, coppice.ErrHeld)
		}
		refused("held", store, s)

		// No other way sets or ends a hold.
		none := ""
		for _, meta := range []map[string]*string{{checkpoint.MetaHold: nil}, {checkpoint.MetaHold: &none}} {
			if _, err := s.SetInfo(bg, coppice.InfoChange{Meta: meta}); err == nil {
				t.Errorf("SetInfo %v", meta)
			}
		}
		forged := entry.Custom(transcript.MetaKind, checkpoint.MetaChange{checkpoint.MetaHold: nil})
		must(s.Append(bg, forged))(t)
		commit(t, s, 2)
		if _, err := s.Commit(bg, coppice.Turn{Reason: "hold", Entries: []transcript.Draft{forged}}); err == nil {
			t.Error("a turn has the reason hold")
		}
		say(t, s, "more")
		commit(t, s, 3)
		refused("after turns", store, s)
		ok(t, s.Close())

		fresh := newStore(t, b, nil)
		again := open(t, fresh, "s")
		refused("a fresh handle", fresh, again)
		same(t, "damage", len(must(fresh.Verify(bg, "s", true))(t).Problems), 0)
		must(again.Hold(bg, ""))(t)
		same(t, "released", again.Info().Held(), false)
		must(fresh.Erase(bg, "s", ids, nil))(t)
		ok(t, fresh.Delete(bg, "s"))
		meta := map[string]string{checkpoint.MetaHold: "x"}
		if _, err := fresh.Create("h", &coppice.SessionOptions{Meta: meta}); err == nil {
			t.Error("a session begins held")
		}
	})
}

// A hold that comes between the decision to delete and the deletion keeps the session; so does one by another handle.
func TestHeldInBetween(t *testing.T) {
	sessiontest.OnEachBackend(t, func(t *testing.T, b backend.Backend) {
		store := newStore(t, b, nil)
		s := create(t, store, "s", nil)
		say(t, s, "evidence")
		r := commit(t, s, 1)
		other := open(t, newStore(t, b, nil), "s")
		must(other.Hold(bg, "case 8"))(t)
		sessiontest.IsErr(t, "the commit that was looked at", store.DeleteAt(bg, "s", r.Commit), coppice.ErrConflict)
		sessiontest.IsErr(t, "the newest commit", store.DeleteAt(bg, "s", other.Head().Commit), coppice.ErrHeld)
		same(t, "entries", len(collect(t, open(t, store, "s").Entries(bg))) > 0, true)
	})
}

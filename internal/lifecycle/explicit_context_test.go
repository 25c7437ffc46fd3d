package lifecycle_test

import (
	"errors"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
)

// I16, and "The next commit saves it": whatever the handle does between SetContext and the next commit, that commit
// saves the context, and a fresh handle has it.
func TestExplicitContextIsSavedByTheNextCommit(t *testing.T) {
	uncommitted := func(t *testing.T, what string, err error) {
		t.Helper()
		if !errors.Is(err, coppice.ErrUncommitted) {
			t.Errorf("%s: %v, want ErrUncommitted", what, err)
		}
	}
	for name, step := range map[string]func(t *testing.T, r *rig, s *coppice.Session, ids []string){
		"commit": func(t *testing.T, _ *rig, s *coppice.Session, _ []string) { must(s.Commit(bg, coppice.Turn{}))(t) },
		"label":  func(t *testing.T, _ *rig, s *coppice.Session, ids []string) { must(s.Label(bg, ids[0], "x"))(t) },
		"claim":  func(t *testing.T, _ *rig, s *coppice.Session, _ []string) { must(s.Claim(bg))(t) },
		"moves": func(t *testing.T, _ *rig, s *coppice.Session, ids []string) {
			_, err := s.Branch(bg, ids[0], nil)
			uncommitted(t, "branch", err)
			_, err = s.Edit(bg, ids[1], entry.User("e"))
			uncommitted(t, "edit", err)
			_, err = s.Switch(bg, "side")
			uncommitted(t, "switch", err)
			_, err = s.Switch(bg, "main")
			uncommitted(t, "switch to where the head is", err)
			_, err = s.Rollback(bg, coppice.Target{Seq: 1})
			uncommitted(t, "rollback", err)
		},
		"a turn of another host that moves nothing": func(t *testing.T, r *rig, _ *coppice.Session, ids []string) {
			must(r.fresh(t).Label(bg, ids[0], "x"))(t)
		},
	} {
		for what, pending := range map[string]bool{"alone": false, "beside an entry": true} {
			t.Run(name+"/"+what, func(t *testing.T) {
				onGates(t, func(t *testing.T, r *rig) {
					s, ids := r.aside(t)
					want := "explicit"
					if pending {
						say(t, s, "p")
					}
					ok(t, s.SetContext(bg, itemOf(`{"role":"user","content":"explicit"}`)))
					step(t, r, s, ids)
					same(t, "context", texts(t, s), want)
					say(t, s, "z")
					must(s.Commit(bg, coppice.Turn{}))(t)
					same(t, "context after the next commit", texts(t, s), want+" z")
					r.agrees(t, s)
				})
			})
		}
	}
}

// aside returns a session with a branch "main", which has the head, and a branch "side"; ids are those of two entries
// common to both.
func (r *rig) aside(t *testing.T) (s *coppice.Session, ids []string) {
	t.Helper()
	s = r.start(t, nil)
	r.gate.open()
	ids = say(t, s, "u2", "a2")
	commit(t, s, state{Turns: 2})
	must(s.Branch(bg, ids[0], &coppice.BranchOptions{Name: "side"}))(t)
	say(t, s, "u3")
	commit(t, s, state{Turns: 3})
	must(s.Switch(bg, "main"))(t)
	return s, ids
}

// The explicit context of a turn that lost is stored with the kept turn, and dropped by Reload.
func TestExplicitContextThatLost(t *testing.T) {
	onGates(t, func(t *testing.T, r *rig) {
		s, _ := r.aside(t)
		ok(t, s.SetContext(bg, itemOf(`{"role":"user","content":"explicit"}`)))
		r.wins(t, "w")
		if _, err := s.Commit(bg, coppice.Turn{}); !errors.Is(err, coppice.ErrConflict) {
			t.Errorf("commit: %v, want ErrConflict", err)
		}
		same(t, "context", texts(t, s), "explicit")
		kept := must(s.Commit(bg, coppice.Turn{KeepBoth: true}))(t).Kept
		path, _ := line(t, r.fresh(t), kept)
		same(t, "the kept line", path, "explicit")
		ok(t, s.Reload(bg))
		same(t, "context", texts(t, s), "u1 a1 u2 a2 w")
		r.agrees(t, s)
		ok(t, s.SetContext(bg, itemOf(`{"role":"user","content":"explicit"}`)))
		ok(t, s.Discard(bg))
		same(t, "context after Discard", texts(t, s), "u1 a1 u2 a2 w")
	})
}

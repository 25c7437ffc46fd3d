package coppice_test

import (
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
)

// I16, and "The next commit saves it": after any acknowledged commit, the context of the handle on which SetContext was
// called is what a fresh handle has.
func TestExplicitContextAfterEachCommit(t *testing.T) {
	for name, step := range map[string]func(t *testing.T, r *rig, s *coppice.Session, ids []string){
		"commit": func(t *testing.T, _ *rig, s *coppice.Session, _ []string) { must(s.Commit(bg, coppice.Turn{}))(t) },
		"label":  func(t *testing.T, _ *rig, s *coppice.Session, ids []string) { must(s.Label(bg, ids[0], "x"))(t) },
		"branch": func(t *testing.T, _ *rig, s *coppice.Session, ids []string) { must(s.Branch(bg, ids[0], nil))(t) },
		"edit": func(t *testing.T, _ *rig, s *coppice.Session, ids []string) {
			must(s.Edit(bg, ids[1], entry.User("e")))(t)
		},
		"switch": func(t *testing.T, _ *rig, s *coppice.Session, _ []string) { must(s.Switch(bg, "side"))(t) },
		"rollback": func(t *testing.T, _ *rig, s *coppice.Session, _ []string) {
			must(s.Rollback(bg, coppice.Target{Seq: 1}))(t)
		},
		"claim":  func(t *testing.T, _ *rig, s *coppice.Session, _ []string) { must(s.Claim(bg))(t) },
		"rebase": func(t *testing.T, _ *rig, s *coppice.Session, _ []string) { must(s.Rebase(bg))(t) },
		"claim after a conflict": func(t *testing.T, r *rig, s *coppice.Session, _ []string) {
			r.wins(t, "w")
			must(s.Claim(bg))(t)
		},
		"rebase after a conflict": func(t *testing.T, r *rig, s *coppice.Session, _ []string) {
			r.wins(t, "w")
			must(s.Rebase(bg))(t)
		},
		"failed commit, then rebase": func(t *testing.T, r *rig, s *coppice.Session, _ []string) {
			r.wins(t, "w")
			_, err := s.Commit(bg, coppice.Turn{})
			t.Logf("%v", err)
			must(s.Rebase(bg))(t)
		},
	} {
		for what, pending := range map[string]bool{"alone": false, "beside a pending entry": true} {
			t.Run(name+"/"+what, func(t *testing.T) {
				onGates(t, func(t *testing.T, r *rig) {
					s := r.start(t, nil)
					r.gate.open()
					ids := say(t, s, "u2", "a2")
					commit(t, s, state{Turns: 2})
					must(s.Branch(bg, ids[0], &coppice.BranchOptions{Name: "side"}))(t)
					say(t, s, "u3")
					commit(t, s, state{Turns: 3})
					must(s.Switch(bg, "main"))(t)
					if pending {
						say(t, s, "p")
					}
					ok(t, s.SetContext(bg, itemOf(`{"role":"user","content":"explicit"}`)))
					step(t, r, s, ids)
					same(t, "context", texts(t, s), texts(t, r.fresh(t)))
					same(t, "head", s.Head(), r.fresh(t).Head())
					say(t, s, "z")
					must(s.Commit(bg, coppice.Turn{}))(t)
					same(t, "context after the next commit", texts(t, s), texts(t, r.fresh(t)))
				})
			})
		}
	}
}

// "The next commit saves it": a Switch to where the head is commits nothing, so the explicit context stays the
// handle's, and the commit after it saves it.
func TestExplicitContextOutlivesAnIdleMove(t *testing.T) {
	onGates(t, func(t *testing.T, r *rig) {
		s := r.start(t, nil)
		r.gate.open()
		ok(t, s.SetContext(bg, itemOf(`{"role":"user","content":"explicit"}`)))
		before := s.Head()
		same(t, "receipt", must(s.Switch(bg, "main"))(t).Head, before)
		same(t, "context after the move", texts(t, s), "explicit")
		commit(t, s, state{Turns: 2})
		same(t, "stored context", texts(t, r.fresh(t)), "explicit")
		r.agrees(t, s)
	})
}

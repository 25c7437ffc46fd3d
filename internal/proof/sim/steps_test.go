package sim

import (
	"errors"
	"fmt"

	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
)

// move sets the head to an earlier entry: a branch, or a rollback that names the old one.
func (s *seat) move(d *chance) {
	st := s.h.j.State()
	if st.Summary.Commit == "" {
		s.commit(s.ctx, d, s.aTurn(d))
		return
	}
	t := s.w.ledger.newTurn(st, d, 0)
	t.step.Move, t.step.Head = true, s.w.ledger.somewhere(st, d)
	t.step.Reason, t.step.Branch = "branch", fmt.Sprintf("b%d", t.n)
	if d.one(2) {
		t.step.Reason, t.step.Kept, t.step.Keyframe = "rollback", fmt.Sprintf("old%d", t.n), true
		t.edits(`{"turn":"as it was"}`)
	}
	s.commit(s.ctx, d, t)
}

// blob stores an image and commits a turn that refers to it.
func (s *seat) blob(d *chance) {
	data := fmt.Appendf(nil, "image %d", d.n(6)) // some are stored twice
	sum, err := s.h.j.PutBlob(s.ctx, data)
	s.say(s.ctx, d, "blob", err)
	if err != nil {
		return
	}
	l := s.w.ledger
	l.mu.Lock()
	l.blobs[sum] = data
	l.mu.Unlock()
	s.commit(s.ctx, d, s.aTurn(d))
}

// snapshot stores the state of the handle.
func (s *seat) snapshot(d *chance) {
	st := s.h.j.State()
	if st.Summary.Commit == "" {
		return
	}
	info, err := s.h.j.Snapshot(s.ctx, st, "tag")
	s.say(s.ctx, d, "snapshot", err)
	if err != nil {
		return
	}
	l := s.w.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shots = append(l.shots, shot{info.ID, st.Summary.Commit, string(st.DocJSON), st.HeadOrd})
}

// look reads the whole history: by a reader of its own, or with the present handle.
func (s *seat) look(d *chance) {
	j, l := s.h.j, s.w.ledger
	if d.one(3) {
		_, err := j.Changed(s.ctx, j.State())
		s.say(s.ctx, d, "changed", err)
		return
	}
	if d.one(2) {
		cfg := s.w.client(false).config()
		cfg.ReadOnly = true
		floor, born, buried := l.floor()
		reader, err := journal.Open(s.ctx, cfg)
		var st *state.State
		if err == nil {
			st = reader.State()
		}
		s.say(s.ctx, d, "open again", err)
		l.opened(s.name(s.ctx), floor, born, buried, st, err)
		if err != nil {
			return
		}
		j = reader
	}
	ids, err := entriesOf(s.ctx, j, j.State())
	s.say(s.ctx, d, "read", err)
	if err == nil {
		l.saw(s.name(s.ctx), ids)
	}
}

// tidy seals and folds everything.
func (s *seat) tidy(d *chance) {
	if s.w.plan.keys || s.h.j.State().Summary.Commit == "" {
		return
	}
	err := s.h.j.Tidy(s.ctx)
	s.say(s.ctx, d, "tidy", err)
}

// bury deletes the session.
func (s *seat) bury(remove func() error) {
	l := s.w.ledger
	l.mu.Lock()
	if l.buries == 0 {
		l.buries = s.w.now()
	}
	l.mu.Unlock()
	_, born, _ := l.floor()
	err := remove()
	s.say(s.ctx, s.d, "delete", err)
	switch h, ok := s.w.bucket.last(); {
	case err != nil || !ok:
	case h.sum.Tombstone:
		l.mu.Lock()
		if l.buried == 0 {
			l.buried = s.w.now()
		}
		l.mu.Unlock()
	case born: // otherwise it was created just now
		s.w.violation("a deletion was acknowledged, and the head is commit %d", h.sum.Seq)
	}
}

func ignore(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}

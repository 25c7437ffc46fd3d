package manager

import (
	"context"
	"encoding/json"
	"slices"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/transcript"
)

// position is the part of a session that its transcript lines do not contain: the branches, the head and the agent's
// state.
type position struct {
	Head     string              `json:"head"` // "" = before every root
	Branch   string              `json:"branch"`
	Branches []transcript.Branch `json:"branches"`
	State    json.RawMessage     `json:"state,omitempty"`
	Manager  json.RawMessage     `json:"manager,omitempty"`
}

// positionOf returns the position of a session.
func positionOf(ctx context.Context, s *coppice.Session) (position, error) {
	v, err := s.At(ctx, coppice.Target{})
	if err != nil {
		return position{}, err
	}
	tree, err := s.Tree(ctx)
	if err != nil {
		return position{}, err
	}
	doc := v.Document()
	return position{
		Head: tree.Head(), Branch: s.Info().Branch, Branches: tree.Branches(), State: doc.State, Manager: doc.Manager,
	}, nil
}

// restore sets a session with the same entries to the position. reason is that of the commit with the state.
func (p position) restore(ctx context.Context, s *coppice.Session, reason string) error {
	branches := slices.Clone(p.Branches)
	slices.SortStableFunc(branches, func(a, b transcript.Branch) int {
		if a.Name == s.Info().Branch { // the branch of the import is renamed first, while that is possible
			return -1
		}
		if b.Name == s.Info().Branch {
			return 1
		}
		return 0
	})
	for _, b := range branches {
		if _, err := s.Branch(ctx, b.Head, &coppice.BranchOptions{Name: b.Name}); err != nil {
			return err
		}
	}
	if p.Branch != "" && s.Info().Branch != p.Branch {
		if _, err := s.Switch(ctx, p.Branch); err != nil {
			return err
		}
	}
	if s.Head().Entry != p.Head {
		if _, err := s.Branch(ctx, p.Head, nil); err != nil {
			return err
		}
	}
	if len(p.State) == 0 && len(p.Manager) == 0 {
		return nil
	}
	turn := coppice.Turn{Reason: reason}
	if len(p.State) > 0 {
		turn.State = p.State
	}
	if len(p.Manager) > 0 {
		turn.Manager = p.Manager
	}
	_, err := s.Commit(ctx, turn)
	return err
}

// Package place carries over where a session is: what the lines of its transcript do not say. A session that is made
// of the lines of another has the branches, the head and the agent's state of that one when Give is done.
package place

import (
	"context"
	"encoding/json"
	"slices"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/transcript"
)

// Place is where a session is.
type Place struct {
	Head     string              `json:"head"` // "" = before every root
	Branch   string              `json:"branch"`
	Branches []transcript.Branch `json:"branches"`
	State    json.RawMessage     `json:"state,omitempty"`
	Manager  json.RawMessage     `json:"manager,omitempty"`
}

// Of gives the place of a session.
func Of(ctx context.Context, s *coppice.Session) (Place, error) {
	v, err := s.At(ctx, coppice.Target{})
	if err != nil {
		return Place{}, err
	}
	tree, err := s.Tree(ctx)
	if err != nil {
		return Place{}, err
	}
	doc := v.Document()
	return Place{
		Head: tree.Head(), Branch: s.Info().Branch, Branches: tree.Branches(), State: doc.State, Manager: doc.Manager,
	}, nil
}

// Give takes a session that has the same entries there. reason is that of the commit that holds the state.
func (p Place) Give(ctx context.Context, s *coppice.Session, reason string) error {
	branches := slices.Clone(p.Branches)
	slices.SortStableFunc(branches, func(a, b transcript.Branch) int {
		if a.Name == s.Info().Branch { // the name that an import stands on comes first, while it may be moved
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

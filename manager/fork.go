package manager

import (
	"context"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
)

// Branch forks the session before a user message, switches to the fork, and returns the text of the message. If nothing
// precedes the message the new session is empty; only its header names the parent.
func (m *Manager) Branch(ctx context.Context, message string) (text string, err error) {
	if m.s == nil {
		return "", errNone
	}
	from := m.s
	e, text, err := Before(ctx, from, message)
	if err != nil {
		return "", err
	}
	if hook := m.o.Hooks.BeforeBranch; hook != nil {
		if err := hook(ctx, from, e.ID); err != nil {
			return "", stopped("branch", err)
		}
	}
	if err := m.beforeFork(ctx, e.ID); err != nil {
		return "", err
	}
	id := from.ID()
	if e.ParentID != "" {
		err = m.into(ctx, "branch", e.ParentID, from.Info().Cwd)
	} else {
		_, err = m.begin(ctx, "branch", from.Info().Cwd, id)
	}
	if err != nil {
		return "", err
	}
	if hook := m.o.Hooks.Branch; hook != nil {
		hook(ctx, m.s, id)
	}
	return text, nil
}

// Fork makes a new session from the path to an entry ("" = the head), in a directory ("" = the same), and switches to
// it. The fork contains only that path, its labels (after its last entry), and the state in force at the entry; its
// header names this session as its parent.
func (m *Manager) Fork(ctx context.Context, at, cwd string) (*coppice.Session, error) {
	if m.s == nil {
		return nil, errNone
	}
	if at == "" {
		at = m.s.Head().Entry
	}
	if err := m.beforeFork(ctx, at); err != nil {
		return nil, err
	}
	if cwd == "" {
		cwd = m.s.Info().Cwd
	}
	if err := m.into(ctx, "fork", at, cwd); err != nil {
		return nil, err
	}
	return m.s, nil
}

func (m *Manager) beforeFork(ctx context.Context, at string) error {
	if hook := m.o.Hooks.BeforeFork; hook != nil {
		if err := hook(ctx, m.s, at); err != nil {
			return stopped("fork", err)
		}
	}
	return nil
}

// into switches to a fork of the present session.
func (m *Manager) into(ctx context.Context, reason, at, cwd string) error {
	from := m.s
	_, err := m.take(ctx, reason, "", func() (*coppice.Session, error) {
		return Fork(ctx, from, coppice.Target{Entry: at}, "", cwd, &m.o.Session)
	})
	return err
}

// Fork makes a new session from the path to a target, in another directory; id "" = a new one. It is listed in that
// directory under the old title, even if copied entries contain others. nil options are the store's.
func Fork(
	ctx context.Context, s *coppice.Session, t coppice.Target, id, cwd string, o *coppice.SessionOptions,
) (*coppice.Session, error) {
	own := coppice.SessionOptions{}
	if o != nil {
		own = *o
	}
	if own.Title == "" {
		own.Title = s.Info().Title
	}
	own.Cwd = cwd
	f, err := s.Fork(ctx, t, id, &own)
	if err != nil {
		return nil, err
	}
	if cwd != "" || f.Info().Cwd == "" {
		return f, nil
	}
	if _, err = f.Append(ctx, entry.Move("")); err == nil { // options cannot set an empty directory
		_, err = f.Commit(ctx, coppice.Turn{Reason: "move"})
	}
	return f, err
}

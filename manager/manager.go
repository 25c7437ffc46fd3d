// Package manager does on top of stores and sessions what the session managers of coding agents do: go on with
// the session of a directory or a terminal, move about in the tree with summaries and with text that comes back
// for editing, branch and fork into sessions of their own, compact, rename, move, reset; each with hooks that may
// cancel it or do a part of it. docs/coming-from.md says, peer by peer, what its call is called here.
//
// Guarantees:
//
//   - Every step is one commit, or two where a doc comment says so, and survives a restart. A hook that cancels,
//     and a summary that cannot be made, leave the session as it was.
//   - Nothing is lost on the way: a session that is left has its pending entries committed first; if that fails
//     it stays the manager's session, and Rescue writes what it holds.
//   - Hooks run in the caller's goroutine with no lock held.
//
// These work without a Manager: Pick lists and searches sessions, SumUsage and SettingsInForce read what a
// conversation used and how it was run, Pins and Crumbs remember sessions in small files, Trash keeps deleted ones.
package manager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// Why a step was not made.
var (
	// ErrCanceled is for hooks to return, and wrapped by the error of what they stopped. Any other error of a hook
	// stops it as well.
	ErrCanceled = errors.New("canceled by a hook")
	// ErrNoSummary says that a summary is wanted, and neither the caller nor a hook nor Options.Summarize returns one.
	ErrNoSummary = errors.New("no summary: Options.Summarize is not set")
	// ErrNothing says that there is nothing to compact.
	ErrNothing = errors.New("nothing to compact")
)

// Options of a Manager. The zero value, or nil, is the default.
type Options struct {
	Hooks Hooks
	// of the sessions that are made and opened; Title, Cwd and Parent are set by the calls
	Session   coppice.SessionOptions
	Summarize func(ctx context.Context, j Job) (Summary, error)
	Crumbs    *Crumbs // where terminals leave their crumbs; nil = nowhere
	Terminal  string  // the terminal's id; "" = no crumbs
	Store     string  // names the store in the crumbs; "" = the only one
}

// Job is a part of a conversation that is to be summarised.
type Job struct {
	Kind         string // "branch" or "compaction"
	Entries      []transcript.Entry
	Previous     string // the summary of the compaction before, which this one takes over; "" = none
	Instructions string // of the user; "" = none
}

// Summary is what became of a Job.
type Summary struct {
	Text    string
	Details json.RawMessage // anything; nil = none
}

// Manager holds one session at a time. Not safe for concurrent use; its session is.
type Manager struct {
	store *coppice.Store
	o     Options
	s     *coppice.Session
}

// New returns a manager without a session.
func New(store *coppice.Store, o *Options) *Manager {
	m := &Manager{store: store}
	if o != nil {
		m.o = *o
	}
	return m
}

// Session returns the open session; nil = none yet.
func (m *Manager) Session() *coppice.Session { return m.s }

// Create starts a new session in a directory. It exists from its first commit. parent is the id of the session
// that it comes from; "" = none.
func (m *Manager) Create(ctx context.Context, cwd, parent string) (*coppice.Session, error) {
	return m.begin(ctx, "new", cwd, parent)
}

func (m *Manager) begin(ctx context.Context, reason, cwd, parent string) (*coppice.Session, error) {
	return m.take(ctx, reason, "", func() (*coppice.Session, error) {
		o := m.o.Session
		o.Cwd, o.Parent = cwd, parent
		return m.store.Create("", &o)
	})
}

// Open opens a session and leaves the present one.
func (m *Manager) Open(ctx context.Context, id string) (*coppice.Session, error) {
	return m.open(ctx, "resume", id)
}

func (m *Manager) open(ctx context.Context, reason, id string) (*coppice.Session, error) {
	return m.take(ctx, reason, id, func() (*coppice.Session, error) {
		return m.store.Open(ctx, id, &m.o.Session)
	})
}

// Continue opens the session to continue: the last one of the terminal, if it belongs to this directory; else the one
// of the directory with the newest activity, without internal sessions of agents; else it creates a new one. In a
// terminal whose last session was new and has no messages yet, it creates a new one again.
func (m *Manager) Continue(ctx context.Context, cwd string) (*coppice.Session, error) {
	crumb, known := m.crumb(cwd)
	if known {
		s, err := m.open(ctx, "terminal", crumb.Session)
		switch {
		case err == nil || !errors.Is(err, fs.ErrNotExist):
			return s, err
		case crumb.Fresh:
			return m.begin(ctx, "new", cwd, "")
		}
	}
	for sum, err := range m.store.List(ctx, coppice.ListOptions{Cwd: cwd}) {
		if err != nil {
			return nil, err
		}
		if sum.Internal {
			continue
		}
		return m.open(ctx, "continue", sum.ID)
	}
	return m.begin(ctx, "new", cwd, "")
}

// crumb returns what the terminal remembers, if it is of this directory and this store.
func (m *Manager) crumb(cwd string) (Crumb, bool) {
	if m.o.Crumbs == nil || m.o.Terminal == "" {
		return Crumb{}, false
	}
	c, err := m.o.Crumbs.Get(m.o.Terminal)
	return c, err == nil && c.Cwd == cwd && c.Store == m.o.Store
}

// drop leaves a crumb for the terminal. That it cannot is no fault of the session.
func (m *Manager) drop(fresh bool) {
	if m.o.Crumbs == nil || m.o.Terminal == "" || m.s == nil {
		return
	}
	c := Crumb{Cwd: m.s.Info().Cwd, Session: m.s.ID(), Store: m.o.Store, Fresh: fresh}
	_ = m.o.Crumbs.Put(m.o.Terminal, c)
}

// take leaves the present session for another. What is pending in it is committed before the other is made, so
// that a failure does not leave an unused session.
func (m *Manager) take(
	ctx context.Context, reason, id string, open func() (*coppice.Session, error),
) (*coppice.Session, error) {
	if hook := m.o.Hooks.BeforeSwitch; hook != nil {
		if err := hook(ctx, m.s, id, reason); err != nil {
			return nil, stopped("switch", err)
		}
	}
	forget, err := m.settle(ctx)
	if err != nil {
		return nil, err
	}
	s, err := open()
	if err != nil {
		return nil, err
	}
	if err := m.shut(ctx, forget); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	m.adopt(ctx, s, reason)
	return s, nil
}

// adopt makes a session the manager's own, the one before being closed.
func (m *Manager) adopt(ctx context.Context, s *coppice.Session, reason string) {
	m.s = s
	m.drop(reason == "new")
	if hook := m.o.Hooks.Start; hook != nil {
		hook(ctx, s, reason)
	}
}

// Close closes the session: what is pending is committed, the shutdown hook runs, the handle is closed. If the
// commit fails the session stays open, and nothing is lost. Without a session it does nothing.
func (m *Manager) Close(ctx context.Context) error {
	forget, err := m.settle(ctx)
	if err != nil {
		return err
	}
	return m.shut(ctx, forget)
}

// settle commits what is pending. forget: that was put off, since no one answered yet, and there is nothing that
// anyone would go on with.
func (m *Manager) settle(ctx context.Context) (forget bool, err error) {
	if m.s == nil || !pending(m.s) {
		return false, nil
	}
	r, err := m.s.Commit(ctx, coppice.Turn{})
	if err != nil {
		return false, fmt.Errorf("leave session %s: %w", m.s.ID(), err)
	}
	return r.Commit == "", nil
}

// shut lets go of a session in which nothing is pending.
func (m *Manager) shut(ctx context.Context, forget bool) error {
	if m.s == nil {
		return nil
	}
	if hook := m.o.Hooks.Shutdown; hook != nil {
		hook(ctx, m.s)
	}
	s := m.s
	m.s = nil
	if err := s.Close(); err != nil && !forget {
		return err
	}
	return nil
}

// pending reports whether a session holds entries that are not committed.
func pending(s *coppice.Session) bool { return s.Head().Entry != s.Info().Entry }

// Rename sets the title of the session; "" removes it.
func (m *Manager) Rename(ctx context.Context, title string) (coppice.Receipt, error) {
	return m.say(ctx, "rename", entry.Title(title))
}

// Move changes the working directory in which the session is listed. Its history stays as it is.
func (m *Manager) Move(ctx context.Context, cwd string) (coppice.Receipt, error) {
	r, err := m.say(ctx, "move", entry.Move(cwd))
	if err != nil {
		return r, err
	}
	m.drop(false)
	return r, nil
}

// say commits one entry of the session itself at the head, as the peers do.
func (m *Manager) say(ctx context.Context, reason string, d transcript.Draft) (coppice.Receipt, error) {
	if m.s == nil {
		return coppice.Receipt{}, errNone
	}
	if _, err := m.s.Append(ctx, d); err != nil {
		return coppice.Receipt{}, err
	}
	return m.s.Commit(ctx, coppice.Turn{Reason: reason})
}

// Reset makes the next entry a new root: the context is empty, and all entries stay in the tree.
func (m *Manager) Reset(ctx context.Context) (coppice.Receipt, error) {
	if m.s == nil {
		return coppice.Receipt{}, errNone
	}
	return m.s.Branch(ctx, "", nil)
}

var errNone = errors.New("the manager has no open session")

// stopped is the error of a step that a hook ended.
func stopped(what string, err error) error { return fmt.Errorf("%s: %w", what, err) }

// Package manager implements the operations of the session managers of coding agents on stores and sessions: continue
// the session of a directory or a terminal, navigate the tree with summaries and with text returned for editing, branch
// and fork into new sessions, compact, rename, move, reset. Each has hooks that can cancel it or do a part of it.
// docs/coming-from.md lists the corresponding call for each agent.
//
// Guarantees:
//
//   - Every step is one commit, or two where a doc comment states it, and survives a restart. A hook that cancels,
//     and a summary that cannot be made, leave the session as it was.
//   - Nothing is lost: before the manager switches from a session its pending entries are committed; if that fails
//     it stays the manager's session, and Rescue writes its entries.
//   - Hooks run in the caller's goroutine with no lock held.
//
// These work without a Manager: Pick lists and searches sessions, SumUsage and SettingsInForce return the usage and the
// settings of a conversation, Pins and Crumbs remember sessions in small files, Trash keeps deleted ones.
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

// Reasons why a step was not made.
var (
	// ErrCanceled is for hooks to return; the error of the cancelled step wraps it. Any other error of a hook cancels
	// the step as well.
	ErrCanceled = errors.New("canceled by a hook")
	// ErrNoSummary reports that a summary is wanted, and that neither the caller nor a hook nor Options.Summarize
	// returned one.
	ErrNoSummary = errors.New("no summary: Options.Summarize is not set")
	// ErrNothing reports that there is nothing to compact.
	ErrNothing = errors.New("nothing to compact")
)

// Options of a Manager. The zero value, or nil, is the default.
type Options struct {
	Hooks Hooks
	// for sessions that are created and opened; the calls set Title, Cwd and Parent
	Session   coppice.SessionOptions
	Summarize func(ctx context.Context, j Job) (Summary, error)
	Crumbs    *Crumbs // the folder of crumbs; nil = none are written
	Terminal  string  // the terminal's id; "" = no crumbs
	Store     string  // names the store in the crumbs; "" = the only one
}

// Job is a part of a conversation to be summarised.
type Job struct {
	Kind         string // "branch" or "compaction"
	Entries      []transcript.Entry
	Previous     string // the summary of the previous compaction, which this one includes; "" = none
	Instructions string // from the user; "" = none
}

// Summary is the result of a Job.
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

// Session returns the open session; nil = none.
func (m *Manager) Session() *coppice.Session { return m.s }

// Create starts a new session in a directory. It is stored with its first commit. parent is the id of the parent
// session; "" = none.
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

// Open opens a session and closes the present one.
func (m *Manager) Open(ctx context.Context, id string) (*coppice.Session, error) {
	return m.open(ctx, "resume", id)
}

func (m *Manager) open(ctx context.Context, reason, id string) (*coppice.Session, error) {
	return m.take(ctx, reason, id, func() (*coppice.Session, error) {
		return m.store.Open(ctx, id, &m.o.Session)
	})
}

// Continue opens the session to continue: the last one of the terminal, if it belongs to this directory; else the one
// of the directory with the newest activity, internal sessions of agents excluded; else it creates a new one. It also
// creates a new one if the terminal's last session was new and has no messages yet.
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

// crumb returns the crumb of the terminal if it belongs to this directory and this store.
func (m *Manager) crumb(cwd string) (Crumb, bool) {
	if m.o.Crumbs == nil || m.o.Terminal == "" {
		return Crumb{}, false
	}
	c, err := m.o.Crumbs.Get(m.o.Terminal)
	return c, err == nil && c.Cwd == cwd && c.Store == m.o.Store
}

// drop stores a crumb for the terminal. A failure does not affect the session.
func (m *Manager) drop(fresh bool) {
	if m.o.Crumbs == nil || m.o.Terminal == "" || m.s == nil {
		return
	}
	c := Crumb{Cwd: m.s.Info().Cwd, Session: m.s.ID(), Store: m.o.Store, Fresh: fresh}
	_ = m.o.Crumbs.Put(m.o.Terminal, c)
}

// take replaces the present session. Pending entries are committed before the new session is created, so that a failure
// does not leave an unused session.
func (m *Manager) take(
	ctx context.Context, reason, id string, open func() (*coppice.Session, error),
) (*coppice.Session, error) {
	if hook := m.o.Hooks.BeforeSwitch; hook != nil {
		if err := hook(ctx, m.s, id, reason); err != nil {
			return nil, stopped("switch", err)
		}
	}
	forget, err := m.commitPending(ctx)
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

// adopt makes s the manager's session; the previous one is closed already.
func (m *Manager) adopt(ctx context.Context, s *coppice.Session, reason string) {
	m.s = s
	m.drop(reason == "new")
	if hook := m.o.Hooks.Start; hook != nil {
		hook(ctx, s, reason)
	}
}

// Close commits pending entries, runs the shutdown hook and closes the handle. If the commit fails the session stays
// open, and nothing is lost. Without a session it does nothing.
func (m *Manager) Close(ctx context.Context) error {
	forget, err := m.commitPending(ctx)
	if err != nil {
		return err
	}
	return m.shut(ctx, forget)
}

// commitPending commits the entries that were appended. forget: they were not committed, because the session has no
// answer yet.
func (m *Manager) commitPending(ctx context.Context) (forget bool, err error) {
	if m.s == nil || !pending(m.s) {
		return false, nil
	}
	r, err := m.s.Commit(ctx, coppice.Turn{})
	if err != nil {
		return false, fmt.Errorf("leave session %s: %w", m.s.ID(), err)
	}
	return r.Commit == "", nil
}

// shut closes a session without pending entries.
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

// say commits one settings entry at the head, as pi and omp do.
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

// stopped wraps the error of a hook that cancelled a step.
func stopped(what string, err error) error { return fmt.Errorf("%s: %w", what, err) }

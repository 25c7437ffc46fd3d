package crash

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/transcript"
)

// look is a process that opens the session, reads it and closes it without a commit: it writes nothing, whatever fails.
func (l *life) look(ctx context.Context) {
	before := l.FS.Ops()
	p, err := l.opened(ctx, nil)
	if err == nil {
		err = errors.Join(p.read(ctx), p.store.Close())
	}
	if errors.Is(err, store.ErrCorrupt) {
		l.violated("I10: a fault is taken for damage: %w", err)
	}
	if n := l.FS.Ops() - before; n > 0 {
		l.violated("I14: a process that committed nothing made %d changes", n)
	}
	l.told()
}

// together has callers that wait for a handle, one of which cancels, and records the answers. It returns the handle to
// continue with.
func (l *life) together(ctx context.Context, j *journal.Journal, cancel bool) *journal.Journal {
	if j == nil {
		return nil
	}
	defer l.told()
	start := func(ctx context.Context) *caller {
		s := l.Step(j.State(), 20)
		s.KeepBoth = true // they are based on one state, and wait for each other
		c := &caller{entry: s.Entries[0].ID, done: make(chan struct{})}
		go func() {
			defer close(c.done)
			c.r, c.err = j.Commit(ctx, s)
		}()
		return c
	}
	var doubt *caller
	for _, c := range l.group(ctx, start, 2, cancel) {
		if errors.Is(c.err, journal.ErrUnknown) {
			if doubt != nil {
				l.violated("I11: two requests are in doubt: %w and %w", doubt.err, c.err)
			}
			doubt = c
			continue
		}
		if !l.answered(c.entry, c.r, c.err) {
			return nil
		}
	}
	if doubt != nil {
		return l.inDoubt(ctx, j, doubt.entry, doubt.err)
	}
	if j.InDoubt() {
		return l.inDoubt(ctx, j, "", nil)
	}
	return j
}

// enter starts a program, which opens or creates the session; nil if it cannot.
func (l *life) enter(ctx context.Context) *program {
	for range 3 {
		p, err := l.opened(ctx, nil)
		switch {
		case err == nil:
			return p
		case errors.Is(err, store.ErrCorrupt):
			l.violated("I10: a fault is taken for damage: %w", err)
		case !errors.Is(err, fs.ErrNotExist):
		case len(l.acked) > 0:
			l.violated("I1: a fault makes the session count as missing: %w", err)
		default:
			if p.s, err = p.store.Create(Session, nil); err == nil {
				return p
			}
		}
	}
	return nil
}

// says commits a turn of a program, and records the answer. It returns the program to continue with.
func (l *life) says(ctx context.Context, p *program) *program {
	if p == nil {
		if p = l.enter(ctx); p == nil {
			return nil
		}
	}
	d := entry.User("said by a program")
	l.made++
	d.ID = fmt.Sprintf("p%d", l.made)
	r, err := p.s.Commit(ctx, coppice.Turn{Entries: []transcript.Draft{d}, State: l.made})
	defer l.told()
	for i := 0; i < 3 && l.settles && errors.Is(err, coppice.ErrCommitUnknown); i++ {
		r, err = p.s.Settle(ctx, "")
	}
	switch {
	case err == nil:
		l.acked[d.ID] = r.Commit
		return p
	case errors.Is(err, store.ErrCorrupt):
		l.violated("I10: a fault is taken for damage: %w", err)
	case !errors.Is(err, coppice.ErrCommitUnknown):
		l.failed[d.ID] = true
		return p
	}
	return nil
}

// ends closes a program; its pending work may fail.
func (l *life) ends(p *program) {
	if p == nil {
		return
	}
	if err := p.store.Close(); errors.Is(err, store.ErrCorrupt) {
		l.violated("I10: a fault is taken for damage: %w", err)
	}
	l.told()
}

// lookingOn has processes that only read while others write, and some of them die.
func lookingOn(ctx context.Context, l *life) {
	l.turn(ctx, l.open(ctx), 30, false) // its process dies
	l.look(ctx)
	j := l.turn(ctx, nil, 30, false)
	l.look(ctx)
	l.close(ctx, j)
	l.look(ctx)
}

// givingUp has callers that cancel turns at each of the first moments of their commit.
func givingUp(ctx context.Context, l *life) {
	l.watch = &watch{}
	j := l.open(ctx)
	for left := range 4 {
		_ = l.watch.cancelled(ctx, left, func(ctx context.Context) error {
			j = l.turn(ctx, j, 30, false)
			return nil
		})
	}
	l.close(ctx, l.turn(ctx, j, 30, false))
}

// waiting has callers wait for a handle.
func waiting(ctx context.Context, l *life) {
	l.watch = &watch{}
	j := l.together(ctx, l.open(ctx), false)
	j = l.turn(ctx, j, 30, false)
	l.close(ctx, l.together(ctx, j, true))
}

// embedding is a session in two programs, one after the other.
func embedding(ctx context.Context, l *life) {
	p := l.says(ctx, l.says(ctx, nil))
	l.ends(p)
	l.ends(l.says(ctx, nil))
}

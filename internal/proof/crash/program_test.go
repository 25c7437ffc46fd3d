package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// program is a process that uses package coppice, as an embedding program does.
type program struct {
	w     *World
	store *coppice.Store
	s     *coppice.Session
}

// program starts a process.
func (w *World) program() (*program, error) {
	cfg := w.Config()
	s, err := coppice.New(cfg.Backend, &coppice.Options{Writer: cfg.Writer, Now: cfg.Now, Rand: cfg.Rand})
	return &program{w: w, store: s}, err
}

// opened starts a process that opens the session.
func (w *World) opened(ctx context.Context, o *coppice.SessionOptions) (*program, error) {
	p, err := w.program()
	if err != nil {
		return nil, err
	}
	p.s, err = p.store.Open(ctx, Session, o)
	return p, err
}

// said returns a message with a unique text, and the content that its line must have.
func (w *World) said(text int) (d transcript.Draft, content []byte) {
	w.made++
	words := fmt.Sprintf("said %x-%d. %0*d", w.seed, w.made, text, 0)
	return entry.User(words), []byte(words)
}

// turn commits a turn with its own entries, and records the answer.
func (p *program) turn(ctx context.Context, text int) error {
	d, content := p.w.said(text)
	state := fmt.Sprintf(`{"made":%d}`, p.w.made)
	t := coppice.Turn{Entries: []transcript.Draft{d}, State: json.RawMessage(state)}
	r, err := p.s.Commit(ctx, t)
	return p.booked(r, err, Given{Lines: [][]byte{content}, State: state})
}

// booked records the answer to a turn. A doubt is settled, as by a program that wants its turn stored.
func (p *program) booked(r coppice.Receipt, err error, g Given) error {
	if errors.Is(err, coppice.ErrCommitUnknown) {
		r, err = p.s.Settle(context.Background(), "")
	}
	switch {
	case errors.Is(err, context.Canceled):
		p.w.refused = append(p.w.refused, g.Lines...)
		return nil
	case err != nil:
		return err
	}
	g.Seq = r.Seq
	p.w.given = append(p.w.given, g)
	p.w.Acked(r.Seq)
	return nil
}

// read reads everything that a user sees of the session.
func (p *program) read(ctx context.Context) error {
	var state json.RawMessage
	if err := p.s.State(&state); err != nil {
		return err
	}
	if _, err := p.s.Context(ctx); err != nil {
		return err
	}
	_, err := p.s.Tree(ctx)
	return err
}

// Peek is a process that opens the session, reads it and closes it without a commit. It must write nothing (I14), and
// find the same as before.
func (w *World) Peek(ctx context.Context, readOnly bool, commit string) error {
	before := w.FS.Ops()
	err := w.peek(ctx, readOnly, commit)
	if n := w.FS.Ops() - before; n > 0 {
		return fmt.Errorf("I14: a process that committed nothing made %d changes", n)
	}
	return err
}

func (w *World) peek(ctx context.Context, readOnly bool, commit string) error {
	p, err := w.opened(ctx, &coppice.SessionOptions{ReadOnly: readOnly})
	if commit == "" && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("I1: opening to read fails: %w", err)
	}
	if got := p.s.Info().Commit; got != commit {
		return fmt.Errorf("I1: a program finds commit %s, and %s was found before", got, commit)
	}
	if err := p.read(ctx); err != nil {
		return fmt.Errorf("I3: reading: %w", err)
	}
	if readOnly {
		d, _ := w.said(0)
		_, err := p.s.Commit(ctx, coppice.Turn{Entries: []transcript.Draft{d}})
		if !errors.Is(err, coppice.ErrReadOnly) {
			return fmt.Errorf("a commit of a handle for reading got %w", err)
		}
	}
	if err := p.s.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return p.store.Close()
}

// playCancel has callers that cancel turns before, and at moments of, their commit.
func playCancel(ctx context.Context, w *World) error {
	w.watch = &watch{}
	p, err := w.opened(ctx, nil)
	if err != nil {
		return err
	}
	for left := range 3 { // an append begins, is written, and is synced
		turn := func(ctx context.Context) error { return p.turn(ctx, w.text()) }
		if err := w.watch.cancelled(ctx, left, turn); err != nil {
			return err
		}
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if err := p.turn(gone, w.text()); err != nil {
		return err
	}
	if err := p.turn(ctx, w.text()); err != nil {
		return err
	}
	return p.store.Close()
}

// playProgram is the life of a session in a program that uses only package coppice.
func playProgram(ctx context.Context, w *World) error {
	p, err := w.program()
	if err != nil {
		return err
	}
	if p.s, err = p.store.Create(Session, &coppice.SessionOptions{Cwd: "/w"}); err != nil {
		return err
	}
	for range 2 {
		if err := p.turn(ctx, w.text()); err != nil {
			return err
		}
	}
	info, err := p.s.Snapshot(ctx, "tag")
	if err != nil {
		return err
	}
	w.Told.Snapshots = []string{info.ID}
	if err := p.moves(ctx); err != nil {
		return err
	}
	if err := p.store.Close(); err != nil {
		return err
	}
	each, err := w.opened(ctx, nil)
	if err != nil {
		return err
	}
	d, content := w.said(w.text())
	if _, err = each.s.Append(ctx, d); err != nil {
		return err
	}
	r, err := each.s.Commit(ctx, coppice.Turn{})
	return each.booked(r, err, Given{Lines: [][]byte{content}})
}

// moves moves the head in every way, with a turn after each.
func (p *program) moves(ctx context.Context) error {
	at := p.s.Head()
	for _, move := range []func() (coppice.Receipt, error){
		func() (coppice.Receipt, error) {
			return p.s.Branch(ctx, at.Entry, &coppice.BranchOptions{Name: "other"})
		},
		func() (coppice.Receipt, error) { return p.s.Label(ctx, at.Entry, "here") },
		func() (coppice.Receipt, error) { return p.s.Rollback(ctx, coppice.Target{Seq: at.Seq}) },
	} {
		r, err := move()
		if err != nil {
			return err
		}
		p.w.Acked(r.Seq)
		if err := p.turn(ctx, p.w.text()); err != nil {
			return err
		}
	}
	return nil
}

// playReaders has processes that read, and read-only handles, between and during the turns of a writer.
func playReaders(ctx context.Context, w *World) error {
	p, err := w.opened(ctx, nil)
	if err != nil {
		return err
	}
	for i := range 3 {
		if err := w.Peek(ctx, i%2 == 0, p.s.Info().Commit); err != nil {
			return err
		}
		if err := p.turn(ctx, w.text()); err != nil {
			return err
		}
	}
	if err := p.store.Close(); err != nil {
		return err
	}
	if err := w.Peek(ctx, false, p.s.Info().Commit); err != nil {
		return err
	}
	return w.turns(ctx, 1)
}

// Package casprobe guarantees that no session begins on a store that ignores conditions, for on such a store
// two hosts overwrite each other in silence.
//
// A store is asked once: writes that must be refused, then races of 32 writers of which exactly one may
// win. That it passed is remembered by an object in the store, so that every later process asks with one
// read, and in each checkpoint, so that a resume and a commit ask nothing at all.
package casprobe

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/layout"
)

// What the proof is made of: an object that says when and how it was found, and the keys that a probe
// writes to and takes away. No key of a session begins so.
const (
	proofKey = layout.CAS + "proof"
	scratch  = layout.CAS + "probe-"
)

// rounds bounds how often a store is asked that answers too little; pause is slept between, times two
// each time.
const (
	rounds = 4
	pause  = 250 * time.Millisecond
)

// Prover knows, or finds out, whether one store honours conditions. Safe for concurrent use.
type Prover struct {
	b     backend.Backend
	now   func() time.Time
	rand  io.Reader
	sleep func(ctx context.Context, d time.Duration) error

	turn   chan struct{} // holds one token: who has it may ask
	proven bool
	bad    error // ErrNoCAS: a store does not come to honour conditions while a process runs
}

// New makes a prover for the store b. rand has to be safe for concurrent use. No I/O.
func New(
	b backend.Backend, now func() time.Time, rand io.Reader, sleep func(context.Context, time.Duration) error,
) *Prover {
	p := &Prover{b: b, now: now, rand: rand, sleep: sleep, turn: make(chan struct{}, 1)}
	p.turn <- struct{}{}
	return p
}

// Prove returns nil where the store honours conditions: at no cost if this process knows it, with one
// read if another found out, else with about 75 requests. ErrNoCAS where it does not; any other error
// says that it was not found out, and may be tried again. Whoever calls meanwhile waits.
func (p *Prover) Prove(ctx context.Context) error {
	select {
	case <-p.turn:
		defer func() { p.turn <- struct{}{} }()
	case <-ctx.Done():
		return p.fail(ctx.Err())
	}
	if p.proven || p.bad != nil {
		return p.bad
	}
	_, _, err := p.b.Get(ctx, proofKey, backend.Range{})
	switch {
	case err == nil:
		p.proven = true
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return p.fail(err)
	}
	for round := range rounds {
		if round > 0 {
			if serr := p.sleep(ctx, pause<<(round-1)); serr != nil {
				return p.fail(errors.Join(serr, err))
			}
		}
		if err = p.probe(ctx); !errors.Is(err, ErrUnclear) {
			break
		}
	}
	switch {
	case errors.Is(err, backend.ErrNoCAS):
		p.bad = p.fail(err)
		return p.bad
	case err != nil:
		return p.fail(err)
	}
	p.proven = true
	p.remember(ctx)
	return nil
}

func (p *Prover) fail(err error) error {
	return &backend.Error{Op: "probe", Key: proofKey, Outcome: backend.NotApplied, Err: err}
}

// probe asks the store, under keys that no one used before.
func (p *Prover) probe(ctx context.Context) error {
	var name [8]byte
	if _, err := io.ReadFull(p.rand, name[:]); err != nil {
		return fmt.Errorf("name a probe: %w", err)
	}
	key := scratch + hex.EncodeToString(name[:])
	defer p.clean(context.WithoutCancel(ctx), key)
	if err := Stale(ctx, p.b, key+"-stale"); err != nil {
		return err
	}
	if err := Race(ctx, p.b, key+"-create", false); err != nil {
		return err
	}
	return Race(ctx, p.b, key+"-replace", true)
}

// clean takes away what a probe wrote. What it cannot take away (a role may not delete) is a few bytes
// that no one reads.
func (p *Prover) clean(ctx context.Context, key string) {
	for _, part := range []string{"-stale", "-stale.never", "-create", "-replace"} {
		if err := p.b.Delete(ctx, key+part); err != nil {
			return
		}
	}
}

// remember leaves the proof for other processes. Without it they ask again, which is no error.
func (p *Prover) remember(ctx context.Context) {
	text, err := json.Marshal(struct {
		Format int    `json:"format"`
		At     string `json:"at"`
		Racers int    `json:"racers"`
		Found  string `json:"found"`
	}{1, p.now().UTC().Format(time.RFC3339), Racers, "conditional writes have exactly one winner"})
	if err != nil {
		return
	}
	if _, err := p.b.Put(ctx, proofKey, append(text, '\n'), backend.IfAbsent()); err != nil {
		return
	}
}

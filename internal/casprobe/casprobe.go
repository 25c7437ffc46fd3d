// Package casprobe refuses to create a session on a store that ignores conditions: on such a store two hosts overwrite
// each other silently.
//
// A store is probed once: with writes that must be refused, then with races of 32 writers of which exactly one may win.
// An object in the store records that it passed, so that later processes need one read. Each checkpoint records it too,
// so that a resume and a commit need no request.
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

// The object that records the proof (when and how the store was probed), and the prefix of the keys that a probe writes
// and removes. No key of a session begins with either.
const (
	proofKey = layout.CAS + "proof"
	scratch  = layout.CAS + "probe-"
)

// rounds bounds the attempts to probe a store that returns too few definite answers; pause is the delay before the
// second attempt, doubled before each further one.
const (
	rounds = 4
	pause  = 250 * time.Millisecond
)

// Prover determines whether one store honours conditions. Safe for concurrent use.
type Prover struct {
	b     backend.Backend
	now   func() time.Time
	rand  io.Reader
	sleep func(ctx context.Context, d time.Duration) error

	turn   chan struct{} // holds one token: its owner may probe
	proven bool
	bad    error // ErrNoCAS is kept: a store does not begin to honour conditions while a process runs
}

// New returns a prover for the store b. rand has to be safe for concurrent use. No I/O.
func New(
	b backend.Backend, now func() time.Time, rand io.Reader, sleep func(context.Context, time.Duration) error,
) *Prover {
	p := &Prover{b: b, now: now, rand: rand, sleep: sleep, turn: make(chan struct{}, 1)}
	p.turn <- struct{}{}
	return p
}

// Prove returns nil if the store honours conditions. It makes no request if this process has the proof, one read if
// another process has stored it, else about 75 requests. It returns ErrNoCAS if the store ignores conditions. After any
// other error the answer is not known, and Prove can be called again. Concurrent callers wait.
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

// probe tests the store, under keys that were never used before.
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

// clean removes what a probe wrote. If it cannot (a role may have no permission to delete), a few bytes remain that are
// never read.
func (p *Prover) clean(ctx context.Context, key string) {
	for _, part := range []string{"-stale", "-stale.never", "-create", "-replace"} {
		if err := p.b.Delete(ctx, key+part); err != nil {
			return
		}
	}
}

// remember stores the proof for other processes. A failure is not an error: they probe again.
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

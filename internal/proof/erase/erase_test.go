// Package erase_test tries to break the promises of an erasure: a process dies at each change, answers are lost,
// and others work on the session at the same time.
package erase_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/check"
	"github.com/coppice-go/coppice/internal/erase"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/gc"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/proof"
	"github.com/coppice-go/coppice/internal/repair"
)

var all = backend.Range{}

// shapes are how many turns come before the entry and after it: in the tail, in a sealed segment, below an index
// object.
var shapes = [][2]int{{3, 0}, {9, 9}, {4, 30}}

// TestProofDeaths: a process that erases dies at each change, before it or before its answer. Readers and writers
// go on, and the erasure is completed by repeating it.
func TestProofDeaths(t *testing.T) {
	r := proof.Begin(t, "erase-deaths")
	for _, kind := range proof.StoreKinds {
		for _, shape := range shapes {
			s := newSeed(t, kind, shape[0], shape[1])
			for _, how := range []fault.Kind{fault.Before, fault.After} {
				for _, goes := range []target{{"secret", secret}, {"own", third}} {
					for n := 1; ; n += proof.Pick(t, 9, 1, 1) {
						if !death(t, r, s, n, how, goes) {
							break
						}
						r.Explored(1)
					}
				}
			}
		}
	}
}

// target is what a process erases: an entry, or an amendment by its own id.
type target struct{ id, text string }

func death(t *testing.T, r *proof.Report, s *seed, n int, how fault.Kind, goes target) (more bool) {
	t.Helper()
	g := &judge{t: t, s: s, w: s.world(t), r: r, what: fmt.Sprintf("%s: dead %v change %d", goes.id, how, n)}
	rules, changes := proof.DeadFrom(n, how)
	live := open(t, g.w) // a writer that was there before
	err := g.run([]string{goes.id}, rules...)
	if *changes < n {
		return false
	}
	if err == nil && how == fault.Before {
		g.wrong("acknowledged by a dead process")
	}
	g.readable()
	g.sound()
	if lerr := g.turn(live, "live"); lerr != nil {
		if lerr = g.turn(live, "live"); lerr != nil {
			g.wrong("the live writer: %v", lerr)
		}
	}
	g.commits("next")
	g.readable()
	g.finish(goes.id)
	g.gone(goes.text)
	g.arrives()
	g.gone(goes.text)
	g.readable()
	g.sound()
	g.commits("last")
	if ids := g.w.IDs(id); !slices.Contains(ids, "live") || !slices.Contains(ids, goes.id) {
		g.wrong("entries %v", ids)
	}
	if cerr := live.Close(context.Background()); cerr != nil {
		g.wrong("close: %v", cerr)
	}
	g.gone(goes.text)
	return true
}

// TestProofBeside: something else happens just before each call of an erasure.
func TestProofBeside(t *testing.T) {
	r := proof.Begin(t, "erase-beside")
	for name, act := range map[string]func(*meeting){
		"a turn": func(b *meeting) { b.commit() }, "turns that seal": func(b *meeting) { b.seal() },
		"a reader": func(b *meeting) { b.read() }, "a second eraser": func(b *meeting) { b.erase() },
		"a repair": func(b *meeting) { b.repair() }, "a collection": func(b *meeting) { b.collect() },
	} {
		for _, kind := range proof.StoreKinds {
			for _, shape := range shapes[:proof.Pick(t, 1, 2, 3)] {
				s := newSeed(t, kind, shape[0], shape[1])
				for n := 1; ; n += proof.Pick(t, 31, 7, 1) {
					if !meet(t, r, s, name, act, n) {
						break
					}
					r.Explored(1)
				}
			}
		}
	}
}

// meeting is an erasure with something that happens meanwhile.
type meeting struct {
	*judge
	live   *journal.Journal // opened before
	reader *journal.Journal
	second bool
	stored []string
}

func meet(t *testing.T, r *proof.Report, s *seed, name string, act func(*meeting), n int) (more bool) {
	t.Helper()
	g := &judge{t: t, s: s, w: s.world(t), r: r, what: fmt.Sprintf("%s before call %d", name, n)}
	b := &meeting{judge: g, live: open(t, g.w), reader: g.w.Open(id)}
	calls, within := 0, false
	err := g.run([]string{"secret"}, fault.Rule{When: func(fault.Call) bool {
		if calls++; calls == n && !within {
			within = true
			act(b)
			within = false
		}
		return false
	}})
	if calls < n {
		return false
	}
	if err != nil {
		g.finish("secret")
	}
	if err := b.live.Close(context.Background()); err != nil {
		g.wrong("close: %v", err)
	}
	g.gone(secret)
	g.readable()
	g.sound()
	if b.second {
		g.finish("other")
		g.gone(other)
	}
	ids := g.w.IDs(id)
	for _, id := range b.stored {
		if !slices.Contains(ids, id) {
			g.wrong("turn %s was acknowledged and is lost", id)
		}
	}
	g.commits("last")
	return true
}

func (b *meeting) commit() {
	for i := range 2 { // fenced for one request at most
		name := fmt.Sprintf("live-%d", i)
		err := b.turn(b.live, name)
		if err == nil {
			b.stored = append(b.stored, name)
		} else if i == 1 {
			b.wrong("the live writer, again: %v", err)
		}
	}
}

func (b *meeting) seal() {
	for i := range 14 {
		name := fmt.Sprintf("live-%d", i)
		if err := b.turn(b.live, name); err == nil {
			b.stored = append(b.stored, name)
		} else if i > 0 {
			b.wrong("the live writer, turn %d: %v", i, err)
		}
	}
}

func (b *meeting) read() {
	b.readable()
	for _, err := range b.reader.Lines(context.Background(), b.reader.State(), nil) {
		if err != nil {
			b.wrong("a reader from before: %v", err)
			return
		}
	}
}

func (b *meeting) erase() {
	b.second = true
	what := erase.Target{Entries: []string{"other"}}
	if _, err := erase.Run(context.Background(), b.w.Config(id), what, "", erase.Calls{}); err != nil {
		b.wrong("the second eraser: %v", err)
	}
}

func (b *meeting) repair() {
	rep, err := repair.Repair(context.Background(), b.w.Config(id), nil, false)
	if err != nil {
		b.wrong("repair: %v", err)
	}
	b.undamaged(rep)
}

func (b *meeting) collect() {
	if _, err := gc.Run(context.Background(), config(b.w), false); err != nil {
		b.wrong("gc: %v", err)
	}
}

func (b *meeting) undamaged(rep check.Report) {
	for _, p := range rep.Problems {
		if p.Kind.Damage() || p.Kind == check.Lost {
			b.wrong("repair: %v", p)
		}
	}
}

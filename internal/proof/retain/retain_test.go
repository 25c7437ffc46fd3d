// Package retain_test tries to break the promises of retention: a process dies at each change of a run, and a later run
// has to complete it.
package retain_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/proof"
	"github.com/coppice-go/coppice/internal/retain"
	"github.com/coppice-go/coppice/internal/sessiontest"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/snapshot"
)

// goes are the sessions that the policy removes; stay are those that it keeps, or that are held.
var (
	goes = []string{"child", "first", "second"}
	stay = []string{"held", "newest"}
)

// policy keeps the newest session, and of that the newest snapshot.
var policy = retain.Policy{KeepLast: 1, Snapshots: snapshot.Retention{Last: 1}}

// seed returns the objects of a store with a policy.
func seed(t *testing.T, kind string) map[string][]byte {
	ctx := t.Context()
	w := proof.NewWorld(t, proof.StoreOf(kind))
	w.Session("first", 9)
	w.Session("held", 3)
	w.Session("second", 3)
	st := store(t, w, w.B)
	agent := &coppice.SessionOptions{Cwd: "/w", Parent: "first", Relation: "agent"}
	child := testutil.Must(st.Create("child", agent))(t)
	testutil.Must(child.Append(ctx, entry.User("hello")))(t)
	testutil.Must(child.Commit(ctx, coppice.Turn{State: 1}))(t)
	held := testutil.Must(st.Open(ctx, "held", nil))(t)
	testutil.Must(held.Hold(ctx, "case 7"))(t)
	testutil.OK(t, retain.Save(ctx, st, policy))
	testutil.OK(t, st.Close())
	w.Session("newest", 12)
	return proof.Objects(t, w.B)
}

func store(t *testing.T, w *proof.World, b backend.Backend) *coppice.Store {
	t.Helper()
	st := testutil.Must(coppice.New(b, &coppice.Options{Now: w.Now, Rand: w}))(t)
	sessiontest.RunInline(st)
	sessiontest.SetSleep(st, func(ctx context.Context) error { return ctx.Err() })
	return st
}

// TestProofDeaths: a process that runs the policy dies at each change, before it or before its answer. Nothing that the
// policy keeps is lost, a session that is held is never touched, and a run once the claim has ended completes it.
func TestProofDeaths(t *testing.T) {
	r := proof.Begin(t, "retain-deaths")
	for _, kind := range proof.StoreKinds {
		objects := seed(t, kind)
		for _, how := range []fault.Kind{fault.Before, fault.After} {
			for n := 1; ; n += proof.Pick(t, 5, 1, 1) {
				w := proof.NewWorld(t, proof.StoreOf(kind))
				for key, p := range objects {
					proof.Put(t, w.B, key, p)
				}
				g := &judge{t: t, w: w, r: r, before: objects, what: fmt.Sprintf("%s: dead %v change %d", kind, how, n)}
				rules, changes := proof.DeadFrom(n, how)
				err := g.run(0, rules...)
				if *changes < n {
					break
				}
				if err == nil && how == fault.Before {
					g.wrong("acknowledged by a dead process")
				}
				g.sound()
				if err := g.run(0); err != nil && !errors.Is(err, retain.ErrRunning) {
					g.wrong("a second run: %v", err)
				}
				g.sound()
				if err := g.run(3 * time.Minute); err != nil {
					g.wrong("a run after the claim has ended: %v", err)
				}
				g.sound()
				g.complete()
				r.Explored(1)
			}
		}
	}
}

// judge finds out what is wrong with a store.
type judge struct {
	t      *testing.T
	w      *proof.World
	r      *proof.Report
	before map[string][]byte
	what   string
}

func (g *judge) wrong(format string, args ...any) {
	g.r.Violation("%s: "+format, append([]any{g.what}, args...)...)
}

// run runs the policy, by a clock that is ahead, in a process that fails by rules.
func (g *judge) run(ahead time.Duration, rules ...fault.Rule) error {
	st := store(g.t, g.w, fault.New(g.w.B, 1, rules...))
	defer func() { _ = st.Close() }()
	run := retain.Run{
		Store: st, Now: func() time.Time { return g.w.Now().Add(ahead) },
		Remove: func(ctx context.Context, r retain.Removal) error { return st.DeleteAt(ctx, r.ID, r.Commit) },
		Prune: func(ctx context.Context, id string, keep snapshot.Retention) ([]snapshot.Info, error) {
			return retain.Prune(ctx, st, id, keep)
		},
	}
	_, err := run.Do(context.Background())
	return err
}

// sound: what stays is what it was, byte for byte but for snapshots, and each session that goes is whole or deleted.
func (g *judge) sound() {
	now := proof.Objects(g.t, g.w.B)
	for key, p := range g.before {
		for _, id := range stay {
			if strings.HasPrefix(key, layout.SessionPrefix(id)) || key == layout.CheckpointKey(id) {
				goes := strings.HasPrefix(key, layout.SessionPrefix("newest")+layout.Snapshots) && now[key] == nil
				if !bytes.Equal(now[key], p) && !goes {
					g.wrong("%s was changed", key)
				}
			}
		}
	}
	st := store(g.t, g.w, g.w.B)
	defer func() { _ = st.Close() }()
	for _, id := range slices.Concat(goes, stay) {
		s, err := st.Open(context.Background(), id, &coppice.SessionOptions{ReadOnly: true})
		if errors.Is(err, coppice.ErrDeleted) && slices.Contains(goes, id) {
			continue
		}
		if err != nil {
			g.wrong("open %s: %v", id, err)
			continue
		}
		if rep, err := st.Verify(context.Background(), id, true); err != nil || len(rep.Problems) > 0 {
			g.wrong("verify %s: %v, %v", id, rep.Problems, err)
		}
		_ = s.Close()
	}
}

// complete: of what goes there is nothing but the tombstones, and no run is under way.
func (g *judge) complete() {
	now := proof.Objects(g.t, g.w.B)
	for _, id := range goes {
		for _, key := range proof.KeysWith(now, layout.SessionPrefix(id)) {
			g.wrong("%s is left", key)
		}
	}
	if n := len(proof.KeysWith(now, layout.SessionPrefix("newest")+layout.Snapshots)); n != 1 {
		g.wrong("%d snapshots of the newest session", n)
	}
	if raw := string(now[layout.RetentionRunKey]); strings.Contains(raw, "left") || strings.Contains(raw, `"by"`) {
		g.wrong("the state of retention: %s", raw)
	}
	st := store(g.t, g.w, g.w.B)
	defer func() { _ = st.Close() }()
	o := coppice.ListOptions{Exact: true, Order: coppice.ByID}
	list := sessiontest.Collect(g.t, st.List(context.Background(), o))
	ids := make([]string, len(list))
	for i, sum := range list {
		ids[i] = sum.ID
	}
	if !slices.Equal(ids, stay) {
		g.wrong("the list has %v", ids)
	}
}

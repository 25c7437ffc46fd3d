package retain_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/retain"
	"github.com/coppice-go/coppice/internal/sessiontest"
	"github.com/coppice-go/coppice/internal/testutil"
)

// A session that is committed to or held between the decision and the removal stays, with what is left of its family;
// the others go, also if another runner was faster.
func TestWriterInBetween(t *testing.T) {
	sessiontest.OnEachBackend(t, func(t *testing.T, b backend.Backend) {
		ctx := t.Context()
		var passed atomic.Int64
		clock := func() time.Time { return now.Add(time.Duration(passed.Load())) }
		store := testutil.Must(coppice.New(b, &coppice.Options{Now: clock}))(t)
		defer func() { testutil.OK(t, store.Close()) }()
		handles := map[string]*coppice.Session{}
		for _, id := range []string{"active", "child", "grandchild", "held", "other", "parent", "plain"} {
			o := &coppice.SessionOptions{Cwd: "/w"}
			if parent, ok := map[string]string{"child": "parent", "grandchild": "child"}[id]; ok {
				o.Parent, o.Relation = parent, "agent"
			}
			s := testutil.Must(store.Create(id, o))(t)
			testutil.Must(s.Commit(ctx, coppice.Turn{State: id}))(t)
			handles[id] = s
		}
		passed.Store(int64(8 * day))
		p := retain.Policy{KeepWithin: 7 * day}
		d := retain.Decide(p, testutil.Must(retain.Survey(ctx, store, p))(t), clock())
		if len(d.Removals) != 7 {
			t.Fatalf("%+v", d)
		}
		testutil.Must(handles["active"].Append(ctx, entry.User("again")))(t)
		testutil.Must(handles["active"].Commit(ctx, coppice.Turn{State: 2}))(t)
		testutil.Must(handles["held"].Hold(ctx, "case 7"))(t)
		testutil.Must(handles["child"].Commit(ctx, coppice.Turn{State: 2}))(t)
		testutil.OK(t, store.Delete(ctx, "other")) // by another runner

		remove := func(ctx context.Context, r retain.Removal) error { return store.DeleteAt(ctx, r.ID, r.Commit) }
		a, err := retain.Apply(ctx, d.Removals, remove)
		testutil.OK(t, err)
		slices.Sort(a.Removed)
		if got := strings.Join(a.Removed, " "); got != "grandchild plain" {
			t.Errorf("removed %s", got)
		}
		for _, s := range a.Stayed {
			if !errors.Is(s.Err, coppice.ErrConflict) {
				t.Errorf("%s stayed: %v", s.Session, s.Err)
			}
		}
		var left []string
		for sum, err := range store.List(ctx, coppice.ListOptions{Exact: true, Order: coppice.ByID}) {
			testutil.OK(t, err)
			left = append(left, sum.ID)
		}
		if got := strings.Join(left, " "); got != "active child held parent" || len(a.Stayed) != 4 {
			t.Errorf("left: %s; %v", got, a.Stayed)
		}
		d = retain.Decide(p, testutil.Must(retain.Survey(ctx, store, p))(t), clock())
		if len(d.Removals) != 0 {
			t.Errorf("another run removes %+v", d.Removals)
		}
	})
}

// A removal that fails keeps its family and no other one; after 16 in a row the rest is not tried.
func TestApplyFails(t *testing.T) {
	broken := errors.New("no connection")
	list := func(ids ...string) (all []retain.Removal) {
		for _, id := range ids {
			root, _, _ := strings.Cut(id, "/")
			all = append(all, retain.Removal{Session: retain.Session{ID: id}, Root: root})
		}
		return all
	}
	remove := func(_ context.Context, r retain.Removal) error {
		switch {
		case strings.HasSuffix(r.ID, "bad"):
			return broken
		case strings.HasSuffix(r.ID, "gone"):
			return coppice.ErrDeleted
		}
		return nil
	}
	a, err := retain.Apply(t.Context(), list("a/bad", "a", "gone", "b"), remove)
	if fmt.Sprint(a.Removed) != "[b]" || len(a.Stayed) != 1 || a.Stayed[0].Session != "a" || !errors.Is(err, broken) {
		t.Errorf("%+v, %v", a, err)
	}
	var many []string
	for i := range 20 {
		many = append(many, fmt.Sprint(i, "/bad"))
	}
	tried := 0
	_, err = retain.Apply(t.Context(), list(many...), func(ctx context.Context, r retain.Removal) error {
		tried++
		return remove(ctx, r)
	})
	if tried != 16 || err == nil || !strings.Contains(err.Error(), "the other 4 removals were not tried") {
		t.Errorf("%d were tried: %v", tried, err)
	}
}

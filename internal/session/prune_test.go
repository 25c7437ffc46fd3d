package session_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/proof"
	"github.com/coppice-go/coppice/internal/session"
	"github.com/coppice-go/coppice/internal/trace"
	"github.com/coppice-go/coppice/snapshot"
)

// onlyWays opens the session, and counts the snapshots that are the only way to their states, and all of them.
func onlyWays(t *testing.T, w *proof.World) (only, all int) {
	t.Helper()
	ctx := context.Background()
	tr := trace.New(w.B)
	cfg := w.Config("s1")
	cfg.Backend = tr
	j := w.Open("s1")
	var list []snapshot.Info
	for info, err := range j.Snapshots(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, info)
	}
	found, err := session.New(j, tr, session.Options{Journal: cfg}).OnlyWays(ctx, list)
	if err != nil {
		t.Fatal(err)
	}
	return len(found), len(list)
}

// A snapshot is the only way to its state where the segment of its commit is damaged, or one that holds entries of its
// window. In an intact session none is.
func TestOnlyWays(t *testing.T) {
	for _, kind := range proof.StoreKinds {
		t.Run(kind, func(t *testing.T) {
			w := proof.NewWorld(t, proof.StoreOf(kind))
			w.Session("s1", 24)
			if only, n := onlyWays(t, w); only != 0 || n != 3 {
				t.Errorf("in an intact session %d snapshots of %d are the only way to their states", only, n)
			}
			all := proof.Objects(t, w.B)
			var sealed []string
			for _, key := range proof.KeysWith(all, ".zst") {
				if strings.Contains(key, "/transcript/") {
					sealed = append(sealed, key)
				}
			}
			all[sealed[0]] = []byte("damage") // the first entries: every window has them
			hurt := proof.NewWorld(t, proof.StoreOf(kind))
			for _, key := range slices.Sorted(maps.Keys(all)) {
				if _, err := hurt.B.Put(context.Background(), key, all[key], backend.Cond{}); err != nil {
					t.Fatal(err)
				}
			}
			if only, n := onlyWays(t, hurt); only != n {
				t.Errorf("entries of each window are damaged, and %d snapshots of %d count as the only ways", only, n)
			}
		})
	}
}

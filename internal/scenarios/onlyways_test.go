package scenarios_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/proof"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/snapshot"
)

// onlyWays opens the session, and counts the snapshots that are the only copy of their state, and all snapshots.
func onlyWays(t *testing.T, w *proof.World) (only, all int) {
	t.Helper()
	ctx := context.Background()
	s := testutil.Must(newStore(t, w.B, nil).Open(ctx, "s1", nil))(t)
	for _, err := range s.Snapshots(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		all++
	}
	dropped := testutil.Must(s.Prune(ctx, snapshot.Retention{Tags: []string{"none has it"}, DryRun: true}))(t)
	return all - len(dropped), all
}

// A snapshot is the only copy of its state if the segment of its commit is damaged, or one with entries of its window:
// Prune keeps it. In an intact session there is no such snapshot.
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
			all[sealed[0]] = []byte("damage") // the first entries: every window contains them
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

package erase_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/internal/proof"
	"github.com/coppice-go/coppice/internal/vfs/vfstest"
)

// on returns a world with the store of the seed on a disk, whose ids are those of a seed of their own.
func (s *seed) on(t testing.TB, disk *vfstest.CrashFS, ids byte) *proof.World {
	t.Helper()
	b, err := local.Open("", &local.Options{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	w := proof.NewWorld(t, b)
	w.Lim, w.Rand = s.lim, rand.NewChaCha8([32]byte{ids})
	return w
}

// moment is a disk before a change of an erasure, or after the last one.
type moment struct {
	what string
	at   *vfstest.Point
	done bool // the erasure was acknowledged
}

// TestProofPowerLoss: power is lost before each change that an erasure makes on a disk, and after it. What was
// acknowledged is gone for good; else the erasure is completed by the next writer, or by repeating it.
func TestProofPowerLoss(t *testing.T) {
	r := proof.Begin(t, "erase-power")
	for _, shape := range shapes {
		s := newSeed(t, "append", shape[0], shape[1])
		disk := vfstest.NewCrashFS()
		g := &judge{t: t, s: s, w: s.on(t, disk, 7), r: r, what: "without a loss of power"}
		for _, key := range slices.Sorted(maps.Keys(s.objects)) {
			proof.Put(t, g.w.B, key, s.objects[key])
		}
		var moments []moment
		disk.Watch(func(op vfstest.Op, at *vfstest.Point) {
			moments = append(moments, moment{what: fmt.Sprintf("change %d (%s %s)", op.N, op.Kind, op.Name), at: at})
		})
		if err := g.run([]string{"secret"}); err != nil {
			g.wrong("%v", err)
		}
		disk.Watch(nil)
		moments = append(moments, moment{what: "the end", at: disk.Point(), done: true})
		seen := map[[2]uint64]bool{}
		for i, m := range slices.Backward(moments) { // a state after the last change has the strictest promise
			for img := range m.at.States(vfstest.Spread{Contents: 8, States: proof.Pick(t, 1, 3, 60)}, uint64(i)) {
				if !seen[img.Sum()] {
					seen[img.Sum()] = true
					powerless(g, m, img)
				}
			}
		}
		r.Explored(len(seen))
	}
}

func powerless(g *judge, m moment, img *vfstest.Image) {
	g = &judge{t: g.t, s: g.s, w: g.s.on(g.t, vfstest.Boot(img), 8), r: g.r, what: "power lost before " + m.what}
	g.readable()
	g.sound()
	if !m.done {
		g.commits("next")
		g.finish("secret")
	}
	g.gone(secret)
	g.readable()
	g.sound()
	g.commits("last")
	g.gone(secret)
}

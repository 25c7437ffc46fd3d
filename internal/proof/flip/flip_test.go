package flip

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/proof"
)

// tally counts verdicts.
type tally [5]atomic.Int64

func (c *tally) String() string {
	return fmt.Sprintf("%d detected, %d harmless, %d a reported tail, %d a shorter log, %d silent",
		c[detected].Load(), c[harmless].Load(), c[lostTail].Load(), c[shorter].Load(), c[silent].Load())
}

// each runs jobs on all cores.
func each[T any](jobs iter.Seq[T], do func(T)) {
	next := make(chan T)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for j := range next {
				do(j)
			}
		})
	}
	for j := range jobs {
		next <- j
	}
	close(next)
	wg.Wait()
}

// TestProofFlips damages every object of every kind.
func TestProofFlips(t *testing.T) {
	rep := proof.Begin(t, "flips")
	stores := built(t)
	decoders(t, rep, stores)
	bursts(t, rep, stores)
	facades(t, rep, stores)
}

// bursts passes runs of up to 64 random bytes, at random offsets, to the decoders.
func bursts(t *testing.T, rep *proof.Report, stores []*stored) {
	n := proof.Pick(t, 500, 15_000, 10_000_000)
	type target struct {
		s      *stored
		key    string
		decode decoder
	}
	var targets []target
	for _, s := range stores {
		for _, key := range slices.Sorted(maps.Keys(s.objects)) {
			if kind := kindOf(s, key); kind != "torn" && kind != "proof" {
				targets = append(targets, target{s, key, decoderOf(t, s, key)})
			}
		}
	}
	const batch = 500
	each(func(yield func(uint64) bool) {
		for i := range uint64(n / batch) {
			if !yield(i) {
				return
			}
		}
	}, func(seed uint64) {
		rng := rand.New(rand.NewPCG(2, seed))
		for range batch {
			x := &targets[rng.IntN(len(targets))]
			p := x.s.objects[x.key]
			q := bytes.Clone(p)
			from := rng.IntN(len(q))
			for i := from; i < min(len(q), from+1+rng.IntN(64)); i++ {
				q[i] = byte(rng.Uint32())
			}
			if !bytes.Equal(p, q) && x.decode(q) == silent {
				rep.Violation("%s %s: a burst at byte %d of batch %d gives other content, and no error", x.s.name, x.key, from, seed)
			}
		}
		rep.Explored(batch)
	})
}

// TestProofMisdirected replaces objects by intact objects of another store that was built by the same steps, so that
// they differ as little as possible; and removes objects.
func TestProofMisdirected(t *testing.T) {
	rep := proof.Begin(t, "misdirected")
	share, n := proof.Pick(t, 9, 1, 1), 0
	twins := []*stored{build(t, "replace", memory.New(), 2), build(t, "disk", disk(t), 2)}
	for i, s := range built(t) {
		truth := truthsOf(s)
		for _, key := range slices.Sorted(maps.Keys(s.objects)) {
			kind := kindOf(s, key)
			if kind == "proof" || kind == "torn" || kind == "tombstone" {
				continue
			}
			if n++; n%share != 0 {
				continue
			}
			if kind != "snapshot" && (kind != "checkpoint" || s.disk) { // without those it is another store
				rep.Explored(1)
				if o := truth.judge(key, nil); o.verdict == silent {
					rep.Violation("%s: %s is gone: %s", s.name, key, o.wrong)
				}
			}
			for other, q := range twins[i].objects {
				if kindOf(twins[i], other) != kind || sessionOf(other) == sessionOf(key) && kind == "checkpoint" || bytes.Equal(q, s.objects[key]) {
					continue // the checkpoint of a session of that name would be in force there
				}
				rep.Explored(1)
				if o := truth.judge(key, q); o.verdict == silent {
					rep.Violation("%s: %s under the name of %s: %s", s.name, other, key, o.wrong)
				}
			}
		}
	}
}

// facades passes damage to the whole product: a bit of every byte of the smallest object of each kind, and a sample of
// all other damage.
func facades(t *testing.T, rep *proof.Report, stores []*stored) {
	type job struct {
		t   *truths
		key string
		d   damage
		q   []byte
	}
	counts := map[string]*tally{}
	share := proof.Pick(t, 30_000, 2_200, 1)
	bytewise := proof.Pick(t, 400, 1, 1)
	each(func(yield func(job) bool) {
		for _, s := range stores {
			truth := truthsOf(s)
			rng := rand.New(rand.NewPCG(1, uint64(len(s.objects))))
			small := smallest(truth)
			for _, key := range slices.Sorted(maps.Keys(s.objects)) {
				for d, q := range flips(s.objects[key]) {
					bit := uint64(key[len(key)-1]) + uint64(d.a/8)*5 // a different bit of each byte
					chosen := small[key] && uint64(d.a%8) == bit%8 && d.a/8%bytewise == 0
					if (chosen || rng.IntN(share) == 0) && !yield(job{truth, key, d, bytes.Clone(q)}) {
						return
					}
				}
				for d, q := range coarse(s, key) {
					if rng.IntN(share) == 0 && !yield(job{truth, key, d, q}) {
						return
					}
				}
			}
		}
	}, func(j job) {
		o := j.t.judge(j.key, j.q)
		kind := j.t.s.name + " " + kindOf(j.t.s, j.key)
		rep.Explored(1)
		if o.verdict == silent {
			rep.Violation("%s %s, %v: %s", j.t.s.name, j.key, j.d, o.wrong)
		}
		tallies.Lock()
		defer tallies.Unlock()
		if counts[kind] == nil {
			counts[kind] = &tally{}
		}
		counts[kind][o.verdict].Add(1)
	})
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("facade, %-24s %v", name, counts[name])
	}
}

var tallies sync.Mutex

// smallest returns the smallest objects of each kind whose absence would be noticed.
func smallest(t *truths) map[string]bool {
	best := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(t.s.objects)) {
		kind := kindOf(t.s, key)
		have, ok := best[kind]
		if ok && (len(t.s.objects[have]) <= len(t.s.objects[key]) || t.judge(key, nil).verdict == harmless) {
			continue
		}
		best[kind] = key
	}
	out := map[string]bool{}
	for kind, key := range best {
		out[key] = kind != "blob" // blobs are not small
	}
	return out
}

// decoders passes every damage of every object to its decoder.
func decoders(t *testing.T, rep *proof.Report, stores []*stored) {
	type job struct {
		s   *stored
		key string
	}
	var jobs []job
	counts := map[string]*tally{}
	stride := proof.Pick(t, 997, 11, 1) // bits of each byte; every bit in the nightly size
	for _, s := range stores {
		for _, key := range slices.Sorted(maps.Keys(s.objects)) {
			jobs = append(jobs, job{s, key})
			for _, way := range []string{"bits", "coarse"} {
				counts[s.name+" "+kindOf(s, key)+" "+way] = &tally{}
			}
		}
	}
	each(slices.Values(jobs), func(j job) {
		decode := decoderOf(t, j.s, j.key)
		for way, seq := range map[string]iter.Seq2[damage, []byte]{"bits": flips(j.s.objects[j.key]), "coarse": coarse(j.s, j.key)} {
			count, n := counts[j.s.name+" "+kindOf(j.s, j.key)+" "+way], 0
			at := 0
			for d, q := range seq {
				if at++; at%stride != 0 {
					continue
				}
				v := decode(q)
				count[v].Add(1)
				if n++; v == silent {
					rep.Violation("%s %s, %v: the decoder gives other content, and no error", j.s.name, j.key, d)
				}
			}
			rep.Explored(n)
		}
	})
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%-32s %v", name, counts[name])
	}
}

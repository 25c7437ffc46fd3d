package handle

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
)

// searcher plays programs, in one bubble.
type searcher struct {
	base   bases
	found  map[string]violation // by rule, the smallest one
	counts map[string]int       // by rule, schedules
	hashes []uint64             // of the schedules that were played
	stuck  bool                 // goroutines remain that never end
	at     func(p program, choices []int)
}

func newSearcher() (*searcher, error) {
	b, err := newBases()
	return &searcher{base: b, found: map[string]violation{}, counts: map[string]int{}}, err
}

// replay plays a program by a list of choices; after it, by the default ones.
func (s *searcher) replay(p program, choices []int) *run {
	if s.at != nil {
		s.at(p, choices)
	}
	i := 0
	r := play(p, s.base, func(int) int {
		if i++; i <= len(choices) {
			return choices[i-1]
		}
		return 0
	})
	s.stuck = s.stuck || r.stuck
	return r
}

// count records a schedule and its result.
func (s *searcher) count(p program, r *run) {
	h := fnv.New64a()
	h.Write([]byte(p.String()))
	for _, step := range r.story {
		h.Write([]byte(step))
		h.Write([]byte{0})
	}
	s.hashes = append(s.hashes, h.Sum64())
	for _, v := range r.bad {
		s.counts[v.Rule]++
		v, _ = r.shows(v.Rule)
		if old, ok := s.found[v.Rule]; !ok || v.size() < old.size() {
			s.found[v.Rule] = v
		}
	}
}

// size returns the length of a violation for its reader.
func (v violation) size() int {
	n := 10*len(v.Story) + len(v.Program)
	if p, err := parse(v.Program); err == nil {
		n += p.faults + p.cancels + p.deaths
	}
	return n
}

// search plays schedules of a program, those that deviate least from the default choices first, each once: a list of
// choices ends with the last deviation. It reports whether it has played all of them.
func (s *searcher) search(p program, limit int, visit func(r *run) bool) bool {
	level := [][]int{nil}
	rng := rand.New(rand.NewPCG(1, 1))
	for len(level) > 0 {
		// If the limit cuts a level off, the schedules played of it are a sample.
		rng.Shuffle(len(level), func(i, k int) { level[i], level[k] = level[k], level[i] })
		var next [][]int
		for _, choices := range level {
			if limit--; limit < 0 || s.stuck {
				return false
			}
			r := s.replay(p, choices)
			if !visit(r) {
				return false
			}
			for i := len(choices); i < len(r.trace) && len(next) < 200_000; i++ {
				for c := 1; c < r.widths[i]; c++ {
					next = append(next, append(slices.Clone(r.trace[:i]), c))
				}
			}
		}
		level = next
	}
	return true
}

// wander plays one random schedule of one random program.
func (s *searcher) wander(seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	p := draw(rng)
	bold := 1 + rng.IntN(4)
	var choices []int
	r := play(p, s.base, func(n int) int {
		c := 0
		if rng.IntN(4) < bold {
			c = rng.IntN(n)
		}
		choices = append(choices, c)
		if s.at != nil {
			s.at(p, choices)
		}
		return c
	})
	s.stuck = s.stuck || r.stuck
	s.count(p, r)
}

// shows reports whether a run broke a rule.
func (r *run) shows(rule string) (violation, bool) {
	for _, v := range r.bad {
		if v.Rule == rule {
			v.Program, v.Choices, v.Story = r.p.String(), r.trace, r.story
			return v, true
		}
	}
	return violation{}, false
}

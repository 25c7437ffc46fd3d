package handle

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
)

// engine is what the searches have to know of the code under test: see probe.
type engine struct {
	Supported string   // the calls that it supports
	Blocks    []string // pairs of calls that must not overlap on a handle
}

// searcher plays programs, in one bubble.
type searcher struct {
	base   bases
	engine engine
	found  map[string]violation // by rule, the smallest one
	counts map[string]int       // by rule, schedules
	hashes []uint64             // of the schedules that were played
	stuck  bool                 // goroutines are left that never end
	at     func(p program, choices []int)
}

func newSearcher(e engine) (*searcher, error) {
	b, err := newBases()
	return &searcher{base: b, engine: e, found: map[string]violation{}, counts: map[string]int{}}, err
}

// replay plays a program by a list of choices; where it ends, by the usual ones.
func (s *searcher) replay(p program, choices []int) *run {
	if s.at != nil {
		s.at(p, choices)
	}
	i := 0
	r := play(p, s.base, s.engine, func(int) int {
		if i++; i <= len(choices) {
			return choices[i-1]
		}
		return 0
	})
	s.stuck = s.stuck || r.stuck
	return r
}

// count takes down what a schedule was and what it showed.
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

// size says how much there is to read in a violation.
func (v violation) size() int {
	n := 10*len(v.Story) + len(v.Program)
	if p, err := parse(v.Program); err == nil {
		n += p.faults + p.cancels + p.deaths
	}
	return n
}

// search plays schedules of a program, those that deviate least from the usual choices first, each once: a list
// of choices ends with the last deviation. It reports whether it has played all there are.
func (s *searcher) search(p program, limit int, visit func(r *run) bool) bool {
	level := [][]int{nil}
	rng := rand.New(rand.NewPCG(1, 1))
	for len(level) > 0 {
		// Where the limit cuts a level off, what is played of it is a sample.
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
	p := draw(rng, s.engine.Supported)
	bold := 1 + rng.IntN(4)
	var choices []int
	r := play(p, s.base, s.engine, func(n int) int {
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

// minimise makes a violation smaller: programs with less in them, and schedules that deviate less, as long as
// they break the same rule.
func (s *searcher) minimise(v violation) violation {
	const tries = 600 // schedules of one smaller program
	for again := true; again && !s.stuck; {
		again = false
		p, err := parse(v.Program)
		if err != nil {
			return v
		}
		for _, q := range append(p.smaller(), p) {
			var best violation
			s.search(q, tries, func(r *run) bool {
				w, ok := r.shows(v.Rule)
				if ok {
					best = w
				}
				return !ok
			})
			if best.Rule != "" && best.size() < v.size() {
				v, again = best, true
				break
			}
		}
	}
	return s.simplify(v)
}

// simplify tries each choice as the usual one, and without it.
func (s *searcher) simplify(v violation) violation {
	p, err := parse(v.Program)
	if err != nil {
		return v
	}
	try := func(choices []int) bool {
		if s.stuck {
			return false
		}
		w, ok := s.replay(p, choices).shows(v.Rule)
		if ok = ok && w.size() <= v.size(); ok {
			v = w
		}
		return ok
	}
	for i := len(v.Choices) - 1; i >= 0; i-- {
		if i >= len(v.Choices) || v.Choices[i] == 0 {
			continue
		}
		usual := slices.Clone(v.Choices)
		usual[i] = 0
		if !try(usual) {
			try(slices.Delete(slices.Clone(v.Choices), i, i+1))
		}
	}
	for n := len(v.Choices); n > 0 && v.Choices[n-1] == 0; n-- {
		v.Choices = v.Choices[:n-1]
	}
	return v
}

package lockstep

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// step is one thing that happens to a session: its kind, and two numbers as its arguments.
type step struct {
	kind string
	a, b int
}

func (s step) String() string { return fmt.Sprintf("%s %d %d", s.kind, s.a, s.b) }

func format(steps []step) string {
	var words []string
	for _, s := range steps {
		words = append(words, s.String())
	}
	return strings.Join(words, "; ")
}

func parse(text string) (steps []step, err error) {
	for part := range strings.SplitSeq(text, ";") {
		var s step
		if _, err := fmt.Sscan(part, &s.kind, &s.a, &s.b); err != nil {
			return nil, fmt.Errorf("step %q: %w", part, err)
		}
		if kinds[s.kind].do == nil {
			return nil, fmt.Errorf("no step %q", s.kind)
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// draw makes a life of its seed.
func draw(seed uint64) (steps []step) {
	rng := rand.New(rand.NewPCG(seed, 3))
	var often []string
	for _, name := range kindNames() {
		for range kinds[name].weight {
			often = append(often, name)
		}
	}
	if rng.IntN(3) == 0 {
		steps = append(steps, step{"bound", rng.IntN(1000), 0})
	}
	if rng.IntN(6) == 0 {
		steps = append(steps, step{"import", rng.IntN(1000), rng.IntN(1000)})
	}
	for range 4 + rng.IntN(20) {
		steps = append(steps, step{often[rng.IntN(len(often))], rng.IntN(1000), rng.IntN(1000)})
	}
	return steps
}

func kindNames() (names []string) {
	for name := range kinds {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// finding is something on which two of them did not agree.
type finding struct {
	rule, text string
	steps      []step
}

// life is a life while it is lived.
type life struct {
	all  []*member
	done int // steps
	bad  []finding
}

// live lives a life on all kinds of stores, and with disk on a local disk too. It ends early where the stores no
// longer do the same.
func live(steps []step, disk bool) *life {
	l := &life{}
	defer func() {
		for _, m := range l.all {
			m.end()
		}
	}()
	names := []string{"replace", "append"}
	if disk {
		names = append(names, "local")
	}
	for _, name := range names {
		m, err := newMember(name)
		if err != nil {
			l.differ("start", "%s: %v", name, err)
			return l
		}
		l.all = append(l.all, m)
	}
	for i, s := range steps {
		before := len(l.bad)
		goesOn := l.step(i, s)
		l.done++
		for k := range l.bad[before:] {
			l.bad[before+k].steps = steps[:i+1]
		}
		if !goesOn {
			return l
		}
	}
	return l
}

// differ records a finding; of each rule the first.
func (l *life) differ(rule, text string, args ...any) {
	if !slices.ContainsFunc(l.bad, func(b finding) bool { return b.rule == rule }) {
		l.bad = append(l.bad, finding{rule: rule, text: fmt.Sprintf(text, args...)})
	}
}

// step has one thing happen on every store, and compares. It reports whether the life can go on.
func (l *life) step(i int, s step) bool {
	var said []string
	for _, m := range l.all {
		said = append(said, m.do(i, s))
	}
	same := true
	for k, m := range l.all {
		if said[k] != said[0] {
			same = false
			l.differ("answers differ: "+s.kind, "%s, %s: %s\n\t%s: %s", s, l.all[0].name, said[0], m.name, said[k])
		}
	}
	for _, m := range l.all {
		if m.odd != "" {
			what, _, _ := strings.Cut(m.odd, ":")
			l.differ(what, "after %s, %s: %s", s, m.name, m.odd)
		}
	}
	if !same {
		return false
	}
	var looks, fresh []string
	for _, m := range l.all {
		mine, err := m.look(m.s)
		if err != nil {
			l.differ("unreadable", "after %s, %s: %v", s, m.name, err)
			return false
		}
		theirs, err := m.fresh()
		if err != nil {
			l.differ("unreadable", "after %s, a fresh handle on %s: %v", s, m.name, err)
			return false
		}
		looks, fresh = append(looks, mine), append(fresh, theirs)
	}
	for k, m := range l.all {
		if !m.dirty && m.s.Head().Commit != "" {
			l.compare("handle and fresh handle", s, m.name, looks[k], "a fresh handle on "+m.name, fresh[k])
		}
		l.compare("handles on two stores", s, l.all[0].name, l.all[0].alike(looks[0]), m.name, m.alike(looks[k]))
		l.compare("fresh handles on two stores", s, l.all[0].name, l.all[0].alike(fresh[0]), m.name, m.alike(fresh[k]))
	}
	return true
}

// compare holds two texts against each other: of the lines that begin with the same word, the first that differ.
func (l *life) compare(rule string, s step, who, a, other, b string) {
	if a == b {
		return
	}
	x, y := byWord(a), byWord(b)
	for word := range y {
		if _, ok := x[word]; !ok {
			x[word] = nil
		}
	}
	for word := range x {
		for i := range max(len(x[word]), len(y[word])) {
			var p, q string
			if i < len(x[word]) {
				p = x[word][i]
			}
			if i < len(y[word]) {
				q = y[word][i]
			}
			if p != q {
				l.differ(rule+" differ: "+word, "after %s:\n\t%s: %.700s\n\t%s: %.700s", s, who, p, other, q)
				break
			}
		}
	}
}

func byWord(text string) map[string][]string {
	lines := map[string][]string{}
	for line := range strings.SplitSeq(text, "\n") {
		word, _, _ := strings.Cut(line, " ")
		lines[word] = append(lines[word], line)
	}
	return lines
}

// shrink leaves out steps of a life as long as it shows the same, and makes their numbers small.
func shrink(steps []step, b finding) finding {
	show := func(steps []step) (finding, bool) {
		for _, c := range live(steps, true).bad {
			if c.rule == b.rule {
				return c, true
			}
		}
		return finding{}, false
	}
	if c, ok := show(steps); ok {
		b = c
	} else {
		b.steps = steps
		return b
	}
	for again := true; again; {
		again = false
		for i := len(b.steps) - 1; i >= 0; i-- {
			if i >= len(b.steps) || len(b.steps) == 1 {
				continue
			}
			if c, ok := show(slices.Delete(slices.Clone(b.steps), i, i+1)); ok {
				b, again = c, true
			}
		}
	}
	for i, s := range b.steps {
		for _, small := range []step{{s.kind, 0, 0}, {s.kind, 0, s.b}, {s.kind, s.a, 0}} {
			if small == s {
				break
			}
			try := slices.Clone(b.steps)
			try[i] = small
			if c, ok := show(try); ok && len(c.steps) == len(b.steps) {
				b = c
				break
			}
		}
	}
	return b
}

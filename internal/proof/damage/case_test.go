package damage

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// harm is damage to one object: its class, its index in the class, and the kind of damage.
type harm struct {
	way   string // flip, cut, zero, gone; drop, twice: a line; swap: an object of another session; old: earlier content
	class string
	index int // modulo the number of objects of the class
	at    int // modulo the length; of a flip in bits
}

func (h harm) String() string { return fmt.Sprintf("%s %s %d %d", h.way, h.class, h.index, h.at) }

// trial is one damaged session. Its text is enough to repeat it.
type trial struct {
	kind, source, stage string
	harms               []harm
	whole               bool // the whole store is repaired
}

func (c trial) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s", c.kind, c.source, c.stage)
	if c.whole {
		b.WriteString(" store")
	}
	for _, h := range c.harms {
		fmt.Fprintf(&b, "; %s", h)
	}
	return b.String()
}

func parse(text string) (c trial, err error) {
	parts := strings.Split(text, ";")
	words := strings.Fields(parts[0])
	if len(words) < 3 || len(words) > 4 {
		return c, fmt.Errorf("trial %q: want a kind of store, a source and a stage", text)
	}
	c.kind, c.source, c.stage, c.whole = words[0], words[1], words[2], len(words) == 4
	for _, part := range parts[1:] {
		var h harm
		if _, err := fmt.Sscan(part, &h.way, &h.class, &h.index, &h.at); err != nil {
			return c, fmt.Errorf("damage %q: %w", part, err)
		}
		c.harms = append(c.harms, h)
	}
	return c, nil
}

// ways are the kinds of damage; flips are the hardest to detect, so they are most frequent.
var ways = []string{"flip", "flip", "flip", "cut", "zero", "gone", "drop", "twice", "swap", "old"}

// draw makes a trial of its seed.
func draw(seed uint64, sources []string) trial {
	rng := rand.New(rand.NewPCG(seed, 21))
	source := sources[rng.IntN(len(sources))]
	if costly[source] && rng.IntN(8) > 0 {
		source = sources[rng.IntN(len(sources))]
	}
	c := trial{
		kind:   []string{"replace", "replace", "append", "append", "disk"}[rng.IntN(5)],
		source: source,
		stage:  stages[rng.IntN(len(stages))],
		whole:  rng.IntN(8) == 0,
	}
	for range 1 + rng.IntN(4)/3 { // one of four has two at once
		c.harms = append(c.harms, harm{
			ways[rng.IntN(len(ways))], classes[rng.IntN(len(classes))], rng.IntN(1000), rng.IntN(1 << 30),
		})
	}
	return c
}

// classes are the kinds of objects; a class that a session does not have is replaced by the next one that it has.
var classes = []string{
	"checkpoint", "checkpoint", "plain", "plain", "sealed", "sealed", "sealed", "snapshot", "blob", "original", "parts", "index", "ids", "torn",
}

// sector is the smallest unit that a disk writes, in bytes.
const sector = 512

// apply returns the damaged objects, and the damaged keys.
func (c trial) apply(o *origin) (hurt map[string][]byte, hit map[string]bool) {
	hurt, hit = maps.Clone(o.objects), map[string]bool{}
	for _, h := range c.harms {
		key := h.key(o)
		p, ok := hurt[key]
		if !ok {
			continue // it is missing already
		}
		q, there := h.spoil(p)
		switch h.way {
		case "swap":
			q, there = h.of(o.other, classOf(key)), true
		case "old":
			q, there = h.earlier(o, key), true
		}
		switch {
		case there && q == nil:
			continue // the other session has no object of this class, or there is no other session
		case there:
			hurt[key] = q
		default:
			delete(hurt, key)
		}
		hit[key] = true
	}
	return hurt, hit
}

// settle replaces the classes that a session does not have by the next one that it has.
func (c trial) settle(o *origin) trial {
	c.harms = slices.Clone(c.harms)
	for i := range c.harms {
		c.harms[i].class, _ = c.harms[i].find(o)
	}
	return c
}

func (h harm) key(o *origin) string {
	_, keys := h.find(o)
	return keys[h.index%len(keys)]
}

// find returns the objects of the harm's class, in order. A session has a checkpoint at least.
func (h harm) find(o *origin) (class string, keys []string) {
	start := max(slices.Index(classes, h.class), 0)
	for i := range len(classes) {
		class = classes[(start+i)%len(classes)]
		for key := range o.objects {
			if sessionOf(key) == sid && classOf(key) == class {
				keys = append(keys, key)
			}
		}
		if len(keys) > 0 {
			break
		}
	}
	slices.Sort(keys)
	return class, keys
}

// of returns an object of a class of another session; nil = it has none.
func (h harm) of(other map[string][]byte, class string) []byte {
	var keys []string
	for key := range other {
		if classOf(key) == class {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	slices.Sort(keys)
	return other[keys[h.at%len(keys)]]
}

// earlier returns an earlier content of an object; nil = there was none.
func (h harm) earlier(o *origin, key string) []byte {
	var was [][]byte
	for _, objects := range o.past {
		p, there := objects[key]
		if there && !bytes.Equal(p, o.objects[key]) && (len(was) == 0 || !bytes.Equal(p, was[len(was)-1])) {
			was = append(was, p)
		}
	}
	if len(was) == 0 {
		return nil
	}
	return was[h.at%len(was)]
}

func (h harm) spoil(p []byte) (q []byte, there bool) {
	q = slices.Clone(p)
	if len(q) == 0 {
		return q, h.way != "gone"
	}
	switch h.way {
	case "flip":
		bit := h.at % (8 * len(q))
		q[bit/8] ^= 1 << (bit % 8)
	case "cut":
		q = q[:h.at%len(q)]
	case "zero":
		from := h.at % len(q) / sector * sector
		clear(q[from:min(len(q), from+sector)])
	case "drop", "twice":
		lines := bytes.SplitAfter(q, []byte("\n"))
		i := h.at % len(lines)
		if h.way == "twice" {
			return bytes.Join(slices.Insert(lines, i, lines[i]), nil), true
		}
		return bytes.Join(slices.Delete(lines, i, i+1), nil), true
	default:
		return nil, false
	}
	return q, true
}

package transcript

import (
	"testing"

	"pgregory.net/rapid"
)

// TestWindowPushAll: many at once, on clones as a state takes them in, leave the window that was cloned as it was.
func TestWindowPushAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom([]Profile{Coppice, Pi, Operator}).Draw(t, "profile")
		bound := rapid.SampledFrom([]int{-1, 300, 1000, 4000}).Draw(t, "bound")
		path := drawPath(t, rapid.IntRange(1, 80).Draw(t, "n"))
		w := NewWorkingContext(p, bound)
		for at := 0; at < len(path); {
			end := min(len(path), at+rapid.IntRange(1, 40).Draw(t, "batch"))
			before, held := w.Context(), w.Len()
			c := w.Clone()
			if !c.PushAll(path[at:end]) {
				c = RestoreWorkingContext(p, bound, Settings{}, 0, path[:end])
			}
			if d := diff(before, w.Context()); d != "" || w.Len() != held {
				t.Fatalf("a push on a clone changed the window:\n%s", d)
			}
			w, at = c, end
			checkBytes(t, w)
			checkCut(t, BuildContext(path[:end], p), w.Context(), w)
			if bound < 0 && w.Omitted() > 0 {
				t.Fatalf("%d omitted without a bound", w.Omitted())
			}
		}
	})
	const bound = 64 << 10
	w, path := NewWorkingContext(Coppice, bound), longPath(4000)
	for len(path) > 0 {
		n := min(len(path), 900)
		if !w.PushAll(path[:n]) || w.Bytes() > bound || len(path) < 3000 && w.Bytes() < bound/8*3 {
			t.Fatalf("%d bytes held of %d entries", w.Bytes(), n)
		}
		path = path[n:]
	}
}

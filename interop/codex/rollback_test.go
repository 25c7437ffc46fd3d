package codex

import (
	"fmt"
	"strings"
	"testing"
)

func placeAt(tip string) turnPlace { return turnPlace{Tip: tip} }

// TestBack: where a conversation continues after a rollback of any number of messages.
func TestBack(t *testing.T) {
	for n, want := range map[int]string{-1: "", 0: "", 1: "c", 2: "b", 3: "a", 99: "a"} {
		var l turnTracker
		l.Tell(placeAt("0"))
		l.Ask(placeAt("a"), "x")
		l.Say()
		l.Tell(placeAt("b"))
		l.Tell(placeAt("b2"))
		l.Ask(placeAt("b3"), "y")
		l.Tell(placeAt("c0"))
		l.Note()
		l.Ask(placeAt("c"), "z")
		got, ok := l.Back(n)
		if got.Tip != want || ok != (want != "") {
			t.Errorf("%d: %v %v, want %q", n, got, ok, want)
		}
		if left := len(l.Words()); left != max(3-max(n, 0), 0) {
			t.Errorf("%d: %v are left", n, l.Words())
		}
	}
	var none turnTracker
	if got, ok := none.Back(1); ok {
		t.Error(got)
	}
}

// TestBounds: texts are held up to the bound, and the messages before a compaction are held once.
func TestBounds(t *testing.T) {
	var l turnTracker
	for i := range 10_000 {
		l.Ask(placeAt(fmt.Sprint(i)), strings.Repeat("x", 1+i*7919%5000))
		if size, held := l.words.size, 0; size >= 2*maxUserText || len(l.words.list) > 1 && size-len(l.words.list[0].text) >= maxUserText {
			t.Fatalf("%d bytes are held", size)
		} else {
			for _, w := range l.words.list {
				held += len(w.text)
			}
			if held != size {
				t.Fatalf("%d bytes are held, of which %d are known", held, size)
			}
		}
	}
	l.Begin(placeAt("t"))
	for i := range 1000 {
		l.Fold(placeAt(fmt.Sprint("f", i)), false)
		l.Keep(placeAt("k"), "k")
		l.Folded(true)
	}
	if to, ok := l.Back(1); !ok || to.Tip != "9999" || len(l.folds) != 0 || len(l.asked) != 9999 {
		t.Errorf("%v, %d messages, %d compactions", to, len(l.asked), len(l.folds))
	}
}

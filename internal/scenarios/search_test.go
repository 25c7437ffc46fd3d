package scenarios_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
)

// A search among the entries with a text finds the same as one among all entries, and reads no line of the others.
func TestEntriesWith(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		ids := say(t, s, "High water at noon", "nothing", "caf\u00e9", "an image coppice-blob:sha256 of a text", "old")
		must(s.Append(bg, entry.User("look here", entry.Image("image/png", bytes.Repeat([]byte("abc"), 20_000)))))(t)
		commit(t, s, nil)
		must(s.Amend(bg, ids[1], entry.User("low water")))(t)
		must(s.Amend(bg, ids[4], entry.User("dry")))(t)
		must(s.Hide(bg, ids[0]))(t)
		must(s.Label(bg, ids[2], "harbour"))(t)
		must(s.Append(bg, entry.User("pending water")))(t)
		tree := must(s.Tree(bg))(t)
		for text, want := range map[string]int{
			"water": 2, "WATER pend": 1, "cafe": 1, "harbour": 2, "coppice-blob:sha256": 1, "old": 0, "look": 1,
			"dry": 1,
		} {
			var all, with []string
			for n, err := range tree.SearchIn(text, s.Entries(bg)) {
				ok(t, err)
				all = append(all, n.ID)
			}
			for n, err := range tree.SearchIn(text, s.EntriesWith(bg, text)) {
				ok(t, err)
				with = append(with, n.ID)
			}
			same(t, text, fmt.Sprint(with), fmt.Sprint(all))
			same(t, text, len(with), want)
		}
		same(t, "amended, not in ASCII, pending", len(collect(t, s.EntriesWith(bg, "pending"))), 5)
	})
}

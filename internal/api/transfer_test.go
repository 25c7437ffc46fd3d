package api

import (
	"testing"

	"github.com/coppice-go/coppice/internal/importer"
)

// Two files of one session are imported as one session. It has the messages of the longer file.
func TestImportTotal(t *testing.T) {
	var total ImportTotal
	for _, r := range []importer.Result{
		{Session: "s", Entries: 4, Messages: 3, Branches: 2, Children: []string{"agent"}},
		{Session: "s", Entries: 6, Grew: true, Added: 2, Messages: 5, Branches: 1, Children: []string{"agent"}},
		{Session: "s", Entries: 6, Unchanged: true},
		{Session: "t", Entries: 2, Messages: 1},
	} {
		total.Add(r)
	}
	got := [...]int{total.Files, total.Sessions, total.Messages, total.Branches, total.Entries, total.New, total.Grown}
	if want := [...]int{4, 3, 6, 1, 8, 2, 1}; got != want {
		t.Errorf("files, sessions, messages, on branches, entries, new, grown: %v, want %v", got, want)
	}
}

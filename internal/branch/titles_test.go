package branch_test

import (
	"maps"
	"testing"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/branch"
	"github.com/coppice-go/coppice/transcript"
)

// The title of a branch with a name that was made is the first words of its first prompt. Chosen names stay, and a
// branch without a message of its own has no title.
func TestTitles(t *testing.T) {
	b := transcript.NewTreeBuilder()
	for _, r := range []codec.Row{
		{ID: "u1", Parent: codec.NoParent, Type: "message", Role: "user", Preview: "When is high water?"},
		{ID: "a1", Parent: 0, Type: "message", Role: "assistant", Preview: "At 11:42."},
		{ID: "u2", Parent: 1, Type: "message", Role: "user", Preview: "And at the pier"},
		{ID: "u3", Parent: 1, Type: "message", Role: "user", Preview: "Draw the whole table of the harbour, please"},
		{ID: "a3", Parent: 3, Type: "message", Role: "assistant", Preview: "Here."},
		{ID: "u4", Parent: 4, Type: "message", Role: "user", Preview: "Smaller"},
		{ID: "a2", Parent: 0, Type: "message", Role: "assistant", Preview: "At noon."},
		{ID: "k1", Parent: 2, Type: "custom"},
	} {
		b.AddRow(r)
	}
	tree := b.Tree("u4", []transcript.Branch{
		{Name: "rollback-1", Head: "a1"}, // on the way of the others
		{Name: "rollback-2", Head: "a3"},
		{Name: "rollback-3", Head: "u4"},
		{Name: "rollback-3-2", Head: "u4"},
		{Name: "conflict-0123abcd", Head: "a2"},
		{Name: "main", Head: "u2"},
		{Name: "rollback-4", Head: "k1"},
		{Name: "rollback-plan", Head: "u4"},
		{Name: "empty"},
	}, nil)
	want := map[string]string{
		"conflict-0123abcd": "conflict-0123abcd", "main": "main", "rollback-plan": "rollback-plan", "empty": "empty",
	}
	if got := branch.Titles(tree); !maps.Equal(got, want) {
		t.Errorf("titles %q, want %q", got, want)
	}
	tree = b.Tree("u4", []transcript.Branch{
		{Name: "main", Head: "u2"},
		{Name: "main-2", Head: "a3"},
		{Name: "rollback-3", Head: "u4"},
		{Name: "rollback-3-2", Head: "u4"},
	}, nil)
	want = map[string]string{
		"main": "main", "main-2": "Draw the whole table of the…", "rollback-3": "Smaller",
	}
	if got := branch.Titles(tree); !maps.Equal(got, want) {
		t.Errorf("titles %q, want %q", got, want)
	}
}

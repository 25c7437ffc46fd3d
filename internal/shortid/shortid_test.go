package shortid

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestPrefixesAreShortAndUnique(t *testing.T) {
	ids := []string{
		"01a207a4-2ae4-7000-8701-000000000001", "01a207a4-2ae4-7000-8701-000000000002",
		"fe5e1c67-53e7-4862-81ae-d0e013e3270b", "short", "session_b", "session_b2",
		"fe5e1c67-53e7-4862-81ae-d0e013e3270b",
	}
	set := Of(ids, Least)
	want := map[string]string{
		"fe5e1c67-53e7-4862-81ae-d0e013e3270b": "fe5e1c67", "short": "short", "session_b": "session_b",
		"session_b2": "session_b2", ids[0]: ids[0], ids[1]: ids[1], "not in the set": "not in t",
	}
	for id, short := range want {
		if got := set.Short(id); got != short {
			t.Errorf("%s is shortened to %q, want %q", id, got, short)
		}
	}
	if set.Width() != len(ids[0]) {
		t.Errorf("width %d", set.Width())
	}
	if got := One(ids[0]); got != "01a207a4-2ae4" {
		t.Errorf("alone: %q", got)
	}
}

// One pair of ids with a long common beginning does not make the others longer.
func TestEachPrefixHasItsOwnLength(t *testing.T) {
	var ids []string
	for i := range 100 {
		ids = append(ids, fmt.Sprintf("%08x-53e7-4862-81ae-d0e013e3270b", i*7919))
	}
	ids = append(ids, ids[3]+"-1", ids[4]+".model", ids[4]+".model.2") // those of ids[4] do not make it longer
	set, seen := Of(ids, Least), map[string]string{}
	for _, id := range ids {
		short := set.Short(id)
		if !strings.HasPrefix(id, short) || seen[short] != "" {
			t.Errorf("%q is the prefix of %s and %s", short, id, seen[short])
		}
		seen[short] = id
		if id != ids[3] && !slices.Contains(ids[100:], id) && len(short) != Least {
			t.Errorf("%s is shortened to %q", id, short)
		}
	}
}

func TestCandidates(t *testing.T) {
	ids := []string{"aaaaaaaa-3", "aaaaaaaa-1", "aaaaaaaa-2x", "aaaaaaaa-2x", "aaaaaaaa-4", "aaaaaaaa-5"}
	if got := Candidates(ids[:3]); got != "aaaaaaaa-1, aaaaaaaa-2, aaaaaaaa-3" {
		t.Errorf("got %s", got)
	}
	if got := Candidates(append(ids, "aaaaaaaa-6")); got != "aaaaaaaa-1, aaaaaaaa-2, aaaaaaaa-3, aaaaaaaa-4, aaaaaaaa-5, ..." {
		t.Errorf("got %s", got)
	}
}

// Ids that are shown one by one differ too, and one that comes again is the same.
func TestSeen(t *testing.T) {
	var seen Seen
	ids := []string{"01a207a4-2ae4-7000-87", "01a207a4-2ae4-7000-88", "01a207a4-2ae4-7000-87", "ab", "é0123456789é1"}
	want := []string{"01a207a4-2ae4", "01a207a4-2ae4-", "01a207a4-2ae4", "ab", "é0123456789é"}
	for i, id := range ids {
		if got := seen.Short(id); got != want[i] {
			t.Errorf("%s is shortened to %q, want %q", id, got, want[i])
		}
	}
}

// An id within a text is shortened where it is a word, and stays whole in paths and keys.
func TestIn(t *testing.T) {
	const id = "01a207a4-2ae4-7000-8701-000000000001"
	for text, want := range map[string]string{
		"session " + id + ": deleted":                      "session 01a207a4-2ae4: deleted",
		`"` + id + `", ` + id:                              `"01a207a4-2ae4", 01a207a4-2ae4`,
		"p/t_" + id + ".jsonl: compare with session " + id: "p/t_" + id + ".jsonl: compare with session 01a207a4-2ae4",
		"get sessions/" + id + "/head: gone":               "get sessions/" + id + "/head: gone",
		"another":                                          "another",
	} {
		if got := In(text, id); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}

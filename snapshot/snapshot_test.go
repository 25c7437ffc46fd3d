package snapshot

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/checkpoint"
)

func TestPolicy(t *testing.T) {
	tests := []struct {
		policy  Policy
		commits int
		reason  string
		want    bool
	}{
		{Policy{}, 0, "turn", false},
		{Policy{}, 49, "turn", false},
		{Policy{}, 50, "turn", true},
		{Policy{}, 51, "turn", true},
		{Policy{}, 3, "compaction", false},
		{Policy{BeforeCompaction: true}, 3, "compaction", true},
		{Policy{BeforeCompaction: true}, 0, "compaction", false}, // the last snapshot holds that state
		{Policy{BeforeCompaction: true}, 3, "turn", false},
		{Policy{Every: 5}, 4, "turn", false},
		{Policy{Every: 5}, 5, "turn", true},
		{Policy{Every: 1}, 1, "turn", true},
		{Policy{Every: 1}, 0, "turn", false},
		{Policy{Every: -1}, 1000, "turn", false},
		{Policy{Every: -1, BeforeCompaction: true}, 1000, "compaction", true},
	}
	for _, tt := range tests {
		if got := tt.policy.When(tt.commits, tt.reason); got != tt.want {
			t.Errorf("%+v after %d commits before %s: %v", tt.policy, tt.commits, tt.reason, got)
		}
	}
}

func TestNames(t *testing.T) {
	id := "0193f2a0-1111-7222-8333-4444aBcd5566"
	name := Name(50, id)
	if name != "00000000000000000050-aBcd5566" {
		t.Errorf("name %s", name)
	}
	if seq, end, ok := ParseName(name); !ok || seq != 50 || end != "aBcd5566" {
		t.Errorf("%d, %s, %v", seq, end, ok)
	}
	for _, bad := range []string{
		"", "50-aBcd5566", "00000000000000000050", "00000000000000000050-aBcd556", "00000000000000000050-aBcd55667", "0000000000000000005x-aBcd5566",
		"00000000000000000050_aBcd5566", "00000000000000000050-aBcd/566", "99999999999999999999-aBcd5566", "+0000000000000000050-aBcd5566", Name(1, "short"),
	} {
		if seq, end, ok := ParseName(bad); ok {
			t.Errorf("%q reads as %d, %s", bad, seq, end)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Uint64().Draw(t, "a"), rapid.Uint64().Draw(t, "b")
		na, nb := Name(a, id), Name(b, id)
		if seq, _, ok := ParseName(na); !ok || seq != a {
			t.Fatalf("%d comes back as %d, %v", a, seq, ok)
		}
		if a < b && na >= nb {
			t.Fatalf("%s does not come before %s", na, nb)
		}
	})
}

func TestFromSummary(t *testing.T) {
	at := time.Date(2026, 11, 20, 1, 2, 3, 0, time.UTC)
	s := checkpoint.Summary{
		Head: checkpoint.Head{Seq: 9, Commit: "c"}, Snapshot: "n", Tag: "green", Reason: "turn", Created: at.Add(-time.Hour), Updated: at,
	}
	if got, want := FromSummary(s, 77), (Info{ID: "n", Commit: "c", Tag: "green", Reason: "turn", Seq: 9, Time: at, Bytes: 77}); got != want {
		t.Errorf("%+v", got)
	}
}

package snapshot

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// list parses snapshots from lines "time [tag]", oldest first; their seqs count from 1.
func list(lines ...string) []Info {
	var out []Info
	for i, line := range lines {
		day, tag, _ := strings.Cut(line, " ")
		at, err := time.Parse("2006-01-02T15", day)
		if err != nil {
			panic(err)
		}
		out = append(out, Info{ID: Name(uint64(i+1), "12345678"), Seq: uint64(i + 1), Time: at, Tag: tag})
	}
	return out
}

func seqs(list []Info) string {
	var out []string
	for _, s := range list {
		out = append(out, fmt.Sprint(s.Seq))
	}
	return strings.Join(out, " ")
}

func TestSelect(t *testing.T) {
	month := list(
		"2026-11-02T08", "2026-11-02T20 v1", "2026-11-04T09", "2026-11-08T23", "2026-11-09T00", // 1 to 5: Mon, Mon, Wed, Sun, Mon
		"2026-11-18T10 green", "2026-11-19T10", "2026-11-20T08", "2026-11-20T09 green", "2026-11-20T10", // 6 to 10
	)
	tests := []struct {
		name string
		r    Retention
		keep string
	}{
		{"no rule keeps all", Retention{}, "10 9 8 7 6 5 4 3 2 1"},
		{"dry run alone is no rule", Retention{DryRun: true}, "10 9 8 7 6 5 4 3 2 1"},
		{"last 3", Retention{Last: 3}, "10 9 8"},
		{"last, more than there are", Retention{Last: 99}, "10 9 8 7 6 5 4 3 2 1"},
		{"daily 3 takes the newest of each day", Retention{Daily: 3}, "10 7 6"},
		{"days without one do not count", Retention{Daily: 5}, "10 7 6 5 4"},
		{"the oldest stays while a rule has counts left", Retention{Daily: 9}, "10 7 6 5 4 3 2 1"},
		{"weekly 2", Retention{Weekly: 2}, "10 5"},
		{"weekly with counts left", Retention{Weekly: 9}, "10 5 4 1"},
		{"a week ends on Sunday", Retention{Weekly: 3}, "10 5 4"},
		{"tag", Retention{Tags: []string{"green"}}, "9 6"},
		{"two tags", Retention{Tags: []string{"green", "v1"}}, "9 6 2"},
		{"any tag", Retention{Tags: []string{"*"}}, "9 6 2"},
		{"a tag that none has", Retention{Tags: []string{"blue"}}, ""},
		{"rules add up", Retention{Last: 1, Daily: 2, Tags: []string{"v1"}}, "10 7 2"},
		{"below zero is no limit", Retention{Weekly: -1, Last: 1}, "10 5 4 1"},
		{"all days", Retention{Daily: -1}, "10 7 6 5 4 3 2 1"},
	}
	for _, tt := range tests {
		keep, drop := tt.r.Select(month)
		if got := seqs(keep); got != tt.keep {
			t.Errorf("%s: keeps %s, want %s", tt.name, got, tt.keep)
		}
		if len(keep)+len(drop) != len(month) {
			t.Errorf("%s: %d kept, %d dropped of %d", tt.name, len(keep), len(drop), len(month))
		}
	}
}

func TestSelectYearAndZone(t *testing.T) {
	// ISO week 1 of 2027 starts on 4 January; 28 December to 3 January are week 53 of 2026.
	oneWeek := list("2026-12-10T10", "2026-12-24T10", "2026-12-31T10", "2027-01-03T10")
	if keep, _ := (Retention{Weekly: 2}).Select(oneWeek); seqs(keep) != "4 2" {
		t.Errorf("one week in two years: keeps %s, want 4 2", seqs(keep))
	}
	// Both are week 1: 1 January of 2024, and 30 December 2024 of 2025.
	twoWeeks := list("2023-12-20T10", "2024-01-01T10", "2024-12-30T10")
	if keep, _ := (Retention{Weekly: 2}).Select(twoWeeks); seqs(keep) != "3 2" {
		t.Errorf("two weeks in one year: keeps %s, want 3 2", seqs(keep))
	}
	if keep, _ := (Retention{Daily: 2}).Select(list("2026-11-20T10", "2027-11-20T10", "2027-11-20T11")); seqs(keep) != "3 1" {
		t.Errorf("same day of another year: %s", seqs(keep))
	}
	zone := time.FixedZone("east", 10*3600)
	a := Info{Seq: 1, Time: time.Date(2026, 11, 20, 5, 0, 0, 0, zone)} // 19 November in UTC
	b := Info{Seq: 2, Time: time.Date(2026, 11, 20, 12, 0, 0, 0, zone)}
	if keep, _ := (Retention{Daily: 2}).Select([]Info{a, b}); seqs(keep) != "2 1" {
		t.Errorf("days are those of UTC: %s", seqs(keep))
	}
	if keep, drop := (Retention{Last: 1}).Select(nil); keep != nil || drop != nil {
		t.Error("an empty list")
	}
}

// A snapshot that is the only copy of its state is never dropped, and does not use up a rule.
func TestSelectKeepsTheOnlyWay(t *testing.T) {
	l := list("2026-11-18T10", "2026-11-19T10", "2026-11-20T10")
	l[0].Only = true
	if keep, drop := (Retention{Last: 1}).Select(l); seqs(keep) != "3 1" || seqs(drop) != "2" {
		t.Errorf("keeps %s, drops %s", seqs(keep), seqs(drop))
	}
}

// Properties of Select: nothing is lost or invented, order does not matter, and a second selection drops nothing.
func TestSelectProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l []Info
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for i := range rapid.IntRange(0, 40).Draw(t, "snapshots") {
			at = at.Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "hours")) * time.Hour)
			l = append(l, Info{ID: fmt.Sprint(i), Seq: uint64(i), Time: at, Tag: rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(t, "tag"), Only: rapid.IntRange(0, 9).Draw(t, "only") == 0})
		}
		r := Retention{
			Last: rapid.IntRange(-1, 5).Draw(t, "last"), Daily: rapid.IntRange(-1, 5).Draw(t, "daily"), Weekly: rapid.IntRange(-1, 5).Draw(t, "weekly"),
			Tags: rapid.SampledFrom([][]string{nil, {"a"}, {"*"}}).Draw(t, "tags"),
		}
		before := slices.Clone(l)
		keep, drop := r.Select(l)
		if !slices.Equal(l, before) {
			t.Fatal("the list was changed")
		}
		all := append(slices.Clone(keep), drop...)
		slices.SortFunc(all, func(a, b Info) int { return int(a.Seq) - int(b.Seq) })
		if !slices.Equal(all, l) && len(l) > 0 {
			t.Fatalf("%s and %s are not the list", seqs(keep), seqs(drop))
		}
		for _, s := range drop {
			if s.Only || len(r.Tags) > 0 && s.Tag != "" && (r.Tags[0] == "*" || r.Tags[0] == s.Tag) {
				t.Fatalf("%d is dropped", s.Seq)
			}
		}
		for i := range min(len(l), max(0, r.Last)) {
			if !slices.Contains(keep, l[len(l)-1-i]) {
				t.Fatalf("last %d drops %d", r.Last, len(l)-1-i)
			}
		}
		slices.Reverse(l)
		if again, _ := r.Select(l); !slices.Equal(again, keep) {
			t.Fatal("the order of the list matters")
		}
		if again, gone := r.Select(keep); !slices.Equal(again, keep) {
			t.Fatalf("a second time drops %s more", seqs(gone))
		}
	})
}

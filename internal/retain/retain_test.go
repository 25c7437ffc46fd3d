package retain_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/retain"
)

const day = 24 * time.Hour

var now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// old is a session that was active so many days ago, and has ten bytes.
func old(id string, days int, change ...func(*retain.Session)) retain.Session {
	s := retain.Session{ID: id, Commit: "of " + id, Updated: now.Add(-time.Duration(days) * day), Bytes: 10}
	for _, f := range change {
		f(&s)
	}
	return s
}

func held(s *retain.Session)   { s.Held = true }
func unread(s *retain.Session) { s.Commit = "" }

func of(parent string) func(*retain.Session) { return func(s *retain.Session) { s.Parent = parent } }
func in(group string) func(*retain.Session)  { return func(s *retain.Session) { s.Group = group } }

func TestDecide(t *testing.T) {
	within := retain.Policy{KeepWithin: 7 * day}
	for name, c := range map[string]struct {
		p    retain.Policy
		have []retain.Session
		want string // ids with the reasons, in order
	}{
		"no rule":       {retain.Policy{}, []retain.Session{old("a", 1000)}, ""},
		"age":           {within, []retain.Session{old("b", 8), old("a", 9), old("c", 7)}, "a:age b:age"},
		"ahead of time": {within, []retain.Session{old("a", -900)}, ""},
		"equal times":   {within, []retain.Session{old("b", 9), old("a", 9)}, "a:age b:age"},
		"count": {
			retain.Policy{KeepLast: 1},
			[]retain.Session{old("a", 1, in("x")), old("b", 2, in("x")), old("c", 9), old("d", 3, in("x"))},
			"d:count b:count",
		},
		"either rule keeps": {
			retain.Policy{KeepWithin: 7 * day, KeepLast: 1},
			[]retain.Session{old("a", 1), old("b", 2), old("c", 8), old("d", 9, in("x"))},
			"c:age+count",
		},
		"bytes": {
			retain.Policy{MaxBytes: 25},
			[]retain.Session{old("a", 1), old("b", 3), old("c", 2)},
			"b:bytes",
		},
		"bytes fit": {retain.Policy{MaxBytes: 30}, []retain.Session{old("a", 1), old("b", 3), old("c", 2)}, ""},
		"kept over bytes": {
			retain.Policy{KeepWithin: 7 * day, MaxBytes: 5},
			[]retain.Session{old("a", 1), old("b", 8)},
			"b:age+bytes",
		},
		"old but it fits": {
			retain.Policy{KeepWithin: 7 * day, MaxBytes: 20},
			[]retain.Session{old("a", 1), old("b", 8)},
			"",
		},
		"held": {within, []retain.Session{old("a", 900, held), old("b", 8)}, "b:age"},
		"held is one of the newest": {
			retain.Policy{KeepLast: 1}, []retain.Session{old("a", 1, held), old("b", 2)}, "b:count",
		},
		"not readable": {within, []retain.Session{old("a", 900, unread)}, ""},
		"children go first": {
			within,
			[]retain.Session{old("a", 8), old("b", 9, of("a")), old("c", 10, of("b")), old("d", 20)},
			"d:age c:parent b:parent a:age",
		},
		"an active child keeps its parent": {within, []retain.Session{old("a", 8), old("b", 1, of("a"))}, ""},
		"an active parent keeps its child": {within, []retain.Session{old("a", 1), old("b", 8, of("a"))}, ""},
		"a held child keeps its parent":    {within, []retain.Session{old("a", 8), old("b", 9, of("a"), held)}, ""},
		"a child that cannot be read": {
			within,
			[]retain.Session{old("a", 8), old("b", 9, of("a"), unread)},
			"",
		},
		"a parent that is gone": {within, []retain.Session{old("b", 9, of("a"))}, "b:age"},
		"each other's parents": {
			within,
			[]retain.Session{old("b", 9, of("a")), old("a", 9, of("b"))},
			"a:parent b:age",
		},
		"each other's parents, one is held": {
			within,
			[]retain.Session{old("b", 9, of("a")), old("a", 9, of("b"), held)},
			"",
		},
		"its own parent": {within, []retain.Session{old("a", 9, of("a"))}, "a:age"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range retain.Decide(c.p, c.have, now).Removals {
				text := make([]string, len(r.Because))
				for i, why := range r.Because {
					text[i] = string(why)
				}
				got = append(got, r.ID+":"+strings.Join(text, "+"))
			}
			if text := strings.Join(got, " "); text != c.want {
				t.Errorf("removed %q, want %q", text, c.want)
			}
		})
	}
}

// For any policy and store: what a keep rule or a hold keeps stays, a parent goes after its children, what has to go
// goes, and the order in which sessions are listed has no part in it.
func TestDecideAny(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := retain.Policy{
			KeepWithin: time.Duration(rapid.IntRange(0, 5).Draw(t, "within")) * day,
			KeepLast:   rapid.IntRange(0, 3).Draw(t, "last"),
			MaxBytes:   rapid.Int64Range(0, 60).Draw(t, "bytes"),
		}
		apart := 100 * rapid.IntRange(0, 1).Draw(t, "apart") // no session has a parent
		have := make([]retain.Session, rapid.IntRange(0, 12).Draw(t, "sessions"))
		for i := range have {
			have[i] = retain.Session{
				ID: fmt.Sprint("s", i), Commit: rapid.SampledFrom([]string{"c", "c", "c", ""}).Draw(t, "commit"),
				Parent:  fmt.Sprint("s", rapid.IntRange(0, 30).Draw(t, "parent")+apart),
				Group:   rapid.SampledFrom([]string{"", "x"}).Draw(t, "group"),
				Updated: now.Add(-time.Duration(rapid.IntRange(-1, 9).Draw(t, "days")) * day),
				Bytes:   rapid.Int64Range(0, 20).Draw(t, "size"), Held: rapid.IntRange(0, 5).Draw(t, "held") == 0,
			}
		}
		d := retain.Decide(p, have, now)
		mixed := slices.Clone(have)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		r.Shuffle(len(mixed), func(i, k int) { mixed[i], mixed[k] = mixed[k], mixed[i] })
		if again := retain.Decide(p, mixed, now); !reflect.DeepEqual(again, d) {
			t.Fatalf("in another order %+v, not %+v", again, d)
		}
		checkDecision(t, p, have, d)
	})
}

func checkDecision(t *rapid.T, p retain.Policy, have []retain.Session, d retain.Decision) {
	at := map[string]int{} // place in the order of removals, from 1
	left := d.Bytes
	for i, r := range d.Removals {
		at[r.ID], left = i+1, left-r.Bytes
	}
	if left != d.Left || len(at) != len(d.Removals) || p.Empty() && len(at) > 0 {
		t.Fatalf("%+v", d)
	}
	among := func(is func(o retain.Session) bool) int {
		n := 0
		for _, o := range have {
			if is(o) {
				n++
			}
		}
		return n
	}
	alone := func(s retain.Session) bool { // it has no parent and no children
		return among(func(o retain.Session) bool { return o.ID == s.Parent || o.Parent == s.ID }) == 0
	}
	flat := among(alone) == len(have)
	whole := p.MaxBytes == 0 && !p.Empty()
	for _, s := range have {
		gone, parent := at[s.ID], at[s.Parent]
		newer := among(func(o retain.Session) bool {
			return o.Group == s.Group && o.ID != s.ID && !o.Updated.Before(s.Updated)
		})
		switch {
		case gone > 0 && (s.Held || s.Commit == ""), gone > 0 && now.Sub(s.Updated) <= p.KeepWithin && p.KeepWithin > 0,
			gone > 0 && flat && newer < p.KeepLast:
			t.Fatalf("%+v is kept, and %+v removes it", s, p)
		case parent > 0 && gone == 0:
			t.Fatalf("%+v outlives its parent", s)
		}
	}
	if whole || left > p.MaxBytes && !p.Empty() { // all that may go went: another run finds nothing
		var rest []retain.Session
		for _, s := range have {
			if at[s.ID] == 0 {
				rest = append(rest, s)
			}
		}
		if again := retain.Decide(p, rest, now); len(again.Removals) > 0 {
			t.Fatalf("%+v, and then %+v", d.Removals, again.Removals)
		}
	}
}

// A fork is no child, a group is the folder or a value of metadata, and a session whose hold is not known is held.
func TestOf(t *testing.T) {
	sum := checkpoint.Summary{ID: "a", Cwd: "/w", Parent: "p", Meta: map[string]string{"team": "red"}, Bytes: 7}
	sum.Commit = "c"
	s := retain.Policy{}.Of(&sum)
	if s.Group != "/w" || s.Parent != "p" || s.Held || s.Commit != "c" {
		t.Errorf("%+v", s)
	}
	sum.Relation = "fork"
	if s = (retain.Policy{GroupBy: "team"}).Of(&sum); s.Group != "red" || s.Parent != "" {
		t.Errorf("%+v", s)
	}
	sum.Meta = map[string]string{checkpoint.MetaHold: ""}
	if s = (retain.Policy{}).Of(&sum); !s.Held {
		t.Error("it is held")
	}
	sum.Meta, sum.MetaElsewhere = nil, true
	if s = (retain.Policy{}).Of(&sum); !s.Held {
		t.Error("it may be held")
	}
}

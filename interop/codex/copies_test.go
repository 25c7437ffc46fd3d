package codex

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// origins returns "tokens out/2 origin" of each count in a session, with "+" where another thread received the answer.
func origins(s session) string {
	var list []string
	for _, e := range s.Entries {
		raw := e.Raw
		if e.Type == "message" {
			raw = rawjson.Field(e.Raw, "message")
		}
		if rawjson.Field(raw, "usage") == nil {
			continue
		}
		mark := ""
		if rawjson.IsTrue(rawjson.Field(raw, "inherited")) {
			mark = "+"
		}
		n := string(rawjson.Field(rawjson.Field(raw, "usage"), "reasoning"))
		list = append(list, n+" "+textField(raw, "origin")+mark)
	}
	return strings.Join(list, ", ")
}

// TestCopiedCounts: an answer has the same origin in the file of its thread and in files that Codex copied it to. Where
// the turn began before the thread it is marked as a copy. The total that a fork begins with is not a use of its own.
func TestCopiedCounts(t *testing.T) {
	const parent, child = "019d9249-e0ee-7020-a305-b6369cd02251", "019d924b-53f5-78f1-a0d4-69aa13191f54"
	const before, after = "019d924a-361e-7a82-8f76-6b8406143f52", "019d924b-6b70-7963-9863-ad2e0ee1f9c1"
	meta := func(id, more string) string {
		return `{"timestamp":"2026-01-01T00:00:05.000Z","type":"session_meta","payload":{"id":"` +
			id + `"` + more + "}}\n"
	}
	turn := func(id string) string {
		return event(fmt.Sprintf(`{"type":"task_started","turn_id":%q}`, id))
	}
	forked := `,"forked_from_id":"` + parent + `"`
	history := turn(before) + user("q") + said("a") + count(1, 1) + said("b") + count(2, 3)
	own := turn(after) + user("q2") + said("c") + count(1, 4)
	origin := func(turn string, total int) string {
		return fmt.Sprintf("codex:%s:%d:%d:%d:%d", turn, 10*total, 4*total, 2*total, total)
	}
	plain := "1 " + origin(before, 1) + ", 2 " + origin(before, 3)
	copied := "1 " + origin(before, 1) + "+, 2 " + origin(before, 3) + "+"
	mine := ", 1 " + origin(after, 4)
	for name, tt := range map[string]struct{ text, want string }{
		"the thread itself": {meta(parent, "") + history, plain},
		"a copy":            {meta(child, forked) + meta(parent, "") + history + own, copied + mine},
		"of which only the events are left": {
			meta(child, forked) + meta(parent, "") + turn(before) + user("q") + count(1, 1) + count(2, 3) + own,
			copied + mine,
		},
		"of the last answer": {
			meta(child, forked) + turn(before) + user("q") + said("b") + count(2, 3) + own,
			"2 " + origin(before, 3) + "+" + mine,
		},
		"without times in the ids": {
			meta("s", forked) + turn("t1") + said("a") + count(1, 1), "1 " + origin("t1", 1),
		},
		"without turns": {meta("s", "") + user("q") + said("a") + count(1, 1), "1 " + origin("", 1)},
		"without a sum": {meta("s", "") + turn("t1") + user("q") + said("a") + count(1, 0), "1 "},
	} {
		t.Run(name, func(t *testing.T) {
			if got := origins(collect(t, reader(tt.text))); got != tt.want {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
		})
	}
}

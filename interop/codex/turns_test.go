package codex

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/internal/testutil"
)

func began(id string) string {
	return event(fmt.Sprintf(`{"type":"task_started","turn_id":%q}`, id))
}

func ended(id string) string {
	return event(fmt.Sprintf(`{"type":"task_complete","turn_id":%q}`, id))
}

func back(n int) string { return event(fmt.Sprintf(`{"type":"thread_rolled_back","num_turns":%d}`, n)) }

func developer(text string) string {
	return item(fmt.Sprintf(`{"type":"message","role":"developer","content":[{"type":"input_text","text":%q}]}`, text))
}

// replaced is a compaction with a history of its own; more are fields of the line.
func replaced(summary, more string, kept ...string) string {
	list := fmt.Sprintf(`{"type":"message","role":"user","content":%q}`, "In short: "+summary)
	for _, k := range kept {
		list += fmt.Sprintf(`,{"type":"message","role":"user","content":%q}`, k)
	}
	return wrap("compacted", fmt.Sprintf(`{"message":%q,"replacement_history":[%s]%s}`, summary, list, more))
}

const environment = "<environment_context>x</environment_context>"

// TestTakenBack: the context after a rollback.
func TestTakenBack(t *testing.T) {
	turn := func(id, inner string) string { return began(id) + inner + ended(id) }
	two := user("q1") + said("a1")
	tests := []struct{ name, text, want string }{
		{"with what Codex said before it", turn("t1", user(environment)+two) + turn("t2", user(environment)+developer("<model_switch>b</model_switch>")+user("q2")) + back(1) + user("q3"), "m:" + environment + " u:q1 a:a1 u:q3"},
		{"what the developer says for good stays", turn("t1", two) + turn("t2", developer("be good")+user(environment)+user("q2")) + back(1) + user("q3"), "u:q1 a:a1 m:be good u:q3"},
		{"a mark of an abort", turn("t1", two) + turn("t2", user("<turn_aborted>")+user("q2")) + back(1) + user("q3"), "u:q1 a:a1 u:q3"},
		{"what stands before the first message stays", user(environment) + turn("t1", two) + back(1) + user("q3"), "m:" + environment + " u:q3"},
		{"one of two messages of a turn", turn("t1", two) + turn("t2", user("q2")+said("a2")+user("more")+said("a3")) + back(1) + user("q3"), "u:q1 a:a1 u:q2 a:a2 u:q3"},
		{"a turn that begins in an answer, in older files", user("q1") + said("a") + event(`{"type":"task_started"}`) + said("b") + user("q2") + back(1) + user("q3"), "u:q1 a:a|b u:q3"},
		{"a turn in which a compaction was", turn("t1", two) + turn("t2", user("q2")+replaced("sum", "", "q1", "q2")+said("a2")) + back(1) + user("q3"), "u:q1 a:a1 u:q3"},
		{"a turn before which a compaction was", turn("t1", two) + began("t2") + user(environment) + replaced("sum", "", "q1") + user(environment) + user("q2") + said("a2") + back(1) + user("q3"), "u:q1 a:a1 u:q3"},
		{"a turn behind a compaction", turn("t1", two) + turn("c", replaced("sum", "", "q1")) + turn("t2", user("q2")) + back(1) + user("q3"), "C:sum m:q1 u:q3"},
		{"what Codex said behind a compaction", turn("t1", two) + turn("c", replaced("sum", "")) + turn("t2", user(environment)+user("q2")) + back(1) + user("q3"), "C:sum u:q3"},
		{"a compaction and more", turn("t1", two) + turn("c", replaced("sum", "", "q1")) + turn("t2", user("q2")) + back(2) + user("q3"), "u:q3"},
		{"two compactions", turn("t1", two) + turn("t2", user("q2")+replaced("one", "", "q1", "q2")+said("a2")) + turn("t3", user("q3")+replaced("two", "", "q1")+said("a3")) + back(2) + user("q4"), "u:q1 a:a1 u:q4"},
		{"the second of two compactions", turn("t1", two) + turn("t2", user("q2")+replaced("one", "", "q2")+said("a2")) + turn("t3", user("q3")+replaced("two", "", "q1")+said("a3")) + back(1) + user("q4"), "C:one m:q2 a:a2 u:q4"},
		{"a compaction that Codex holds on to", turn("t1", two) + turn("t2", user("q2")+replaced("sum", `,"window_number":1,"resume_metadata":{}`, "q1", "q2")+said("a2")) + back(1) + user("q3"), "C:sum m:q1 u:q3"},
		{"a compaction in a file that names no turns", two + user("q2") + replaced("sum", "", "q1", "q2") + said("a2") + back(1) + user("q3"), "C:sum m:q1 u:q3"},
		{"all messages of a file that names no turns", two + replaced("sum", "", "q1") + user("q2") + back(9) + user("q3"), "C:sum u:q3"},
		{"a message that came while a compaction's answer was given", turn("t1", two) + turn("t2", user("q2")+replaced("sum", "", "q2")+said("a2")+user("more")) + back(1) + user("q3"), "C:sum m:q2 a:a2 u:q3"},
		{"a compaction without a history", turn("t1", two) + turn("t2", user("q2")+said("a2")+wrap("compacted", `{"message":"sum"}`)+said("a3")) + back(1) + user("q3"), "u:q1 a:a1 u:q3"},
		{"a compaction without a history behind it", turn("t1", two) + turn("t2", user("q2")) + back(1) + turn("t3", user("q3")) + wrap("compacted", `{"message":"sum"}`), "C:sum m:q1 m:q3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := collect(t, reader(meta+tt.text))
			if got := s.Talk(t, ""); got != tt.want {
				t.Errorf("context\n got %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestTakenBackModel: a rollback restores the model before the turn.
func TestTakenBackModel(t *testing.T) {
	context := func(model string) string { return wrap("turn_context", `{"model":"`+model+`"}`) }
	s := collect(t, reader(meta+began("t1")+context("a")+user("q1")+began("t2")+context("b")+user("q2")+back(1)+began("t3")+context("b")+user("q3")))
	var got []string
	for _, e := range s.Path(t, "") {
		if e.Type == "model_change" {
			got = append(got, rawjson.Text(rawjson.Field(e.Raw, "modelId")))
		}
	}
	if strings.Join(got, " ") != "a b" {
		t.Errorf("on the way to the end the model is %v", got)
	}
}

// step is a line of a rollout, as the oracle sees it.
type step struct {
	word       string // what the model sees
	asks, told bool
	turn       string // begins
	history    []step
	back       int
}

// left returns what Codex keeps of a rollout: the newest history of a compaction in a turn that was not rolled back,
// and what follows it, without the messages that were rolled back.
func left(steps []step) (list []step) {
	pending, base, found, asked := 0, -1, -1, false
	end := func() {
		if pending > 0 {
			if asked {
				pending--
			}
		} else if base < 0 {
			base = found
		}
		found, asked = -1, false
	}
	for i, s := range slices.Backward(steps) {
		pending += s.back
		asked = asked || s.asks
		if s.history != nil && found < 0 {
			found = i
		}
		if s.turn != "" {
			end()
		}
	}
	end()
	for i, s := range steps {
		switch {
		case i == base:
			list = slices.Clone(s.history)
		case i < base || s.history != nil:
		case s.back > 0:
			list = list[:cutAt(list, s.back)]
		case s.word != "":
			list = append(list, s)
		}
	}
	return list
}

func asks(list []step) (at []int) {
	for i, s := range list {
		if s.asks {
			at = append(at, i)
		}
	}
	return at
}

func cutAt(list []step, n int) int {
	at := asks(list)
	if len(at) == 0 {
		return len(list)
	}
	cut := at[max(len(at)-n, 0)]
	for cut > at[0] && list[cut-1].told {
		cut--
	}
	return cut
}

// TestTakenBackProperty: whatever is compacted and rolled back, the context is the one that Codex computes from the
// file. Only files without compactions have messages during a turn: a rollback of one before them removes them too.
func TestTakenBackProperty(t *testing.T) {
	testutil.SkipLong(t)
	rapid.Check(t, func(rt *rapid.T) {
		var text strings.Builder
		text.WriteString(meta)
		var steps []step
		n, folds := 0, rapid.Bool().Draw(rt, "compactions")
		put := func(line string, s step) {
			text.WriteString(line)
			steps = append(steps, s)
		}
		tell := func(kinds int) {
			switch n++; rapid.IntRange(0, kinds).Draw(rt, "tell") {
			case 0:
				put(user(environment), step{word: "m:" + environment, told: true})
			case 1:
				put(developer("<model_switch>"), step{word: "m:<model_switch>", told: true})
			case 2:
				put(wrap("world_state", `{}`), step{})
			case 3:
				put(developer("d"), step{word: "m:d"})
			}
		}
		ask := func() {
			n++
			put(user(fmt.Sprint("q", n)), step{word: fmt.Sprint("u:q", n), asks: true})
		}
		fold := func() {
			if !folds || rapid.IntRange(0, 3).Draw(rt, "fold") > 0 {
				return
			}
			n++
			s := fmt.Sprint("s", n)
			history, kept := []step{{word: "C:" + s, asks: true}}, []string{}
			for i := range rapid.IntRange(0, 2).Draw(rt, "kept") {
				kept = append(kept, fmt.Sprint("k", n, i))
				history = append(history, step{word: fmt.Sprint("m:k", n, i), asks: true})
			}
			put(replaced(s, "", kept...), step{history: history})
		}
		for turn := range rapid.IntRange(1, 8).Draw(rt, "turns") {
			id := fmt.Sprint("t", turn)
			put(began(id), step{turn: id})
			tell(6)
			if turn > 0 {
				fold()
			}
			if turn == 0 || rapid.IntRange(0, 5).Draw(rt, "silent") > 0 {
				tell(2) // Codex drops developer messages after a compaction too
				ask()
				for range rapid.IntRange(0, 2).Draw(rt, "rounds") {
					n++
					put(said(fmt.Sprint("a", n))+event(tokens), step{word: fmt.Sprint("a:a", n)})
					if !folds && rapid.Bool().Draw(rt, "more") {
						ask()
					}
				}
				fold()
			}
			put(ended(id), step{})
			// Before the first message Codex leaves more than there was: it is not taken back here.
			by := step{back: rapid.IntRange(0, 4).Draw(rt, "back")}
			if by.back > 0 && len(asks(left(append(slices.Clone(steps), by)))) > 0 {
				put(back(by.back), by)
			}
		}
		var want []string
		for _, s := range left(steps) {
			want = append(want, s.word)
		}
		s := collect(t, reader(text.String()))
		if got := s.Talk(t, ""); got != strings.Join(want, " ") {
			rt.Fatalf("context\n got %s\nwant %s\n%s", got, strings.Join(want, " "), text.String())
		}
	})
}

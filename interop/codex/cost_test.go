package codex

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/internal/testutil"
)

// count returns a count for an answer of n tokens and for a session of total; 0 = no total.
func count(n, total int) string {
	usage := func(n int) string {
		return fmt.Sprintf(`{"input_tokens":%d,"cached_input_tokens":%d,"output_tokens":%d,"reasoning_output_tokens":%d,"total_tokens":%d}`, 10*n, 4*n, 2*n, n, 12*n)
	}
	sum := ""
	if total > 0 {
		sum = `"total_token_usage":` + usage(total) + ","
	}
	return event(`{"type":"token_count","info":{` + sum + `"last_token_usage":` + usage(n) + `}}`)
}

// spentOn returns the output tokens of each answer and of each usage entry, and the sum of all. It fails if the other
// numbers do not match.
func spentOn(t interface{ Fatalf(string, ...any) }, s session) (answers, beside []int, sum int) {
	for _, e := range s.Entries {
		raw := e.Raw
		if e.Type == "message" {
			raw = rawjson.Field(e.Raw, "message")
		}
		val := rawjson.Field(raw, "usage")
		if val == nil {
			continue
		}
		var u struct{ Input, Output, CacheRead, Reasoning, TotalTokens int }
		if err := json.Unmarshal(val, &u); err != nil {
			t.Fatalf("%v: %s", err, val)
		}
		n := u.Output / 2
		if u.Input != 6*n || u.CacheRead != 4*n || u.Reasoning != n || u.TotalTokens != 12*n {
			t.Fatalf("%s", val)
		}
		if sum += n; e.Type == "message" {
			answers = append(answers, n)
		} else {
			beside = append(beside, n)
		}
	}
	return answers, beside, sum
}

// TestCosts: each answer has its count wherever it is in the file, and a count without an answer is not lost.
func TestCosts(t *testing.T) {
	testutil.SkipLong(t)
	thought := item(`{"type":"reasoning","summary":[{"text":"t"}]}`)
	call, out := calls("c"), output("c", "o")
	large := event(`{"type":"task_started","x":"` + strings.Repeat("-", 2<<20) + `"}`)
	tests := []struct{ name, text, answers, beside string }{
		{"behind the answer", user("q") + call + count(1, 1) + out + said("a") + count(2, 3), "[1 2]", "[]"},
		{"behind the outputs", user("q") + call + out + count(1, 1) + said("a") + count(2, 3), "[1 2]", "[]"},
		{"behind the outputs of two calls", user("q") + calls("c1") + calls("c2") + output("c1", "o") + output("c2", "o") + count(1, 1) + thought + said("a") + count(2, 3), "[1 2]", "[]"},
		{"before the items", user("q") + count(1, 1) + thought + call + out + count(2, 3) + said("a"), "[1 2]", "[]"},
		{"before the items, of two turns", user("q") + count(1, 1) + said("a") + user("q") + count(2, 3) + said("a"), "[1 2]", "[]"},
		{"before the items, and a compaction's", user("q") + count(1, 1) + said("a") + count(3, 4) + wrap("compacted", `{"message":"s"}`) + user("q") + count(2, 6) + said("a"), "[1 2]", "[3]"},
		{"said again", user("q") + call + count(1, 1) + out + count(1, 1) + said("a") + count(2, 3) + count(2, 3), "[1 2]", "[]"},
		{"said again before an answer", user("q") + call + count(1, 1) + out + said("a") + count(1, 1) + call + count(2, 3), "[1 2]", "[]"},
		{"of nothing", user("q") + said("a") + count(1, 1) + said("b") + count(0, 1) + said("c") + count(2, 3), "[1 0 2]", "[]"},
		{"without a sum", user("q") + call + count(1, 0) + out + said("a") + count(2, 0), "[1 2]", "[]"},
		{"one is missing", user("q") + call + out + said("a") + count(2, 3), "[0 2]", "[1]"},
		{"a sum that goes down", user("q") + call + count(1, 9) + out + said("a") + count(2, 2), "[1 2]", "[8]"},
		{"a compaction's", user("q") + said("a") + count(1, 1) + count(3, 4) + wrap("compacted", `{"message":"s"}`) + user("q") + said("a") + count(2, 6), "[1 2]", "[3]"},
		{"nobody's, at the end", user("q") + said("a") + count(1, 1) + count(2, 3), "[1]", "[2]"},
		{"nobody's, before what the user says", user("q") + said("a") + count(1, 1) + count(2, 3) + user("q") + said("a") + count(3, 6), "[1 3]", "[2]"},
		{"nobody's, before a turn is taken back", user("q") + said("a") + count(1, 1) + count(2, 3) + back(1) + user("q") + said("a") + count(3, 6), "[1 3]", "[2]"},
		{"too far behind", user("q") + call + out + strings.Repeat(large, 3) + count(1, 1) + said("a") + count(2, 3), "[0 2]", "[1]"},
		{"an answer too large", user("q") + with(said("@"), strings.Repeat("y", 5<<20)) + count(1, 1) + said("a") + count(2, 3), "[1 2]", "[]"},
		{"an answer of too many parts", user("q") + strings.Repeat(with(said("@"), strings.Repeat("y", 100)), 40_000) + count(1, 1) + said("a") + count(2, 3), "[2]", "[1]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := collect(t, reader(meta+tt.text))
			answers, beside, _ := spentOn(t, s)
			if fmt.Sprint(answers) != tt.answers || fmt.Sprint(beside) != tt.beside {
				t.Errorf("%v and %v beside, want %s and %s", answers, beside, tt.answers, tt.beside)
			}
		})
	}
}

// TestCostsWritten: tokens written to the cache are part of the input in the file, and are not counted twice.
func TestCostsWritten(t *testing.T) {
	usage := `{"input_tokens":100,"cached_input_tokens":60,"cache_write_input_tokens":30,"output_tokens":5}`
	sum := `{"info":{"total_token_usage":` + usage + `,"last_token_usage":` + usage + `},"type":"token_count"}`
	s := collect(t, reader(meta+user("q")+said("a")+event(sum)))
	got := string(rawjson.Field(rawjson.Field(s.Entries[2].Raw, "message"), "usage"))
	want := `{"input":10,"output":5,"cacheRead":60,"cacheWrite":30,"totalTokens":105,`
	if !strings.HasPrefix(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestCostsOfBase: a session without its beginning does not count the beginning's tokens.
func TestCostsOfBase(t *testing.T) {
	own := metaOn(9, 1, bytesEnd("x")) + user("q") + said("a") + count(2, 7) + said("b") + count(1, 8)
	if answers, beside, _ := spentOn(t, collect(t, reader(own))); fmt.Sprint(answers, beside) != "[2 1] []" {
		t.Errorf("%v and %v beside", answers, beside)
	}
	base := metaOn(1, 0, "") + user("q") + said("a") + count(5, 5)
	around := folder{file(1): base}
	src := source(metaOn(9, 1, bytesEnd(base)) + user("q") + said("a") + count(2, 7))
	src.List, src.Beside = around.List, around.Open
	r := reader("")
	r.src = src
	if answers, beside, _ := spentOn(t, collect(t, r)); fmt.Sprint(answers, beside) != "[5 2] []" {
		t.Errorf("%v and %v beside", answers, beside)
	}
}

// TestCostsProperty: whatever the places of counts, and whichever are missing or repeated, the sum is the total of the
// last one. If each count is in its place, each answer has its own.
func TestCostsProperty(t *testing.T) {
	testutil.SkipLong(t)
	rapid.Check(t, func(rt *rapid.T) {
		var text strings.Builder
		text.WriteString(meta)
		where := rapid.IntRange(0, 2).Draw(rt, "where")
		odd := rapid.Bool().Draw(rt, "odd")
		total, told := 0, 0
		var want []int
		for turn := range rapid.IntRange(1, 5).Draw(rt, "turns") {
			text.WriteString(user(fmt.Sprint("q", turn)))
			for k := range rapid.IntRange(1, 4).Draw(rt, "answers") {
				n := rapid.IntRange(1, 50).Draw(rt, "n")
				total, want = total+n, append(want, n)
				c := count(n, total)
				if odd {
					switch rapid.IntRange(0, 5).Draw(rt, "count") {
					case 0:
						c = ""
					case 1:
						c += count(n, total)
					case 2:
						c += event(`{"type":"token_count","info":null}`)
					}
				}
				if c != "" {
					told = total
				}
				id := fmt.Sprintf("c%d-%d", turn, k)
				parts := []string{c, said("a") + calls(id), output(id, "o")}
				if where > 0 {
					parts[0], parts[1] = parts[1], parts[0]
				}
				if where > 1 {
					parts[1], parts[2] = parts[2], parts[1]
				}
				text.WriteString(strings.Join(parts, ""))
			}
		}
		answers, _, sum := spentOn(rt, collect(t, reader(text.String())))
		if sum != told || !odd && fmt.Sprint(answers) != fmt.Sprint(want) {
			rt.Fatalf("%v, together %d, want %v, together %d\n%s", answers, sum, want, told, text.String())
		}
	})
}

package importer

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/formats"
)

// stored is all that a user sees of the sessions of a file: the session itself, and those within.
type stored struct {
	Session  shown
	Children []shown
}

// storedOf returns what the store has of a file, which must be one session and those within; of part of a file nothing.
func storedOf(t *testing.T, st *coppice.Store, r Result, part bool) (is stored) {
	t.Helper()
	for sum, err := range st.List(t.Context(), coppice.ListOptions{}) {
		switch {
		case err != nil:
			t.Fatal(err)
		case part && (sum.ID == r.Session || sum.Parent == r.Session):
		case sum.ID == r.Session:
			is.Session = showAs(t, st, sum.ID, row(interop.Format(r.Format)).Profile)
		case sum.Parent == r.Session:
			is.Children = append(is.Children, show(t, st, sum.ID))
		default:
			t.Errorf("a session %s (parent %q) beside %s", sum.ID, sum.Parent, r.Session)
		}
	}
	slices.SortFunc(is.Children, func(a, b shown) int { return strings.Compare(a.Original, b.Original) })
	return is
}

// grown imports a file after each of its states, and returns what the store has then, and how often a state was
// imported from its beginning.
func grown(t *testing.T, f interop.Format, whole []byte, cuts []int) (is stored, anew int) {
	t.Helper()
	st, o, last := storeOn(t, memory.NewAppender()), growing(), ""
	for _, cut := range append(slices.Clone(cuts), len(whole), len(whole)) {
		o.Format = f
		r, err := Import(t.Context(), st, interop.Bytes("f", whole[:cut]), o)
		if err != nil {
			if last != "" || cut == len(whole) {
				t.Fatalf("cut at %d of %v: %v", cut, cuts, err)
			}
			continue // no session yet
		}
		if last != "" && last != r.Session {
			anew++
		}
		last, is = r.Session, storedOf(t, st, r, cut < len(whole))
	}
	return is, anew
}

// eachFile runs a test on the samples of every format, and on generated files of those that are tried most.
func eachFile(t *testing.T, test func(t *testing.T, f interop.Format, whole []byte)) {
	t.Helper()
	testutil.SkipLong(t)
	all := files(t)
	maps.Copy(all, generated(3))
	for name, whole := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := formats.Told(interop.Bytes("f", whole))
			if err != nil {
				t.Fatal(err)
			}
			test(t, f, whole)
		})
	}
}

// TestCutAnywhere cuts files of every format after each line and at any byte, and imports them while they grow in one
// to five steps: in the end the store has what one import of the whole file leaves, in one session.
func TestCutAnywhere(t *testing.T) {
	eachFile(t, func(t *testing.T, f interop.Format, whole []byte) {
		want, _ := grown(t, f, whole, nil)
		try := func(cuts ...int) {
			slices.Sort(cuts)
			got, _ := grown(t, f, whole, cuts)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("cut at %v:\n%s", cuts, diff)
			}
		}
		rng := rand.New(rand.NewPCG(1, uint64(len(whole))))
		ends := lineEnds(whole)
		const lines, bytes = 12, 3
		for _, end := range some(ends, lines) {
			try(end)
		}
		for range bytes {
			cuts := make([]int, 1+rng.IntN(5))
			for i := range cuts {
				if cuts[i] = 1 + rng.IntN(len(whole)-1); rng.IntN(2) == 0 {
					cuts[i] = ends[rng.IntN(len(ends))]
				}
			}
			try(cuts...)
		}
	})
}

// TestSettledLinesStay imports files while they grow line by line, each time what is settled of them: no session is
// ever imported from its beginning, except if a program continues a message that was answered.
func TestSettledLinesStay(t *testing.T) {
	eachFile(t, func(t *testing.T, f interop.Format, whole []byte) {
		var cuts []int
		for _, end := range some(lineEnds(whole), 60) {
			n, err := formats.Stable(f, interop.Bytes("f", whole[:end-1]), 0)
			m, merr := formats.Stable(f, interop.Bytes("f", whole[:end]), 0)
			if err != nil || merr != nil || int(n) >= end || n > m {
				t.Fatalf("settled %d, %v, then %d, %v of %d", n, err, m, merr, end)
			}
			if m > 0 && (len(cuts) == 0 || cuts[len(cuts)-1] != int(m)) {
				cuts = append(cuts, int(m))
			}
		}
		want, _ := grown(t, f, whole, nil)
		got, anew := grown(t, f, whole, cuts)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
		// A file's first entry counts the lines of its sidechains, and pi's harness writes the order of its
		// lanes at the end of a transaction.
		moves := strings.Contains(string(whole), `"isSidechain":true`) || strings.HasSuffix(t.Name(), "_of_pi")
		if !moves && anew*4 > len(cuts) {
			t.Errorf("%d of %d states were imported anew", anew, len(cuts))
		}
	})
}

// lineEnds returns where the lines of a file end.
func lineEnds(p []byte) (ends []int) {
	for at := 0; ; {
		i := bytes.IndexByte(p[at:], '\n')
		if i < 0 {
			return ends
		}
		at += i + 1
		ends = append(ends, at)
	}
}

// some returns at most n of a list, evenly spread.
func some(list []int, n int) (of []int) {
	for i := range min(n, len(list)) {
		of = append(of, list[i*len(list)/min(n, len(list))])
	}
	return of
}

// generated returns n sessions of each of the formats that are tried most.
func generated(n int) map[string][]byte {
	all := map[string][]byte{}
	for i := range n {
		rng := rand.New(rand.NewPCG(7, uint64(i)))
		all[fmt.Sprintf("generated pi %d", i)] = generatedPi(rng, "")
		all[fmt.Sprintf("generated omp %d", i)] = generatedPi(rng,
			`{"type":"title","v":1,"title":"tides","source":"auto","updatedAt":"2026-01-01T00:00:00.000Z","pad":"   "}`)
		all[fmt.Sprintf("generated claude %d", i)] = generatedClaude(rng)
		all[fmt.Sprintf("generated codex %d", i)] = generatedCodex(rng)
	}
	return all
}

// script writes lines with a running clock.
type script struct {
	out bytes.Buffer
	n   int
}

// line writes a line; %T is replaced by the time of the line.
func (s *script) line(format string, args ...any) {
	s.n++
	stamp := fmt.Sprintf("2026-01-01T00:%02d:%02d.000Z", s.n/60%60, s.n%60)
	s.out.WriteString(strings.ReplaceAll(fmt.Sprintf(format, args...), "%T", stamp) + "\n")
}

func generatedPi(rng *rand.Rand, title string) []byte {
	var s script
	if title != "" {
		s.line("%s", title)
	}
	s.line(`{"type":"session","version":3,"id":"019b0000-0000-7000-8000-%012d","timestamp":"%%T","cwd":"/w"}`, rng.IntN(1e9))
	ids := []string{}
	for i := range 3 + rng.IntN(20) {
		parent, id := "null", fmt.Sprintf("%08x", i+1)
		if len(ids) > 0 {
			parent = `"` + ids[len(ids)-1] + `"`
			if rng.IntN(6) == 0 {
				parent = `"` + ids[rng.IntN(len(ids))] + `"`
			}
		}
		ids = append(ids, id)
		head := fmt.Sprintf(`"id":%q,"parentId":%s,"timestamp":"%%T"`, id, parent)
		switch rng.IntN(6) {
		case 0:
			s.line(`{"type":"message",%s,"message":{"role":"user","content":"do %d: ü","timestamp":1}}`, head, i)
		case 1:
			s.line(`{"type":"session_info",%s,"name":"name %d"}`, head, i)
		case 2:
			s.line(`{"type":"model_change",%s,"provider":"p","modelId":"m%d"}`, head, i)
		case 3:
			s.line(`{"type":"compaction",%s,"summary":"so far %d","firstKeptEntryId":%q,"tokensBefore":9}`, head, i, ids[0])
		default:
			s.line(`{"type":"message",%s,"message":{"role":"assistant","content":[{"type":"text","text":"did %d"}],`+
				`"api":"a","provider":"p","model":"m","usage":{"input":1,"output":2},"stopReason":"stop","timestamp":2}}`,
				head, i)
		}
	}
	return s.out.Bytes()
}

// generatedClaude has messages in several lines, calls side by side, results between the lines of a message,
// sidechains, titles, attachments and a compaction.
func generatedClaude(rng *rand.Rand) []byte {
	var s script
	session, last, calls := fmt.Sprintf("33330000-0000-4000-8000-%012d", rng.IntN(1e9)), "null", 0
	id := 0
	put := func(side bool, rest string, args ...any) {
		id++
		uuid := fmt.Sprintf("44440000-0000-4000-8000-%012d", id)
		s.line(`{"parentUuid":%s,"isSidechain":%v,"userType":"external","cwd":"/w","sessionId":%q,"version":"2.1.0",`+
			`"uuid":%q,"timestamp":"%%T",%s}`, last, side, session, uuid, fmt.Sprintf(rest, args...))
		last = `"` + uuid + `"`
	}
	assistant := func(side bool, message, stop int, content string, args ...any) {
		reason := []string{"null", `"tool_use"`, `"end_turn"`}[stop]
		put(side, `"type":"assistant","message":{"id":"msg_%d","type":"message","role":"assistant","model":"m1","content":[%s],`+
			`"stop_reason":%s,"usage":{"input_tokens":3,"output_tokens":%d}}`, message, fmt.Sprintf(content, args...),
			reason, s.n)
	}
	result := func(side bool, call int) {
		put(side, `"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d",`+
			`"content":"out %d"}]},"toolUseResult":{"stdout":"x"}`, call, call)
	}
	turn := func(side bool, message int) {
		put(side, `"type":"user","message":{"role":"user","content":"do %d"}`, message)
		if rng.IntN(2) == 0 {
			assistant(side, message, 0, `{"type":"thinking","thinking":"hm %d","signature":"s"}`, message)
		}
		n, late := rng.IntN(4), rng.IntN(2) == 0
		for i := range n {
			calls++
			assistant(side, message, min(1, rng.IntN(3)), `{"type":"tool_use","id":"toolu_%d","name":"Bash","input":{"command":"ls %d"}}`,
				calls, calls)
			if late {
				result(side, calls)
			} else if i == n-1 {
				for k := range n {
					result(side, calls-n+1+k)
				}
			}
		}
		assistant(side, message+1, 2*rng.IntN(2), `{"type":"text","text":"done %d"}`, message)
	}
	if rng.IntN(2) == 0 {
		s.line(`{"type":"summary","summary":"another one","leafUuid":"nowhere"}`)
	}
	turn(false, 5000)
	for i := range 2 + rng.IntN(4) {
		switch rng.IntN(6) {
		case 0:
			s.line(`{"type":"ai-title","aiTitle":"title %d","sessionId":%q}`, i, session)
		case 1:
			s.line(`{"type":"file-history-snapshot","messageId":"x%d","snapshot":{},"isSnapshotUpdate":false}`, i)
		case 2:
			before := last
			last = "null"
			turn(true, 1000+10*i)
			last = before
		case 3:
			put(false, `"type":"system","subtype":"compact_boundary","content":"Compacted","compactMetadata":{"trigger":"auto","preTokens":5}`)
			put(false, `"type":"user","isCompactSummary":true,"message":{"role":"user","content":"so far %d"}`, i)
		case 4:
			s.line(`{"type":"summary","summary":"sum %d","leafUuid":%s}`, i, last)
		}
		turn(false, 10*i)
	}
	return s.out.Bytes()
}

// generatedCodex has events before and after their items, events that no item repeats, counts early and late, rollbacks
// and a compaction.
func generatedCodex(rng *rand.Rand) []byte {
	var s script
	line := func(kind, payload string, args ...any) {
		s.line(`{"timestamp":"%%T","type":%q,"payload":%s}`, kind, fmt.Sprintf(payload, args...))
	}
	line("session_meta", `{"id":"019c0000-0000-7000-8000-%012d","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w",`+
		`"originator":"codex_cli_rs","cli_version":"0.1","source":"cli"}`, rng.IntN(1e9))
	total := 0
	for i := range 2 + rng.IntN(4) {
		if rng.IntN(2) == 0 {
			line("event_msg", `{"type":"task_started","turn_id":"t%d"}`, i)
		}
		line("turn_context", `{"cwd":"/w","model":"gpt-%d","effort":"high"}`, i%2)
		said := fmt.Sprintf("do %d", i)
		item := func() {
			line("response_item", `{"type":"message","role":"user","content":[{"type":"input_text","text":%q}]}`, said)
		}
		event := func() { line("event_msg", `{"type":"user_message","message":%q}`, said) }
		if rng.IntN(2) == 0 {
			item()
			event()
		} else {
			event()
			item()
		}
		for k := range rng.IntN(4) {
			if rng.IntN(3) == 0 {
				line("event_msg", `{"type":"agent_reasoning","text":"alone %d %d"}`, i, k)
			}
			line("response_item", `{"type":"reasoning","summary":[{"type":"summary_text","text":"think %d %d"}],"encrypted_content":"e"}`, i, k)
			if rng.IntN(2) == 0 {
				line("event_msg", `{"type":"agent_message","message":"say %d %d"}`, i, k)
				line("response_item", `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"say %d %d"}]}`, i, k)
			}
			line("response_item", `{"type":"function_call","name":"shell","arguments":"{}","call_id":"c%d-%d"}`, i, k)
			count := func() {
				total += 10
				line("event_msg", `{"type":"token_count","info":{"total_token_usage":{"input_tokens":%d,"output_tokens":%d},`+
					`"last_token_usage":{"input_tokens":10,"output_tokens":10}}}`, total, total)
			}
			early := rng.IntN(2) == 0
			if early {
				count()
			}
			line("response_item", `{"type":"function_call_output","call_id":"c%d-%d","output":"out %d"}`, i, k, k)
			if !early && rng.IntN(3) > 0 {
				count()
			}
		}
		line("response_item", `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done %d"}]}`, i)
		switch rng.IntN(5) {
		case 0:
			line("event_msg", `{"type":"agent_message","message":"done %d"}`, i)
		case 1:
			line("event_msg", `{"type":"thread_rolled_back","num_turns":1}`)
		case 2:
			line("compacted", `{"message":"so far","replacement_history":[{"type":"message","role":"user",`+
				`"content":[{"type":"input_text","text":"kept %d"}]}]}`, i)
		case 3:
			line("event_msg", `{"type":"agent_message","message":"never an item %d"}`, i)
			line("event_msg", `{"type":"task_complete","turn_id":"t%d","last_agent_message":"done"}`, i)
		}
	}
	return s.out.Bytes()
}

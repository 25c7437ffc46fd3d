package codex

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/interop"
)

// kindsOf returns the kinds of the lines after an original.
func kindsOf(t testing.TB, added string) string {
	t.Helper()
	var out []string
	for l := range strings.Lines(added) {
		v, err := validLine(l)
		if err != nil {
			t.Fatalf("%v: %s", err, l)
		}
		kind := v.kind[strings.LastIndexByte(v.kind, '/')+1:]
		if n, ok := v.payload["num_turns"]; ok {
			kind += fmt.Sprint("-", n)
		}
		out = append(out, kind)
	}
	return strings.Join(out, " ")
}

var metaOf = strings.Replace(meta, `"s1"`, `"01941f29-7c00-7000-8000-000000000001"`, 1)

var threeTurns = metaOf + user("one") + said("1") + user("two") + calls("c1") + output("c1", "r") + said("2") + user("three") + said("3")

// at returns the ID of the entry that contains a text.
func (s *talk) at(t testing.TB, text string) string {
	t.Helper()
	for _, raw := range s.lines {
		if strings.Contains(raw, text) {
			return idOf(t, raw)
		}
	}
	t.Fatalf("nobody says %s", text)
	return ""
}

// TestContinue: only the entries added on the path of the head follow the original, after an event that rolls back the
// turns that are not on the path.
func TestContinue(t *testing.T) {
	const turn = "task_started message user_message turn_context message agent_message token_count task_complete"
	for name, c := range map[string]struct {
		original, at string // text of the entry on which a turn is added, "" = a new root
		add          bool
		want         string
		lost         interop.Losses
	}{
		"at the end":           {threeTurns, `"text":"3"`, true, turn, nil},
		"nothing added":        {threeTurns, `"text":"3"`, false, "", nil},
		"before the last turn": {threeTurns, `"text":"2"`, true, "thread_rolled_back-1 " + turn, nil},
		"before two":           {threeTurns, `"text":"1"`, true, "thread_rolled_back-2 " + turn, nil},
		"only back":            {threeTurns, `"text":"1"`, false, "thread_rolled_back-2", nil},
		"a new root":           {threeTurns, "", true, "thread_rolled_back-3 " + turn, nil},
		"a command first":      {metaOf + user("<user_shell_command>ls</user_shell_command>") + user("one") + said("1") + user("<user_shell_command>pwd</user_shell_command>") + user("two"), "pwd", true, "thread_rolled_back-2 message user_message message agent_message message " + turn, interop.Losses{lostTurn: 1}},
		"inside of a turn":     {threeTurns, `"role":"toolResult"`, true, "thread_rolled_back-2 message user_message function_call function_call_output " + turn, interop.Losses{lostTurn: 1}},
		"before a result":      {threeTurns, `"type":"toolCall"`, true, "thread_rolled_back-2 message user_message function_call function_call_output " + turn, interop.Losses{lostTurn: 1, lostAborted: 1}},
		"before a compaction":  {threeTurns + wrap("compacted", `{"message":"SUM"}`) + user("four"), `"text":"2"`, true, "compacted " + turn, interop.Losses{lostAgain: 1}},
		"behind a compaction":  {metaOf + user("one") + wrap("compacted", `{"message":"SUM","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"SUM"}]}]}`) + user("two") + user("three"), `"text":"two"`, true, "thread_rolled_back-1 " + turn, nil},
		"an empty one":         {metaOf + user("one") + wrap("compacted", `{"message":"SUM"}`), "", true, "compacted " + turn, interop.Losses{lostAgain: 1}},
		"on a line that Codex left": {
			metaOf + user("one") + said("1") + user("two") + said("2") + event(`{"type":"thread_rolled_back","num_turns":1}`) + user("three"), `"text":"2"`, true,
			"thread_rolled_back-1 message user_message message agent_message " + turn, nil,
		},
	} {
		s, tip := taken(t, c.original)
		known, head := len(s.lines), ""
		if c.at != "" {
			head = s.at(t, c.at)
		}
		if (c.at == `"text":"3"`) != (head == tip) && c.original == threeTurns {
			t.Fatalf("%s: %s is not the tip", name, head)
		}
		if c.add {
			s.message("n1", head, ask("more"))
			s.message("n2", "n1", replied(text("yes")))
			s.message("n3", head, ask("elsewhere"))
			head = "n2"
			c.lost = withLost(c.lost, lostBranch)
		}
		file, losses := s.goOn(t, c.original, known, head)
		added, ok := strings.CutPrefix(file, c.original)
		if got := kindsOf(t, added); !ok || got != c.want {
			t.Errorf("%s: %s, want %s\n%s", name, got, c.want, added)
		}
		if diff := cmp.Diff(withLost(c.lost), losses); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		lines := valid(t, file)
		paired(t, rebuilt(lines))
		if diff := cmp.Diff(but(s.words(t, head), "r:aborted"), but(heard(t, rebuilt(lines)), "r:aborted")); diff != "" {
			t.Errorf("%s: Codex's context (-ours +its):\n%s%s", name, diff, added)
		}
	}
}

func withLost(l interop.Losses, more ...string) interop.Losses {
	out := interop.Losses{}
	maps.Copy(out, l)
	for _, k := range more {
		out[k]++
	}
	return out
}

// TestContinueEnds: whatever the end of the original, the lines after it are readable, and there are none if no entry
// was added.
func TestContinueEnds(t *testing.T) {
	whole := strings.TrimSuffix(threeTurns, "\n")
	for name, original := range map[string]string{
		"whole": threeTurns, "no newline": whole, "torn": threeTurns + `{"timestamp":"2026-01-01T00`, "packed": string(pack(t, []byte(threeTurns))),
		"packed, no newline": string(pack(t, []byte(whole))), "in two frames": string(pack(t, []byte(metaOf))) + string(pack(t, []byte(strings.TrimPrefix(threeTurns, metaOf)))),
	} {
		r := reader(original)
		back := collect(t, r)
		s, known := talk{Header: back.Header}, len(back.Entries)
		for _, e := range back.Entries {
			s.lines = append(s.lines, string(e.Raw))
		}
		tip := back.Entries[known-1].ID
		if file, losses := s.goOn(t, original, known, tip); file != original || len(losses) > 0 {
			t.Errorf("%s: nothing was added, and the file is another: %v", name, losses)
		}
		s.message("n1", tip, ask("more"))
		file, _ := s.goOn(t, original, known, "n1")
		if !strings.HasPrefix(file, original) {
			t.Errorf("%s: the original's bytes are others", name)
		}
		again := reader(file)
		got := collect(t, again)
		if want := back.Talk(t, "") + " u:more"; got.Talk(t, "") != want {
			t.Errorf("%s: %s, want %s", name, got.Talk(t, ""), want)
		}
		if again.BadLines() != r.BadLines() {
			t.Errorf("%s: %v", name, again.Diagnostics())
		}
	}
}

// TestContinueDamaged: after a frame whose decompression fails nothing is written, and the losses count it.
func TestContinueDamaged(t *testing.T) {
	s, tip := taken(t, threeTurns)
	known := len(s.lines)
	packed := string(pack(t, []byte(threeTurns)))
	packed = packed[:len(packed)-3]
	if file, losses := s.goOn(t, packed, known, tip); file != packed || len(losses) > 0 {
		t.Errorf("%d bytes of %d, %v", len(file), len(packed), losses)
	}
	s.message("n1", tip, ask("more"))
	if file, losses := s.goOn(t, packed, known, "n1"); file != packed || losses[lostAdded] != 1 {
		t.Errorf("%d bytes of %d, %v", len(file), len(packed), losses)
	}
	if _, err := Continue(io.Discard, io.MultiReader(strings.NewReader(metaOf), errReader{}), s.Header, known, s.all(), tip); !errors.Is(err, errBroken) {
		t.Error(err)
	}
	if _, err := Continue(broken{}, strings.NewReader(metaOf), s.Header, known, s.all(), tip); !errors.Is(err, errBroken) {
		t.Error(err)
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errBroken }

// TestContinueOrdinals: lines continue the ordinals of the original, from the last complete line; a fork without a copy
// of its history continues its own.
func TestContinueOrdinals(t *testing.T) {
	parent := ordinals(0, metaOn(1, 0, "")+user("one")+said("1"))
	child := ordinals(3, metaOn(2, 1, `,"end_ordinal_exclusive":3`)+user("two")+said("2"))
	around := folder{file(1): parent}
	for _, torn := range []string{"", `{"ordinal":6,"timestamp":"2026-01-01T00:00`} {
		src := source(child + torn)
		src.List, src.Beside = around.List, around.Open
		r := NewReader(src, interop.Options{Now: now})
		back := collect(t, r)
		s, known := talk{Header: back.Header}, len(back.Entries)
		for _, e := range back.Entries {
			s.lines = append(s.lines, string(e.Raw))
		}
		s.message("n1", s.at(t, `"text":"1"`), ask("more"))
		out, _ := s.goOn(t, child+torn, known, "n1")
		next := 6.0
		for l := range strings.Lines(strings.TrimLeft(strings.TrimPrefix(out, child+torn), "\n")) {
			v, err := validLine(l)
			if err != nil || v.ordinal != next {
				t.Errorf("%v, ordinal %v, want %v: %s", err, v.ordinal, next, l)
			}
			next++
		}
		if next != 10 || !strings.Contains(out, `"num_turns":1`) {
			t.Errorf("%v\n%s", next, out)
		}
	}
}

// TestContinueKinds: the output of a call in the original is of the call's kind, whatever its arguments look like.
func TestContinueKinds(t *testing.T) {
	custom := item(`{"type":"custom_tool_call","name":"apply_patch","input":"p","call_id":"k1"}`)
	plain := item(`{"type":"function_call","name":"apply_patch","arguments":"{\"input\":\"p\"}","call_id":"k2"}`)
	shell := item(`{"type":"local_shell_call","call_id":"k3","status":"completed","action":{"type":"exec","command":["ls"]}}`)
	s, tip := taken(t, metaOf+user("one")+custom+plain+shell)
	known := len(s.lines)
	s.message("r1", tip, gave("k1", "1"))
	s.message("r2", "r1", gave("k2", "2"))
	s.message("r3", "r2", gave("k3", "3"))
	file, losses := s.goOn(t, metaOf+user("one")+custom+plain+shell, known, "r3")
	paired(t, rebuilt(valid(t, file)))
	_, added, _ := strings.Cut(file, shell)
	if want := "custom_tool_call_output function_call_output function_call_output"; kindsOf(t, added) != want || len(losses) > 0 {
		t.Errorf("%v\n%s", losses, file)
	}
}

// TestWriteHosted: calls that the provider answered itself are items again, and an image is part of its call.
func TestWriteHosted(t *testing.T) {
	search := `{"type":"web_search_call","status":"completed","action":{"type":"search","query":"q"}}`
	drawn := `{"type":"image_generation_call","id":"ig","status":"completed","result":"iVBORw0KGgo="}`
	s, tip := taken(t, metaOf+user("one")+item(search)+item(drawn)+said("1"))
	file, losses := s.write(t, tip)
	valid(t, file)
	if strings.Count(file, search) != 1 || strings.Count(file, drawn) != 1 || len(losses) > 0 {
		t.Errorf("%v\n%s", losses, file)
	}
}

// TestContinueFixtures: every file of the reader's comes back byte for byte, compressed or not, and with an appended
// turn.
func TestContinueFixtures(t *testing.T) {
	for _, name := range []string{"turns", "compacted", "rollback", "bare", "agent", "older", "taken_back"} {
		data, err := os.ReadFile("testdata/" + name + ".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		for _, original := range []string{string(data), string(pack(t, data))} {
			s, tip := taken(t, string(data))
			known := len(s.lines)
			if file, _ := s.goOn(t, original, known, tip); file != original {
				t.Errorf("%s: other bytes", name)
			}
			s.message("n1", tip, ask("more"))
			file, _ := s.goOn(t, original, known, "n1")
			z, err := openRollout(source(file))
			if err != nil {
				t.Fatal(err)
			}
			plain, err := io.ReadAll(z)
			if err = errors.Join(err, z.Close()); err != nil || !bytes.HasPrefix(plain, data) {
				t.Fatal(name, err)
			}
			back, end := taken(t, string(plain))
			want := append(slices.Clone(s.words(t, tip)), "s:more")
			if diff := cmp.Diff(want, back.words(t, end)); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	}
}

// TestContinueCountsOnce: entries that are written again are counted once.
func TestContinueCountsOnce(t *testing.T) {
	original := metaOf + user("one") + calls("c1") + count(10, 10) + output("c1", "r") + said("1") + count(20, 30)
	s, _ := taken(t, original)
	file, losses := s.goOn(t, original, len(s.lines), s.at(t, `"r"`))
	if losses[lostTurn] != 1 && losses[lostAgain] != 1 {
		t.Fatalf("nothing is said again: %v", losses)
	}
	_, _, before := spentOn(t, collect(t, reader(original)))
	if _, _, after := spentOn(t, collect(t, reader(file))); after != before {
		t.Errorf("%d tokens, there were %d:\n%s", after, before, file[len(original):])
	}
}

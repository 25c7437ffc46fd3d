package transcript

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/internal/fold"
)

// grown makes a tree of lines, each on the one before it, and returns the entries too.
func grown(t *testing.T, lines ...string) (*Tree, []Entry) {
	t.Helper()
	b := NewTreeBuilder()
	var all []Entry
	for i, raw := range lines {
		l, err := ParseLine([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		b.AddRow(RowOf(l, int64(i)-1))
		all = append(all, l.Entry(uint64(i)))
	}
	return b.Tree("", nil, nil), all
}

// whole yields entries as a session does, then the error; read counts them.
func whole(all []Entry, end error, read *int) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for _, e := range all {
			if *read++; !yield(e, nil) {
				return
			}
		}
		if end != nil {
			yield(Entry{}, end)
		}
	}
}

func found(t *testing.T, seq iter.Seq2[Node, error]) string {
	t.Helper()
	var out []Node
	for n, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, n)
	}
	return ids(out)
}

// What lies behind the 80 bytes of a preview is found, in every kind of entry, and what is not shown is not.
func TestSearchIn(t *testing.T) {
	long, cjk := strings.Repeat("x", 89), strings.Repeat("語", 40)
	tree, all := grown(t,
		`{"type":"message","id":"u1","message":{"role":"user","content":"`+long+` needle"}}`,
		`{"type":"message","id":"u2","message":{"role":"user","content":[{"type":"text","text":"first"},{"type":"text","text":"`+cjk+`針"}]}}`,
		`{"type":"message","id":"a1","message":{"role":"assistant","content":[{"type":"thinking","thinking":"secret"},{"type":"text","text":"I look."},
			{"type":"toolCall","id":"c1","name":"grep","arguments":{"depth":3,"deep":["haystack",{"in":"bar\u006e"}]}}]}}`,
		`{"type":"message","id":"r1","message":{"role":"toolResult","toolCallId":"c1","toolName":"grep","content":[{"type":"text","text":"one\ntwo\nthird line"}]}}`,
		`{"type":"message","id":"o1","message":{"role":"assistant","content":null,"tool_calls":[{"id":"c2","type":"function","function":{"name":"ls","arguments":"{\"path\":\"attic\"}"}}]}}`,
		`{"type":"message","id":"b1","message":{"role":"bashExecution","command":"make","output":"`+long+` Broke"}}`,
		`{"type":"compaction","id":"k1","summary":"`+long+` summed","firstKeptEntryId":"u1","details":{"not":"inside"}}`,
		`{"type":"custom_message","id":"n1","customType":"kind","content":[{"type":"text","text":"`+long+` noted"}]}`,
		`{"type":"model_change","id":"m1","provider":"openai","modelId":"gpt-4o"}`,
		`{"type":"label","id":"l1","targetId":"u1","label":"kept"}`,
	)
	for text, want := range map[string]string{
		"needle": "u1", "NEEDLE kept": "u1", "針": "u2", "first 針": "u2", "haystack": "a1", "barn": "a1", "deep": "",
		"secret": "", "third": "r1", "attic": "o1", "broke make": "b1", "summed": "k1", "inside": "", "noted": "n1", "gpt-4o": "m1",
		"user": "u1 u2", "user 針": "u2", "tool": "r1", "toolresult third": "r1", "bash": "b1", "model gpt": "m1", "compaction": "k1", "custom_message": "n1",
		"use": "", "assist": "", "message": "n1", "label": "l1", "": "u1 u2 a1 r1 o1 b1 k1 n1 m1 l1", "needle 針": "",
	} {
		read := 0
		if got := found(t, tree.SearchIn(text, whole(all, nil, &read))); got != want {
			t.Errorf("%q: found %q, want %q", text, got, want)
		}
		if read != len(all) {
			t.Errorf("%q: %d entries were read", text, read)
		}
	}
	read := 0
	if got := found(t, tree.SearchIn("first", whole(all[:1], nil, &read))); got != "u2" {
		t.Errorf("an entry that was left out: %q, not by its preview", got)
	}
	if got := ids(slices.Collect(tree.Search("user"))) + "|" + ids(slices.Collect(tree.Search("needle"))); got != "u1 u2|" {
		t.Errorf("without texts: %s", got)
	}
}

// The Unicode normal form, accents and width do not count: in previews, in labels and in what follows a preview.
func TestSearchInAllForms(t *testing.T) {
	long := strings.Repeat("x", 89)
	tree, all := grown(t,
		`{"type":"message","id":"u1","message":{"role":"user","content":
			"Cafe\u0301 \u1112\u1161\u11a8\u110c\u1165\u11b7"}}`,
		`{"type":"message","id":"u2","message":{"role":"user","content":
			"`+long+` \uff26\uff35\uff2c\uff2c Stra\u00dfe \u304b\u3099"}}`,
		`{"type":"label","id":"l1","targetId":"u2","label":"E\u0301t\u00e9"}`,
	)
	for text, want := range map[string]string{
		"caf\u00e9": "u1", "CAFE": "u1", "\ud559\uc810": "u1", "full STRASSE": "u2", "\u304c": "u2", "\u304b": "",
		"\u00e9te\u0301": "u2 l1",
	} {
		read := 0
		if got := found(t, tree.SearchIn(text, whole(all, nil, &read))); got != want {
			t.Errorf("%q: found %q, want %q", text, got, want)
		}
	}
}

// An error comes alone, and entries that the tree does not have are passed by.
func TestSearchInAllOrNothing(t *testing.T) {
	tree, all := grown(t, `{"type":"message","id":"u1","message":{"role":"user","content":"needle"}}`)
	late := all[0]
	late.Ordinal = 1 << 33
	read, gone := 0, errors.New("gone")
	if got := found(t, tree.SearchIn("needle", whole(append(all, late), nil, &read))); got != "u1" {
		t.Errorf("found %q", got)
	}
	var got []string
	for n, err := range tree.SearchIn("needle", whole(all, gone, &read)) {
		got = append(got, fmt.Sprint(n.ID, err))
	}
	if strings.Join(got, " ") != "gone" {
		t.Errorf("of texts that end with an error: %q", got)
	}
	for range tree.SearchIn("needle", whole(all, nil, &read)) {
		break
	}
}

// The look at the bytes of a line excludes none that shows the word.
func TestMayShow(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		alphabet := []rune(`abAB:"\é z1`)
		text := string(rapid.SliceOfN(rapid.SampledFrom(alphabet), 0, 12).Draw(rt, "text"))
		word := string(rapid.SliceOfN(rapid.SampledFrom(alphabet), 1, 3).Draw(rt, "word"))
		shows := strings.Contains(fold.Text(text), strings.TrimSpace(fold.Text(word)))
		line := []byte(strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), `"`, `\"`))
		if shows && !strings.Contains(strings.TrimSpace(word), " ") && !MayShow(word)(line) {
			rt.Errorf("%q is excluded, which shows %q", line, word)
		}
	})
	for line, want := range map[string]bool{
		`{"text":"High Water"}`: true, `{"text":"high wate"}`: false, `{"text":"h\u0069gh"}`: true, `WATER`: true,
	} {
		if got := MayShow("water")([]byte(line)); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}

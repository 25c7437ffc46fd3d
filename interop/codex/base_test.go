package codex

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/readtest"
)

// folder is what lies around a session's file, by path relative to its folder.
type folder = readtest.Files[string]

// thread returns an ID of version 7 that began on January 1, 2026, at 19:19 UTC.
func thread(n int) string { return fmt.Sprintf("019b7b00-0000-7000-8000-%012d", n) }

func file(n int) string { return "rollout-2026-01-02T03-04-05-" + thread(n) + ".jsonl" }

// metaOn returns the first line of thread n, which continues from a place in thread on.
func metaOn(n, on int, end string) string {
	base := ""
	if on > 0 {
		base = fmt.Sprintf(`,"history_mode":"paginated","history_base":{"thread_id":%q%s}`, thread(on), end)
	}
	return fmt.Sprintf(`{"timestamp":"2026-01-02T00:00:00.000Z","type":"session_meta","payload":{"id":%q,"cwd":"/w"%s}}`+"\n", thread(n), base)
}

func bytesEnd(text string) string { return fmt.Sprintf(`,"end_byte_offset":%d`, len(text)) }

func ordinals(from int, text string) string {
	var b strings.Builder
	for l := range strings.Lines(text) {
		fmt.Fprintf(&b, `{"ordinal":%d,%s`, from, l[1:])
		from++
	}
	return b.String()
}

// TestBase: the entries of the base come first, up to the place named, in whichever folder its file is.
func TestBase(t *testing.T) {
	own := func(on int, end string) string { return metaOn(9, on, end) + user("q9") + said("a9") }
	one := metaOn(1, 0, "") + user("q1") + said("a1")
	rest := user("not the fork's") + said("nor this")
	two := metaOn(2, 1, bytesEnd(one)) + user("q2") + said("a2")
	const nowhere, goesOn = "its beginning stands in the file of thread %q, which is not read", "u:q9 a:a9"
	day := "../../../2026/01/02/"
	long := folder{}
	for n, end := 40, ""; n >= 10; n-- {
		text := metaOn(n, n+1, end) + user(fmt.Sprint("q", n))
		long[file(n)], end = text, bytesEnd(text)
	}
	turn := metaOn(1, 2, `,"end_byte_offset":1`) + user("q1") + said("a1")
	onTurn := metaOn(2, 1, bytesEnd(turn)) + user("q2")
	tests := []struct {
		name, text string
		around     folder
		want       string
		said       []string
	}{
		{"in the same folder", own(1, bytesEnd(one)), folder{file(1): one + rest}, "u:q1 a:a1 u:q9 a:a9", nil},
		{"all of it", own(1, bytesEnd(one)), folder{file(1): one}, "u:q1 a:a1 u:q9 a:a9", nil},
		{"nothing of it", own(1, `,"end_byte_offset":0`), folder{file(1): one}, goesOn, nil},
		{"in the folder of another day", own(1, bytesEnd(one)), folder{day + file(1): one + rest, day + file(2): rest}, "u:q1 a:a1 u:q9 a:a9", nil},
		{"archived", own(1, bytesEnd(one)), folder{"../../../../archived_sessions/" + file(1): one + rest}, "u:q1 a:a1 u:q9 a:a9", nil},
		{"from among the archived ones", own(1, bytesEnd(one)), folder{"../sessions/2026/01/02/" + file(1): one + rest}, "u:q1 a:a1 u:q9 a:a9", nil},
		{"compressed", own(1, bytesEnd(one)), folder{file(1) + ".zst": string(pack(t, []byte(one+rest)))}, "u:q1 a:a1 u:q9 a:a9", nil},
		{"a base of a base", own(2, bytesEnd(two)), folder{file(1): one + rest, file(2): two + rest}, "u:q1 a:a1 u:q2 a:a2 u:q9 a:a9", nil},
		{"by ordinal", own(1, `,"end_ordinal_exclusive":3`), folder{file(1): ordinals(0, one+rest)}, "u:q1 a:a1 u:q9 a:a9", nil},
		{"by ordinal, in lines that have none", own(1, `,"end_ordinal_exclusive":3`), folder{file(1): one + rest}, "u:q1 a:a1 u:q9 a:a9", nil},
		{
			"by ordinal, that a base begins with", own(2, `,"end_ordinal_exclusive":6`),
			folder{file(1): one + rest, file(2): metaOn(2, 1, `,"end_ordinal_exclusive":3`) + user("q2") + said("a2") + rest},
			"u:q1 a:a1 u:q2 a:a2 u:q9 a:a9", nil,
		},
		{"whichever comes first", own(1, `,"end_ordinal_exclusive":2,"end_byte_offset":100000`), folder{file(1): ordinals(0, one+rest)}, "u:q1 u:q9 a:a9", nil},
		{
			"in the middle of a line", own(1, fmt.Sprintf(`,"end_byte_offset":%d`, len(one)-10)),
			folder{file(1): one + rest},
			"u:q1 u:q9 a:a9",
			[]string{file(1) + ": unexpected end"},
		},
		{
			"shorter than it was", own(1, bytesEnd(one+rest)),
			folder{file(1): one},
			"u:q1 a:a1 u:q9 a:a9",
			[]string{file(1) + ": it ends " + fmt.Sprint(len(rest)) + " bytes before the place where the session goes on"},
		},
		{"nowhere", own(1, bytesEnd(one)), folder{file(2): two}, goesOn, []string{fmt.Sprintf(nowhere, thread(1))}},
		{"listed and gone", own(1, bytesEnd(one)), folder{file(1): "gone"}, goesOn, []string{fmt.Sprintf(nowhere, thread(1))}},
		{
			"a base whose base is nowhere", own(2, bytesEnd(two)),
			folder{file(2): two + rest},
			"u:q2 a:a2 u:q9 a:a9",
			[]string{file(2) + ": " + fmt.Sprintf(nowhere, thread(1))},
		},
		{"itself", own(9, `,"end_byte_offset":10`), folder{file(9): own(9, `,"end_byte_offset":10`)}, goesOn, []string{fmt.Sprintf(nowhere, thread(9)) + ": it leads back to itself"}},
		{
			"a cycle", own(2, bytesEnd(onTurn)),
			folder{file(1): turn, file(2): onTurn},
			"u:q1 a:a1 u:q2 u:q9 a:a9",
			[]string{file(1) + ": " + fmt.Sprintf(nowhere, thread(2)) + ": it leads back to itself"},
		},
		{
			"more than anybody has", own(10, bytesEnd(long[file(10)])), long, "u:q25 u:q24 u:q23 u:q22 u:q21 u:q20 u:q19 u:q18 u:q17 u:q16 u:q15 u:q14 u:q13 u:q12 u:q11 u:q10 u:q9 a:a9",
			[]string{file(25) + ": " + fmt.Sprintf(nowhere, thread(26)) + ": more than 16 files, one behind the other"},
		},
		{"without an end", own(1, ""), folder{file(1): one}, goesOn, []string{fmt.Sprintf(nowhere, thread(1)) + ": it is not said how much of it is meant"}},
		{"before its beginning", own(1, `,"end_byte_offset":-1`), folder{file(1): one}, goesOn, []string{fmt.Sprintf(nowhere, thread(1)) + ": it is not said how much of it is meant"}},
		{"no rollout", own(1, `,"end_byte_offset":100`), folder{file(1): user("q") + one}, goesOn, []string{fmt.Sprintf(nowhere, thread(1)) + ": " + file(1) + " does not begin with a session's line"}},
		{"another's name", own(1, bytesEnd(one)), folder{"x" + file(1): one, file(1) + ".bak": one, "a/" + file(1): one}, goesOn, []string{fmt.Sprintf(nowhere, thread(1))}},
		{"no id", strings.ReplaceAll(own(1, bytesEnd(one)), thread(1), "../x"), folder{"rollout-../x.jsonl": one}, goesOn, []string{fmt.Sprintf(nowhere, "../x")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			src := source(tt.text)
			src.List, src.Beside = tt.around.List, tt.around.Open
			r := NewReader(src, interop.Options{Now: now})
			s := collect(t, r)
			if got := s.Talk(t, ""); got != tt.want {
				t.Errorf("context\n got %s\nwant %s", got, tt.want)
			}
			var told []string
			for _, d := range r.Diagnostics() {
				told = append(told, d.Detail)
			}
			if !slices.Equal(told, tt.said) {
				t.Errorf("diagnostics\n got %q\nwant %q", told, tt.said)
			}
			if s.Header.ID != thread(9) || r.Verbatim() || r.Close() != nil {
				t.Errorf("header %+v", s.Header)
			}
		})
	}
}

// TestBaseEntries: entries of a base work like the file's own: their IDs differ from those of the own lines, calls find
// their outputs, a rollback goes back into the base, and events find its items.
func TestBaseEntries(t *testing.T) {
	one := metaOn(1, 0, "") + wrap("turn_context", `{"model":"gpt-5"}`) + user("q1") + said("a1") + user("q2") + calls("c1")
	src := source(metaOn(9, 1, bytesEnd(one)) + event(`{"type":"agent_message","message":"a1"}`) + output("c1", "o") + said("x") +
		event(`{"type":"thread_rolled_back","num_turns":1}`) + user("q9"))
	around := folder{file(1): one}
	src.List, src.Beside = around.List, around.Open
	r := NewReader(src, interop.Options{Now: now})
	s := collect(t, r)
	var ids []string
	for _, e := range s.Entries {
		ids = append(ids, e.ID)
	}
	if got, want := strings.Join(ids, " "), "cx-b1-1 cx-b1-2 cx-b1-2.1 cx-b1-3 cx-b1-4 cx-b1-5 cx-b1-6 cx-1 cx-3 cx-4 cx-5 cx-6"; got != want {
		t.Errorf("ids\n got %s\nwant %s", got, want)
	}
	if got := s.Talk(t, ""); got != "u:q1 a:a1 u:q9" {
		t.Error(got)
	}
	if got := s.Talk(t, "cx-4"); got != "u:q1 a:a1 u:q2 a:+c1 r:o=c1 a:x" {
		t.Error(got)
	}
	if e := s.Entries[s.ByID["cx-3"]]; !strings.Contains(string(e.Raw), `"toolName":"shell"`) {
		t.Errorf("%s", e.Raw)
	}
	if got := kinds(r.Diagnostics()); got != "noted" {
		t.Errorf("%v", r.Diagnostics())
	}
}

// TestBaseDamaged: a damaged base is a diagnostic with its name, and the file itself is read.
func TestBaseDamaged(t *testing.T) {
	testutil.SkipLong(t)
	var many strings.Builder
	many.WriteString(metaOn(1, 0, "") + user("q1") + "1\n{}\n")
	for i := range 30_000 {
		many.WriteString(said(fmt.Sprint(i * i * 7919)))
	}
	whole := string(pack(t, []byte(many.String())))
	around := folder{file(1): whole[:len(whole)/2]}
	src := source(metaOn(9, 1, bytesEnd(many.String())) + user("q9"))
	src.List, src.Beside = around.List, around.Open
	r := NewReader(src, interop.Options{Now: now})
	s := collect(t, r)
	if got := s.Talk(t, ""); !strings.HasPrefix(got, "u:q1 a:0") || !strings.HasSuffix(got, " u:q9") || len(s.Entries) < 4 {
		t.Errorf("%.100s", got)
	}
	d := r.Diagnostics()
	if kinds(d) != "bad-line bad-line noted" || r.BadLines() != 2 || d[0].Ordinal != 3 {
		t.Errorf("%d bad lines: %v", r.BadLines(), d)
	}
	for _, d := range d {
		if !strings.HasPrefix(d.Detail, file(1)+": ") {
			t.Errorf("%+v does not say where", d)
		}
	}
}

// TestBaseAsked: the reader opens only folders and files that can contain a thread or its name, and no folder before
// the first entry is read.
func TestBaseAsked(t *testing.T) {
	var asked []string
	src := source(metaOn(9, 1, `,"end_byte_offset":1`))
	src.List = func(dir string) ([]string, error) {
		asked = append(asked, dir)
		return []string{"../" + file(1), "a/../../" + file(1), "/" + file(1), file(2)}, nil
	}
	src.Beside = func(name string) (io.ReadCloser, error) {
		asked = append(asked, name)
		return nil, fs.ErrNotExist
	}
	r := NewReader(src, interop.Options{Now: now})
	want := []string{"../../../../session_index.jsonl", "../session_index.jsonl"}
	if _, err := r.Header(); err != nil || !slices.Equal(asked, want) {
		t.Errorf("%v, asked for %q", err, asked)
	}
	collect(t, r)
	if want = append(want, ".", "../../../2025/12/31", "../../../2026/01/01", "../../../2026/01/02",
		"../sessions/2025/12/31", "../sessions/2026/01/01", "../sessions/2026/01/02", "../../../../archived_sessions"); !slices.Equal(asked, want) {
		t.Errorf("asked for %q", asked)
	}
	src.List = func(string) ([]string, error) { return nil, errors.New("no disk") }
	r = NewReader(src, interop.Options{Now: now})
	collect(t, r)
	if d := r.Diagnostics(); len(d) != 1 || !strings.HasSuffix(d[0].Detail, "which is not read: no disk") {
		t.Errorf("%v", d)
	}
}

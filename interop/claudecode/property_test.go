package claudecode

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// world is a conversation with branches, and the file that Claude Code could have written of it.
type world struct {
	t     *rapid.T
	n     int
	lines []string
	tips  map[string]string // by last line of a branch: its conversation
	talk  map[string]string // by line: the conversation up to it
	head  string
}

func (w *world) id() string {
	w.n++
	return uuid.NewSHA1(uuid.NameSpaceOID, fmt.Append(nil, w.n)).String()
}

func (w *world) odds(of int) bool { return rapid.IntRange(0, of-1).Draw(w.t, "odds") == 0 }

func (w *world) add(n node) string {
	w.lines = append(w.lines, n.line())
	return n.id
}

// noise may write lines without content. It returns the parent of the next line.
func (w *world) noise(at string) string {
	for w.odds(3) {
		kinds := []string{"progress", "attachment", "system", "file-history-snapshot"}
		typ := rapid.SampledFrom(kinds).Draw(w.t, "noise")
		id := w.add(node{id: w.id(), parent: at, typ: typ, extra: `,"data":{}`})
		if w.odds(2) && typ != "file-history-snapshot" {
			at = id
		}
	}
	return at
}

// turn writes a question and an answer, with or without calls, after the line at. A question after the user went back
// names that place itself: a line without content does not move the user back.
func (w *world) turn(at, said string, back bool) (last, talk string) {
	q := w.id()
	talk = strings.TrimSpace(said + " u:" + q)
	if up := w.noise(at); !back {
		at = up
	}
	at = w.noise(w.add(node{id: q, parent: at, typ: "user"}))
	for round := rapid.IntRange(0, 2).Draw(w.t, "rounds"); round >= 0; round-- {
		msg := "msg" + w.id()
		text := w.add(node{id: w.id(), parent: at, typ: "assistant", msg: msg})
		at, talk = text, talk+" a:"+text
		calls := rapid.IntRange(0, 3).Draw(w.t, "calls")
		var piece []string
		for i := range calls {
			piece = append(piece, w.add(node{id: w.id(), parent: w.noise(at), typ: "assistant", msg: msg, content: call(fmt.Sprint(msg, "-", i))}))
			at = piece[i]
			talk += fmt.Sprint("+", msg, "-", i)
		}
		order := rand.New(rand.NewPCG(rapid.Uint64().Draw(w.t, "order"), 0)).Perm(calls)
		var results []string
		for _, i := range order {
			c := fmt.Sprint(msg, "-", i)
			results = append(results, w.add(node{id: w.id(), parent: w.noise(piece[i]), typ: "user", content: result(c)}))
			talk += fmt.Sprintf(" r:out-%s=%s", c, c)
		}
		if calls > 0 {
			at = w.noise(rapid.SampledFrom(results).Draw(w.t, "goes on from"))
		}
	}
	w.talk[at] = talk
	return at, talk
}

func generate(t *rapid.T) *world {
	w := &world{t: t, tips: map[string]string{}, talk: map[string]string{}}
	var places []string
	at, said := "", ""
	for turns := rapid.IntRange(1, 6).Draw(t, "turns"); turns > 0; turns-- {
		back := len(places) > 0 && w.odds(3)
		if back {
			at = rapid.SampledFrom(append(places, "")).Draw(t, "back to")
			said = w.talk[at]
		}
		delete(w.tips, at)
		at, said = w.turn(at, said, back)
		places = append(places, at)
		w.tips[at] = said
	}
	w.head = said
	return w
}

// TestSameConversation: a file contains every branch of its conversation unchanged, whatever the parents of pieces,
// results and lines between; and all entries are one tree.
func TestSameConversation(t *testing.T) {
	testutil.SkipLong(t)
	rapid.Check(t, func(rt *rapid.T) {
		w := generate(rt)
		text := strings.Join(w.lines, "\n") + "\n"
		s, r := read(t, text)
		if got := s.Talk(t, ""); got != w.head {
			rt.Fatalf("at the end\n got %s\nwant %s\n%s", got, w.head, text)
		}
		leaves, parents := map[string]bool{}, map[string]bool{}
		for _, e := range s.Entries {
			parents[e.ParentID] = true
		}
		for _, e := range s.Entries {
			if !parents[e.ID] {
				leaves[s.Talk(t, e.ID)] = true
			}
			if p := s.Path(t, e.ID); p[0].ID != "cc-session" {
				rt.Fatalf("%s stands in another tree", e.ID)
			}
		}
		for _, want := range w.tips {
			if !leaves[want] {
				rt.Fatalf("no branch says\n%s\n%s", want, text)
			}
		}
		if len(r.Diagnostics()) > 0 {
			rt.Fatalf("%v\n%s", r.Diagnostics(), text)
		}
	})
}

func drafts(s *session) iter.Seq2[transcript.Draft, error] {
	return func(yield func(transcript.Draft, error) bool) {
		for _, e := range s.Entries {
			if _, ok := e.Amendment(); !ok {
				e = s.Amended([]transcript.Entry{e})[0]
			}
			if !yield(transcript.Draft{Raw: e.Raw}, nil) {
				return
			}
		}
	}
}

// TestWriteAgain: a session that was read and written reads as the same conversation, without losses, and so does a
// continuation of it.
func TestWriteAgain(t *testing.T) {
	testutil.SkipLong(t)
	rapid.Check(t, func(rt *rapid.T) {
		w := generate(rt)
		text := strings.Join(w.lines, "\n") + "\n"
		s, _ := read(t, text)
		var out bytes.Buffer
		losses, err := Write(&out, s.Header, drafts(&s))
		if err != nil || len(losses) > 0 {
			rt.Fatalf("%v, %v", losses, err)
		}
		again, r := read(t, out.String())
		if got := again.Talk(t, ""); got != w.head || len(r.Diagnostics()) > 0 {
			rt.Fatalf("again\n got %s\nwant %s\n%v\n%s", got, w.head, r.Diagnostics(), out.String())
		}
		// No branch begins between the results of one message.
		settled := rapid.SampledFrom(s.Entries).Filter(func(e transcript.Entry) bool {
			return len(transcript.BuildContext(s.Path(t, e.ID), transcript.Coppice).OpenCalls) == 0
		})
		places := rapid.SliceOfN(settled, 1, 3).Draw(rt, "places")
		known := len(s.Entries)
		for i, p := range places {
			want := strings.TrimSpace(s.Talk(t, p.ID) + fmt.Sprintf(" u:q%d a:+k%d r:done=k%d", i, i, i))
			last := p.ID
			for k, d := range []transcript.Draft{entry.User(fmt.Sprint("q", i)), entry.Assistant("", entry.Call(fmt.Sprint("k", i), "Bash", nil)), entry.ToolResult(fmt.Sprint("k", i), "Bash", "done", false)} {
				raw, err := d.Line(fmt.Sprintf("new%d%d", i, k), last, now)
				if err != nil {
					rt.Fatal(err)
				}
				l := collectOne(t, raw)
				s.ByID[l.ID] = len(s.Entries)
				s.Entries = append(s.Entries, l.Entry(uint64(len(s.Entries))))
				last = l.ID
			}
			var tail bytes.Buffer
			if losses, err = Append(&tail, s.Header, known, drafts(&s), last); err != nil || len(losses) > 0 {
				rt.Fatal(losses, err)
			}
			more, _ := read(t, text+tail.String())
			if got := more.Talk(t, ""); got != want {
				rt.Fatalf("gone on from %s %s\n got %s\nwant %s\n%s\n%s", p.Type, p.ID, got, want, text, tail.String())
			}
		}
	})
}

// TestWriteForeign: sessions of other programs become files with connected lines; content without an equivalent is
// counted.
func TestWriteForeign(t *testing.T) {
	line := func(raw string) transcript.Draft { return transcript.Draft{Raw: []byte(raw)} }
	all := []transcript.Draft{
		line(`{"type":"thinking_level_change","id":"t","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","thinkingLevel":"high"}`),
		line(`{"type":"message","id":"1","parentId":"t","timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"image","data":"blob:sha256:0","mimeType":"image/png"}]}}`),
		line(`{"type":"message","id":"2","parentId":"1","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"assistant","provider":"openai","model":"gpt","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"{}"},{"type":"toolCall","id":"call_1|fc_2","name":"bash","arguments":{"a":1}}],"stopReason":"toolUse"}}`),
		line(`{"type":"message","id":"3","parentId":"2","timestamp":"2026-01-01T00:00:03.000Z","message":{"role":"toolResult","toolCallId":"call_1|fc_2","toolName":"bash","content":[{"type":"text","text":"out"}],"isError":true}}`),
		line(`{"type":"message","id":"4","parentId":"3","timestamp":"2026-01-01T00:00:04.000Z","message":{"role":"bashExecution","command":"ls","output":"x"}}`),
		line(`{"type":"message","id":"5","parentId":"4","timestamp":"2026-01-01T00:00:05.000Z","message":{"role":"toolResult","toolCallId":"none","content":[{"type":"text","text":"alone"}]}}`),
		line(`{"type":"message","id":"6","parentId":"5","timestamp":"2026-01-01T00:00:05.000Z","message":{"role":"assistant","content":[]}}`),
		line(`{"type":"session_info","id":"n","parentId":"6","timestamp":"2026-01-01T00:00:05.000Z","name":"Name"}`),
		line(`{"type":"compaction","id":"7","parentId":"n","timestamp":"2026-01-01T00:00:06.000Z","summary":"sum","firstKeptEntryId":"4","tokensBefore":9}`),
		line(`{"type":"message","id":"8","parentId":"7","timestamp":"2026-01-01T00:00:07.000Z","message":{"role":"user","content":"go on"}}`),
		line(`{"type":"label","id":"l","parentId":"8","timestamp":"2026-01-01T00:00:07.000Z","targetId":"1","label":"x"}`),
		line(`{"type":"message","id":"9","parentId":"3","timestamp":"2026-01-01T00:00:08.000Z","message":{"role":"user","content":"other"}}`),
		line(`{"type":"custom","id":"h","parentId":"8","timestamp":"2026-01-01T00:00:09.000Z","customType":"coppice.head"}`),
	}
	var out bytes.Buffer
	h := interop.Header{ID: "mine", Cwd: "/w"}
	losses, err := Write(&out, h, transcript.Drafts(all...))
	if err != nil {
		t.Fatal(err)
	}
	s, r := read(t, out.String())
	if len(r.Diagnostics()) > 0 || s.Header.ID != SessionID(h) || s.Header.Title != "Name" || !Detect(out.Bytes()) {
		t.Error(r.Diagnostics(), s.Header)
	}
	if got, want := s.Talk(t, ""), "C:sum u:$ ls|x m:alone u:go on"; got != want {
		t.Errorf("context %s", got)
	}
	tip := s.Entries[len(s.Entries)-1]
	for _, e := range s.Entries {
		if transcript.Inspect([]byte(e.Raw)).Role == "" && strings.Contains(string(e.Raw), `"other"`) {
			tip = e
		}
	}
	if got := s.Talk(t, tip.ID); !strings.HasPrefix(got, "u:hi a:+toolu_") || !strings.HasSuffix(got, " u:other") {
		t.Errorf("the other branch: %s", got)
	}
	want := map[string]int{
		"entries of type \"thinking_level_change\"": 1, "entries of type \"label\"": 1, "blocks of type \"image\"": 1, "thinking that Anthropic did not sign": 1,
		"commands of the user: written as text": 1, "results whose call is not there: written as text": 1, "messages without content that Claude Code can show": 1,
		"compactions that keep messages: only Claude Code 2.1 and later reads them so": 1,
	}
	for k, n := range want {
		if losses[k] != n {
			t.Errorf("loss %q: %d", k, losses[k])
		}
	}
	if len(losses) != len(want) {
		t.Errorf("losses %v", losses)
	}
}

// TestWriteFails: an error of the entries or of the file is told.
func TestWriteFails(t *testing.T) {
	bad := func(yield func(transcript.Draft, error) bool) { yield(transcript.Draft{}, io.ErrUnexpectedEOF) }
	if _, err := Write(io.Discard, interop.Header{}, bad); err == nil {
		t.Error("no error of the entries")
	}
	broken := func(yield func(transcript.Draft, error) bool) { yield(transcript.Draft{Raw: []byte(`{"type":`)}, nil) }
	if _, err := Write(io.Discard, interop.Header{}, broken); err == nil {
		t.Error("no error for a line that is none")
	}
	s, _ := read(t, file(node{id: "u1", typ: "user"}))
	if _, err := Write(full{}, s.Header, drafts(&s)); err == nil {
		t.Error("no error of the file")
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// TestWriteKept: a compaction that keeps a message of several lines keeps it from its first line.
func TestWriteKept(t *testing.T) {
	const at = `"timestamp":"2026-01-01T00:00:00.000Z"`
	var all []transcript.Draft
	for _, raw := range []string{
		`{"type":"message","id":"1","parentId":null,` + at + `,"message":{"role":"user","content":"hi"}}`,
		`{"type":"message","id":"2","parentId":"1",` + at + `,"message":{"role":"assistant","provider":"anthropic",` +
			`"model":"m","content":[{"type":"toolCall","id":"t","name":"n","arguments":{}}],"stopReason":"toolUse"}}`,
		`{"type":"message","id":"3","parentId":"2",` + at + `,"message":{"role":"user","content":[` +
			`{"type":"tool_result","tool_use_id":"gone","content":"first"},{"type":"text","text":"last"}]}}`,
		`{"type":"compaction","id":"4","parentId":"3",` + at +
			`,"summary":"sum","firstKeptEntryId":"3","tokensBefore":9}`,
		`{"type":"message","id":"5","parentId":"4",` + at + `,"message":{"role":"user","content":"go on"}}`,
	} {
		all = append(all, transcript.Draft{Raw: []byte(raw)})
	}
	var out bytes.Buffer
	if _, err := Write(&out, interop.Header{ID: "mine", Cwd: "/w"}, transcript.Drafts(all...)); err != nil {
		t.Fatal(err)
	}
	s, _ := read(t, out.String())
	if got := s.Talk(t, ""); !strings.Contains(got, "first") {
		t.Errorf("context %s of\n%s", got, out.String())
	}
}

package codex

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
	"github.com/coppice-go/coppice/interop/internal/readtest"
	"github.com/coppice-go/coppice/transcript"
)

// talk is a session that is to be written.
type talk struct {
	Header interop.Header
	lines  []string
}

var begun = interop.Header{ID: "01941f29-7c00-7000-8000-000000000001", Cwd: "/w", Created: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}

func (s *talk) all() iter.Seq2[transcript.Draft, error] {
	return transcript.Drafts(s.lines...)
}

// add puts an entry below another, with fields as JSON has them.
func (s *talk) add(id, parent, typ, fields string) {
	up := "null"
	if parent != "" {
		up = quoted(parent)
	}
	if fields != "" {
		fields = "," + fields
	}
	n := len(s.lines)
	s.lines = append(s.lines, fmt.Sprintf(`{"type":%q,"id":%s,"parentId":%s,"timestamp":"2026-01-01T00:%02d:%02d.000Z"%s}`, typ, quoted(id), up, n/60%60, n%60, fields))
}

func (s *talk) message(id, parent, message string) {
	s.add(id, parent, "message", `"message":`+message)
}

func (s *talk) write(t fataler, head string) (string, interop.Losses) {
	t.Helper()
	var out bytes.Buffer
	losses, err := Write(&out, s.Header, s.all(), head)
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), losses
}

func (s *talk) goOn(t fataler, original string, known int, head string) (string, interop.Losses) {
	t.Helper()
	var out bytes.Buffer
	losses, err := Continue(&out, strings.NewReader(original), s.Header, known, s.all(), head)
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), losses
}

// taken reads a rollout as an import does, and fails if there are diagnostics.
func taken(t fataler, text string) (s talk, tip string) {
	t.Helper()
	r := reader(text)
	back := collect(t, r)
	if d := r.Diagnostics(); slices.ContainsFunc(d, func(d transcript.Diagnostic) bool { return d.Kind != "noted" }) {
		t.Fatalf("what was written is odd: %v", d)
	}
	s.Header = back.Header
	for _, e := range back.Entries {
		s.lines = append(s.lines, string(e.Raw))
		tip = e.ID
	}
	return s, tip
}

// context returns the messages that a model sees at an entry.
func (s *talk) context(t fataler, head string) []transcript.Message {
	t.Helper()
	byID, calls := map[string]transcript.Entry{}, piwriter.CallIDs{}
	for i, raw := range s.lines {
		l, err := transcript.ParseLine([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		if m := calls.Message(l.ID, l.ParentID, rawjson.Field(l.Raw, "message")); m != nil {
			l.Raw = rawjson.WithField(l.Raw, "message", m)
		}
		byID[l.ID] = l.Entry(uint64(i))
	}
	var path []transcript.Entry
	for id := head; id != ""; id = byID[id].ParentID {
		if _, ok := byID[id]; !ok || len(path) > len(s.lines) {
			break
		}
		path = append(path, byID[id])
	}
	slices.Reverse(path)
	return transcript.BuildContext(path, transcript.Coppice).Messages
}

// words returns the content that a model sees as text: messages, calls and results, of every role.
func (s *talk) words(t fataler, head string) []string {
	t.Helper()
	var ids []string
	var out []string
	for _, m := range s.context(t, head) {
		stop := string(rawjson.Field(m.Raw, "stopReason"))
		if (stop == `"aborted"` || stop == `"error"`) && !strings.HasPrefix(m.Entry, ownIDPrefix) {
			continue // no words of the model: a loss
		}
		for _, p := range piwriter.Messages(m.Raw, time.Time{}, piwriter.Dialect{Roles: []string{"compactionSummary", "branchSummary"}, Blocks: []string{"web_search_call", "image_generation_call", "image", "encrypted_content"}}, func(string) {}) {
			raw := p.Message
			if p.Type != "message" {
				raw = p.Body
			}
			out = append(out, wordsOf(t, raw, &ids)...)
		}
	}
	return out
}

func wordsOf(t fataler, raw []byte, ids *[]string) (out []string) {
	t.Helper()
	var v struct {
		Role, Summary, Command, ToolCallID string
		Content                            any
		ExcludeFromContext                 bool
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	say := func(who, text string) {
		if text != "" {
			out = append(out, who+":"+text)
		}
	}
	blocks, _ := v.Content.([]any)
	for i, b := range blocks {
		block, _ := b.(map[string]any)
		if block["type"] == "image" {
			url := fmt.Sprintf("data:%v;base64,%v", block["mimeType"], block["data"])
			blocks[i] = map[string]any{"image_url": url}
		}
	}
	switch v.Role {
	case "assistant":
		if text, ok := v.Content.(string); ok {
			say("a", text)
		}
		for _, b := range blocks {
			block, _ := b.(map[string]any)
			switch block["type"] {
			case "text":
				say("a", fmt.Sprint(block["text"]))
			case "toolCall":
				*ids = append(*ids, fmt.Sprint(block["id"]))
				args, err := json.Marshal(block["arguments"])
				if err != nil {
					t.Fatal(err)
				}
				say("c", fmt.Sprint(block["name"])+string(args))
			}
		}
	case "toolResult":
		i := slices.Index(*ids, v.ToolCallID)
		if i >= 0 {
			*ids = slices.Delete(*ids, i, i+1)
			out = append(out, "r:"+partsText(v.Content))
		} else {
			say("s", partsText(v.Content)) // of no call
		}
	case "bashExecution":
		if !v.ExcludeFromContext {
			say("cmd", v.Command)
		}
	case "compactionSummary":
		out = append(out, "s:"+v.Summary)
	case "branchSummary":
		say("s", v.Summary)
	default:
		if cmd, ok := commandIn(partsText(v.Content)); ok {
			say("cmd", cmd)
		} else {
			say("s", partsText(v.Content))
		}
	}
	return out
}

// commandIn returns the command that the user ran.
func commandIn(text string) (string, bool) {
	_, rest, ok := strings.Cut(text, "<user_shell_command>\n<command>\n")
	cmd, _, _ := strings.Cut(rest, "\n</command>")
	return cmd, ok
}

const lead = "What was said before, in short:\n\n"

// heard returns the items that Codex sends to a model, in the form of words.
func heard(t fataler, items []map[string]any) (out []string) {
	t.Helper()
	for _, item := range items {
		say := func(who, text string) {
			if text != "" {
				out = append(out, who+":"+text)
			}
		}
		switch item["type"] {
		case "compaction":
			say("s", "Codex kept the summary of what was said before encrypted: nobody but its provider can read it.")
		case "message":
			text := partsText(item["content"])
			switch cmd, ok := commandIn(text); {
			case ok:
				say("cmd", cmd)
			case item["role"] == "assistant":
				say("a", text)
			default:
				if short, ok := strings.CutPrefix(text, lead); ok {
					out = append(out, "s:"+short)
				} else {
					say("s", text)
				}
			}
		case "function_call":
			var args any
			if err := json.Unmarshal([]byte(fmt.Sprint(item["arguments"])), &args); err != nil {
				t.Fatalf("arguments %v: %v", item["arguments"], err)
			}
			compact, err := json.Marshal(args)
			if err != nil {
				t.Fatal(err)
			}
			say("c", fmt.Sprint(item["name"])+string(compact))
		case "custom_tool_call":
			compact, err := json.Marshal(map[string]any{"input": item["input"]})
			if err != nil {
				t.Fatal(err)
			}
			say("c", fmt.Sprint(item["name"])+string(compact))
		case "local_shell_call":
			compact, err := json.Marshal(item["action"])
			if err != nil {
				t.Fatal(err)
			}
			say("c", "local_shell"+string(compact))
		case "function_call_output", "custom_tool_call_output":
			out = append(out, "r:"+partsText(item["output"]))
		}
	}
	return out
}

// but drops what a writer adds: outputs of calls without a result.
func but(words []string, drop ...string) []string {
	return append([]string(nil), slices.DeleteFunc(slices.Clone(words), func(w string) bool { return slices.Contains(drop, w) })...)
}

func idOf(t fataler, raw string) string {
	t.Helper()
	l, err := transcript.ParseLine([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return l.ID
}

// fataler is what tests and properties have in common.
type fataler = readtest.T

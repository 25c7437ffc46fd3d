package codex

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/internal/testutil"
)

// ofAgent is the first line of a session that an agent began.
var ofAgent = strings.Replace(meta, `"cwd"`, `"parent_thread_id":"s0","cwd"`, 1)

func letter(fields string) string {
	return `{"author":"/lead","recipient":"/lead/w",` + fields + `}`
}

// TestLetters: messages between agents are part of the conversation, and begin a turn. In an agent's own session they
// are user messages: lists show the first one. In a user's session they are shown and are no prompt.
func TestLetters(t *testing.T) {
	newer := func(text string) string {
		return item(letter(fmt.Sprintf(`"type":"agent_message","content":[{"type":"input_text","text":%q}]`, text)))
	}
	line := func(text string) string {
		return wrap("inter_agent_communication", letter(fmt.Sprintf(`"content":%q,"trigger_turn":true`, text)))
	}
	older := func(text string) string { return said(letter(fmt.Sprintf(`"content":%q,"trigger_turn":false`, text))) }
	for name, tell := range map[string]func(string) string{"an item": newer, "a line": line, "an answer": older, "a user's message": func(text string) string {
		return user(letter(fmt.Sprintf(`"content":%q,"trigger_turn":true`, text)))
	}} {
		for who, head := range map[string]string{"u": ofAgent, "m": meta} {
			s := collect(t, reader(head+tell("task")+said("a")+tell("more")+said("b")+back(1)+tell("other")))
			if got, want := s.Talk(t, ""), strings.ReplaceAll("~:task a:a ~:other", "~", who); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
			if e := s.Entries[1]; who == "m" && (!strings.Contains(string(e.Raw), `"display":true`) || !strings.Contains(string(e.Raw), `"codex.agent_message"`)) {
				t.Errorf("%s: %s", name, e.Raw)
			}
		}
	}
	for text, want := range map[string]string{
		wrap("inter_agent_communication", letter(`"content":"","encrypted_content":"gAAA","trigger_turn":true`)):  "u:Message Type: NEW_TASK|Task name: /lead/w|Sender: /lead|Payload:",
		wrap("inter_agent_communication", letter(`"content":"","encrypted_content":"gAAA","trigger_turn":false`)): "u:Message Type: MESSAGE|Task name: /lead/w|Sender: /lead|Payload:",
		wrap("inter_agent_communication", letter(`"content":7`)):                                                  "",
		item(letter(`"type":"agent_message","content":7`)):                                                        "",
		said(letter(`"content":"x"`)):                                   "a:" + letter(`"content":"x"`),
		said(letter(`"content":"x","trigger_turn":true`) + " and more"): "a:" + letter(`"content":"x","trigger_turn":true`) + " and more",
		item(`{"type":"message","role":"assistant","content":[{"text":` + quoted(letter(`"content":"x","trigger_turn":true`)) + `},{"text":"more"}]}`): "a:" + letter(`"content":"x","trigger_turn":true`) + "|more",
		wrap("inter_agent_communication_metadata", letter(`"trigger_turn":1`)):                                                                         "",
	} {
		s := collect(t, reader(ofAgent+text))
		if got := s.Talk(t, ""); strings.TrimSuffix(got, "|") != want || len(s.Entries) != 2 {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestHosted: calls that the provider answers itself are part of an answer, a picture as one that can be looked at.
func TestHosted(t *testing.T) {
	testutil.SkipLong(t)
	search := `{"type":"web_search_call","id":"ws","status":"completed","action":{"type":"search","query":"q"}}`
	picture := func(data string) string {
		return item(`{"type":"image_generation_call","id":"ig","status":"completed","revised_prompt":"p","result":"` + data + `"}`)
	}
	const call = `{"type":"image_generation_call","id":"ig","status":"completed","revised_prompt":"p"}`
	s := collect(t, reader(meta+user("q")+item(search)+said("a")+count(1, 1)))
	if got, want := string(rawjson.Field(rawjson.Field(s.Entries[2].Raw, "message"), "content")), `[`+search+`,{"type":"text","text":"a"}]`; got != want || s.Talk(t, "") != "u:q a:a" {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for data, mime := range map[string]string{"iVBORw0KGgo=": "image/png", "/9j/4A==": "image/jpeg", "UklGRg==": "image/webp", "R0lGODlh": "image/gif"} {
		s := collect(t, reader(meta+user("q")+picture(data)+said("a")))
		want := `[` + call + `,{"type":"text","text":"a"}]`
		if got := string(rawjson.Field(rawjson.Field(s.Entries[2].Raw, "message"), "content")); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		want = `"customType":"codex.image_generation_call","content":[{"type":"image","data":"` + data + `","mimeType":"` + mime + `"}],"display":true`
		if got := string(s.Entries[3].Raw); len(s.Entries) != 4 || !strings.Contains(got, want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	kept := wrap("compacted", `{"message":"m","replacement_history":[{"type":"image_generation_call","result":"AAAA"},{"type":"image_generation_call","result":"AAAB"},{"type":"message","role":"user","content":"k"}]}`)
	if s := collect(t, reader(meta+user("q")+kept)); s.Talk(t, "") != "C:m a: m: m: m:k" {
		t.Error(s.Talk(t, ""))
	}
	for _, data := range []string{"", `iVBO\/Rw0`, "data:image/png;base64,AA=="} {
		s := collect(t, reader(meta+user("q")+picture(data)))
		if got := string(s.Entries[2].Raw); strings.Contains(got, `"type":"image"`) || !strings.Contains(got, `"result":"`+data) {
			t.Error(got)
		}
	}
	large := strings.Repeat("iVBORw0K", 1<<18)
	s = collect(t, reader(meta+user("q")+picture(large)+said("a")+picture(large)+picture(large)+said("b")))
	if got := s.Talk(t, ""); got != "u:q a:a m: m: a:b m:" {
		t.Errorf("%.100s", got)
	}
}

// TestGivenName: the name that a thread has in its own file is its title, unless the list of names has one.
func TestGivenName(t *testing.T) {
	name := func(thread, name string) string {
		return event(fmt.Sprintf(`{"type":"thread_name_updated","thread_id":%q,"thread_name":%q}`, thread, name))
	}
	title := func(r *Reader) string {
		s := collect(t, r)
		title := s.Header.Title
		for _, e := range s.Entries {
			if e.Type == "session_info" {
				title = rawjson.Text(rawjson.Field(e.Raw, "name"))
			}
		}
		return title
	}
	long := strings.Repeat("x", 2*maxTitleSize)
	for text, want := range map[string]string{
		said("a") + name("s1", "one") + said("b"):                                "one",
		name("s1", "one") + name("s1", " two "):                                  "two",
		name("s1", "one") + name("s1", " ") + name("another", "x"):               "one",
		event(`{"type":"thread_name_updated","thread_name":"one"}`):              "one",
		event(`{"type":"thread_name_updated","thread_id":"s1","thread_name":7}`): "",
		name("s1", long): long[:maxTitleSize],
	} {
		if got := title(reader(meta + text)); got != want {
			t.Errorf("%.100s: %.100q, want %.100q", text, got, want)
		}
	}
	r := reader(meta + name("s1", "in the file"))
	r.src.Beside = folder{indexFiles[0]: `{"id":"s1","thread_name":"listed"}` + "\n"}.Open
	if got := title(r); got != "listed" {
		t.Errorf("%q", got)
	}
}

// TestSaidBefore: the user's texts, at most 80,000 bytes, follow a compaction without a history.
func TestSaidBefore(t *testing.T) {
	compaction := wrap("compacted", `{"message":"sum"}`)
	kept := func(text string) []string {
		s := collect(t, reader(meta+text))
		return strings.Split(s.Talk(t, ""), " m:")[1:]
	}
	if got := kept(user("one") + said("a") + user(environment) + user("two") + compaction); fmt.Sprint(got) != "[one two]" {
		t.Error(got)
	}
	if got := kept(user("one") + compaction + user("two") + said("a") + compaction); fmt.Sprint(got) != "[one two]" {
		t.Error(got)
	}
	if got := kept(user("one") + replaced("s", "", "kept") + user("two") + compaction); fmt.Sprint(got) != "[kept two]" {
		t.Error(got)
	}
	var many strings.Builder
	for i := range 1000 {
		many.WriteString(with(user("@"), fmt.Sprintf("%04d%s", i, strings.Repeat("-", 996))))
	}
	got := kept(many.String() + compaction)
	size := 0
	for _, g := range got {
		size += len(g)
	}
	if len(got) != 80 || size != 80_000 || !strings.HasPrefix(got[79], "0999") {
		t.Errorf("%d messages of %d bytes", len(got), size)
	}
	got = kept(user("old") + with(user("@"), "begin"+strings.Repeat("é", 100_000)+"end") + user("new") + compaction)
	if len(got) != 2 || got[1] != "new" || len(got[0]) > 80_000 || !strings.HasPrefix(got[0], "beginé") || !strings.HasSuffix(got[0], "éend") || !strings.Contains(got[0], "tokens truncated…") {
		t.Errorf("%d messages, %.100s", len(got), got)
	}
}

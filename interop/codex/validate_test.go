package codex

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

// needs are the fields that Codex requires in each kind of line, event and item, with their types; a question mark
// means that the field may be absent or null. Kinds that are missing here are accepted: Codex skips unknown ones.
var needs = map[string][]string{
	"session_meta":                          {"id=uuid", "timestamp=text", "cwd=text", "originator=text", "cli_version=text", "source?=source", "thread_source?=text", "model_provider?=text", "forked_from_id?=uuid", "parent_thread_id?=uuid", "base_instructions?=object", "git?=object", "history_base?=none", "history_mode?=legacy"},
	"turn_context":                          {"cwd=text", "approval_policy=policy", "sandbox_policy=object", "model=text", "summary=text", "effort?=text", "turn_id?=text"},
	"compacted":                             {"message=text", "replacement_history?=items", "window_number?=count", "window_id?=text", "replacement_history_metadata?=none"},
	"event_msg/user_message":                {"message=text", "local_images?=list", "text_elements?=list"},
	"event_msg/agent_message":               {"message=text"},
	"event_msg/agent_reasoning":             {"text=text"},
	"event_msg/token_count":                 {"info?=counts"},
	"event_msg/task_started":                {"turn_id=text", "model_context_window?=count", "collaboration_mode_kind?=text"},
	"event_msg/task_complete":               {"turn_id=text", "last_agent_message?=text"},
	"event_msg/turn_aborted":                {"reason=reason", "turn_id?=text"},
	"event_msg/thread_rolled_back":          {"num_turns=count"},
	"response_item/message":                 {"role=text", "content=content", "id?=text"},
	"response_item/reasoning":               {"summary=summary", "encrypted_content?=text", "id?=text"},
	"response_item/function_call":           {"name=tool", "arguments=text", "call_id=callid"},
	"response_item/function_call_output":    {"call_id=callid", "output=output"},
	"response_item/custom_tool_call":        {"name=tool", "input=text", "call_id=callid"},
	"response_item/custom_tool_call_output": {"call_id=callid", "output=output"},
	"response_item/local_shell_call":        {"call_id=callid", "status=text", "action=exec"},
	"response_item/web_search_call":         {"action?=object"},
}

var (
	uuidPattern = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	isTool      = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	isTime      = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$`)
)

// jsonLine is one line of a rollout.
type jsonLine struct {
	kind    string // "session_meta", "response_item/message", ...
	payload map[string]any
	ordinal float64 // -1 = none
}

// valid checks that Codex loads a file, and returns its lines.
func valid(t fataler, text string) []jsonLine {
	t.Helper()
	var out []jsonLine
	for i, raw := range strings.SplitAfter(text, "\n") {
		if raw == "" {
			continue
		}
		l, err := validLine(raw)
		if err != nil {
			t.Fatalf("line %d: %v: %.400s", i+1, err, raw)
		}
		if (i == 0) != (l.kind == "session_meta") {
			t.Fatalf("line %d is %s", i+1, l.kind)
		}
		out = append(out, l)
	}
	if len(out) == 0 {
		t.Fatal("an empty file")
	}
	return out
}

func validLine(raw string) (l jsonLine, err error) {
	if !strings.HasSuffix(raw, "}\n") {
		return l, fmt.Errorf("it has no end")
	}
	var v struct {
		Timestamp *string
		Ordinal   *float64
		Type      string
		Payload   map[string]any
	}
	if err := json.Unmarshal([]byte(raw), &v); err != nil {
		return l, err
	}
	if v.Timestamp == nil || !isTime.MatchString(*v.Timestamp) || v.Payload == nil {
		return l, fmt.Errorf("no time, or no payload")
	}
	l = jsonLine{kind: v.Type, payload: v.Payload, ordinal: -1}
	if v.Ordinal != nil {
		l.ordinal = *v.Ordinal
	}
	if v.Type == "event_msg" || v.Type == "response_item" {
		typ, ok := v.Payload["type"].(string)
		if !ok {
			return l, fmt.Errorf("a payload without a type")
		}
		l.kind += "/" + typ
	}
	return l, fields(l.kind, v.Payload)
}

func fields(kind string, payload map[string]any) error {
	for _, need := range needs[kind] {
		name, what, _ := strings.Cut(need, "=")
		name, may := strings.CutSuffix(name, "?")
		val, there := payload[name]
		if !there || val == nil {
			if !may {
				return fmt.Errorf("%s without %s", kind, name)
			}
			continue
		}
		if !fits(what, val) {
			return fmt.Errorf("%s: %s is no %s: %v", kind, name, what, val)
		}
	}
	return nil
}

func fits(what string, val any) bool {
	text, isText := val.(string)
	object, isObject := val.(map[string]any)
	list, isList := val.([]any)
	switch what {
	case "text":
		return isText
	case "uuid":
		return isText && uuidPattern.MatchString(text)
	case "tool":
		return isText && text != ""
	case "callid":
		return isText && text != ""
	case "legacy":
		return text == "legacy"
	case "reason":
		return slices.Contains([]string{"interrupted", "replaced", "review_ended", "budget_limited"}, text)
	case "object":
		return isObject
	case "list":
		return isList
	case "count":
		n, ok := val.(float64)
		return ok && n >= 0 && n == math.Trunc(n)
	case "policy":
		return isText || isObject
	case "source":
		return isText || len(object) == 1
	case "output":
		return isText || isList && each(list, []string{"input_text", "input_image"})
	case "content":
		return isList && each(list, []string{"input_text", "input_image", "output_text"})
	case "summary":
		return isList && each(list, []string{"summary_text"})
	case "exec":
		command, ok := object["command"].([]any)
		return ok && object["type"] == "exec" && !slices.ContainsFunc(command, func(v any) bool { _, ok := v.(string); return !ok })
	case "items":
		return isList && !slices.ContainsFunc(list, func(v any) bool {
			item, ok := v.(map[string]any)
			typ, named := item["type"].(string)
			return !ok || !named || fields("response_item/"+typ, item) != nil
		})
	case "counts":
		for _, name := range []string{"total_token_usage", "last_token_usage"} {
			u, _ := object[name].(map[string]any)
			for _, field := range []string{"input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens", "total_tokens"} {
				if !fits("count", u[field]) {
					return false
				}
			}
		}
		return true
	}
	return false
}

// each checks that a value is a list of parts of these types with their required fields.
func each(list []any, types []string) bool {
	return !slices.ContainsFunc(list, func(v any) bool {
		part, _ := v.(map[string]any)
		typ, _ := part["type"].(string)
		name := "text"
		if typ == "input_image" {
			name = "image_url"
		}
		_, ok := part[name].(string)
		return !ok || !slices.Contains(types, typ)
	})
}

// rebuilt returns the items of the context that Codex builds when it resumes a file: from the newest history of a
// compaction on, without the turns that were rolled back.
func rebuilt(lines []jsonLine) (items []map[string]any) {
	for _, l := range lines {
		switch kind, _ := strings.CutPrefix(l.kind, "response_item/"); {
		case l.kind == "event_msg/thread_rolled_back":
			n, _ := l.payload["num_turns"].(float64)
			items = withoutTurns(items, int(n))
		case l.kind == "compacted":
			items = nil
			list, _ := l.payload["replacement_history"].([]any)
			for _, v := range list {
				item, _ := v.(map[string]any)
				items = append(items, item)
			}
		case kind != l.kind && (kind != "message" || l.payload["role"] != "system"):
			items = append(items, l.payload)
		}
	}
	return items
}

// withoutTurns drops the last turns of the user, and Codex's own messages right before them.
func withoutTurns(items []map[string]any, n int) []map[string]any {
	var at []int
	for i, item := range items {
		if item["type"] == "message" && item["role"] == "user" && !unsaidByUser(item) {
			at = append(at, i)
		}
	}
	if n == 0 || len(at) == 0 {
		return items
	}
	cut := at[max(0, len(at)-n)]
	for cut > at[0] && items[cut-1]["type"] == "message" && (saidByCodex(items[cut-1]) || unsaidByUser(items[cut-1])) {
		cut--
	}
	return items[:cut]
}

func saidByCodex(item map[string]any) bool {
	return item["role"] == "developer" && slices.ContainsFunc([]string{"<permissions instructions>", "<model_switch>", "<collaboration_mode>", "<personality_spec>"}, func(mark string) bool {
		return strings.HasPrefix(partsText(item["content"]), mark)
	})
}

func unsaidByUser(item map[string]any) bool {
	return item["role"] == "user" && slices.ContainsFunc([]string{"<environment_context>", "<user_shell_command>", "# AGENTS.md", "<turn_aborted>"}, func(mark string) bool {
		return strings.HasPrefix(strings.TrimSpace(partsText(item["content"])), mark)
	})
}

func partsText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	var words []string
	list, _ := v.([]any)
	for _, p := range list {
		part, _ := p.(map[string]any)
		if s, ok := part["text"].(string); ok {
			words = append(words, s)
		}
		if s, ok := part["image_url"].(string); ok {
			words = append(words, "["+s[:min(len(s), 20)]+"]")
		}
	}
	return strings.Join(words, "|")
}

// paired fails if a provider would refuse the items: a call without a later output of its kind, an output without an
// earlier call, or an ID of two calls.
func paired(t fataler, items []map[string]any) {
	t.Helper()
	open := map[string]string{}
	seen := map[string]bool{}
	for _, item := range items {
		id, _ := item["call_id"].(string)
		switch typ, _ := item["type"].(string); typ {
		case "function_call", "custom_tool_call", "local_shell_call":
			if seen[id] {
				t.Fatalf("two calls have the id %q", id)
			}
			if !isTool.MatchString(fmt.Sprint(item["name"])) && typ != "local_shell_call" {
				t.Fatalf("a tool named %q", item["name"])
			}
			seen[id] = true
			open[id] = strings.Replace(typ, "local_shell", "function", 1) + "_output"
		case "function_call_output", "custom_tool_call_output":
			if open[id] != typ {
				t.Fatalf("%s for %q, of which %q is open", typ, id, open[id])
			}
			delete(open, id)
		}
	}
	for id := range open {
		t.Fatalf("%q has no output", id)
	}
}

package formats

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coppice-go/coppice/interop"
)

// Rules of the programs' loaders, derived from their behaviour: the loader skips a line that violates one, or the
// program fails when it reads the entry. They are checked with encoding/json and no code of this module.

type obj = map[string]any

// checkLoads checks a file against the rules of a program's loader.
func checkLoads(f interop.Format, data string) error {
	lines := strings.Split(strings.TrimSuffix(data, "\n"), "\n")
	if !strings.HasSuffix(data, "\n") {
		return fmt.Errorf("no newline at the end")
	}
	parent := "parentId"
	header, entry := piHeader, piEntry(f)
	if f == interop.Operator {
		parent, header, entry = "parent_id", operatorHeader, operatorEntry
	}
	parents := map[string]string{}
	var order []string
	for i, line := range lines {
		var v obj
		d := json.NewDecoder(strings.NewReader(line)) // a number may be beyond what Go can hold
		d.UseNumber()
		if err := d.Decode(&v); err != nil || d.More() {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
		check := entry
		if i == 0 {
			check = header
		}
		if err := check(v); err != nil {
			return fmt.Errorf("line %d: %w: %.400s", i+1, err, line)
		}
		if i == 0 {
			continue
		}
		id, _ := v["id"].(string)
		if _, twice := parents[id]; twice || id == "" {
			return fmt.Errorf("line %d: id %q is empty or there already", i+1, id)
		}
		switch p := v[parent].(type) {
		case string:
			if p == "" || p == id {
				return fmt.Errorf("line %d: parent %q of %q", i+1, p, id)
			}
			parents[id] = p
		case nil:
			if _, there := v[parent]; !there {
				return fmt.Errorf("line %d: no %s", i+1, parent)
			}
			parents[id] = ""
		default:
			return fmt.Errorf("line %d: parent %v", i+1, p)
		}
		order = append(order, id)
	}
	return checkTree(order, parents)
}

// checkTree: parents are in the file, and lead to a root.
func checkTree(order []string, parents map[string]string) error {
	fine := map[string]bool{"": true}
	for _, id := range order {
		var walked []string
		at := id
		for !fine[at] {
			if len(walked) > len(order) {
				return fmt.Errorf("%s hangs in a circle", id)
			}
			walked = append(walked, at)
			p, ok := parents[at]
			if !ok {
				return fmt.Errorf("parent %q of %q is not in the file", at, walked[max(0, len(walked)-2)])
			}
			at = p
		}
		for _, w := range walked {
			fine[w] = true
		}
	}
	return nil
}

// want returns an error for fields that are missing or of another type: name:kind, name?:kind for an optional one.
// Kinds: s string, n number, i whole number, b boolean, o object, l list, S strings, * anything; a kind in capitals may
// be null.
func want(v obj, fields ...string) error {
	for _, f := range fields {
		name, kind, _ := strings.Cut(f, ":")
		name, optional := strings.CutSuffix(name, "?")
		val, there := v[name]
		if !there && optional {
			continue
		}
		if !there {
			return fmt.Errorf("no %s", name)
		}
		if val == nil && strings.ContainsAny(kind, "0*") {
			continue
		}
		ok := false
		switch val := val.(type) {
		case string:
			ok = strings.Contains(kind, "s")
		case json.Number:
			_, err := val.Int64()
			ok = strings.Contains(kind, "n") || strings.Contains(kind, "i") && err == nil
		case bool:
			ok = strings.Contains(kind, "b")
		case map[string]any:
			ok = strings.Contains(kind, "o")
		case []any:
			ok = strings.Contains(kind, "l")
		}
		if !ok && !strings.Contains(kind, "*") {
			return fmt.Errorf("%s is %v, want %s", name, val, kind)
		}
	}
	return nil
}

func isoStamp(v any) error {
	s, _ := v.(string)
	_, err := time.Parse(time.RFC3339Nano, s)
	return err
}

func piHeader(v obj) error {
	if v["type"] != "session" || v["version"] != json.Number("3") || v["id"] == "" {
		return fmt.Errorf("no header of version 3")
	}
	if err := want(v, "id:s", "timestamp:s", "cwd:s", "parentSession?:s", "title?:s"); err != nil {
		return err
	}
	return isoStamp(v["timestamp"])
}

var piFields = map[string][]string{
	"message": {"message:o"}, "thinking_level_change": {"thinkingLevel:s"}, "model_change": {"provider:s", "modelId:s"},
	"compaction": {"summary:s", "firstKeptEntryId?:s0", "tokensBefore:n", "fromHook?:b"}, "branch_summary": {"fromId:s", "summary:s", "fromHook?:b"},
	"custom": {"customType:s"}, "custom_message": {"customType:s", "content:sl", "display:b"}, "label": {"targetId:s", "label?:s"},
	"session_info": {"name?:s"},
}

var ownFields = map[interop.Format]map[string][]string{
	interop.Pi:     {"usage": {"kind:s", "provider:s", "model:s", "usage:o"}, "context_edit": {"targetId:s", "replacement:o0"}},
	interop.Atomic: {"context_compaction": {"deletedTargets:l", "protectedEntryIds:l"}, "session_summary": {"summary:s", "summarizedThroughId:s"}},
	interop.Omp: {
		"session_info": nil, "model_change": {"model:s"}, "thinking_level_change": {"thinkingLevel?:s0", "configured?:s0"},
		"service_tier_change": {"serviceTier:o0"}, "mode_change": {"mode:s"}, "ttsr_injection": {"injectedRules:l"},
		"session_init": {"systemPrompt:sl", "task:s", "tools:l"}, "model_usage": {"purpose:s", "api:s", "provider:s", "model:s", "usage:o", "stopReason:s"},
		"title_change": {"title:s", "source:s"}, "credential_pin": {"provider:s", "hash:s"}, "reset_boundary": {},
	},
}

func piEntry(f interop.Format) func(obj) error {
	return func(v obj) error {
		typ, _ := v["type"].(string)
		fields, own := ownFields[f][typ]
		if !own {
			fields = piFields[typ]
		}
		if fields == nil {
			return fmt.Errorf("type %q", typ)
		}
		if err := want(v, fields...); err != nil {
			return err
		}
		if err := isoStamp(v["timestamp"]); err != nil {
			return err
		}
		switch typ {
		case "message":
			return piMessage(f, v["message"].(obj))
		case "custom_message":
			return piBlocks(v["content"], "text", "image")
		}
		return nil
	}
}

func piMessage(f interop.Format, m obj) error {
	role, _ := m["role"].(string)
	if f == interop.Omp && slices.Contains([]string{"developer", "pythonExecution", "fileMention", "hookMessage"}, role) {
		return nil
	}
	if err := want(m, "timestamp:n"); err != nil {
		return err
	}
	switch role {
	case "user":
		return piBlocks(m["content"], "text", "image")
	case "system":
		if f == interop.Pi {
			return piBlocks(m["content"], "text", "image")
		}
	case "assistant":
		if err := want(m, "content:l", "api:s", "provider:s", "model:s", "usage:o", "stopReason:s"); err != nil {
			return err
		}
		u := m["usage"].(obj)
		if err := want(u, "input:n", "output:n", "cacheRead:n", "cacheWrite:n", "cost:o"); err != nil {
			return err
		}
		if !slices.Contains([]string{"stop", "length", "toolUse", "error", "aborted", "pending", "deferred"}, m["stopReason"].(string)) {
			return fmt.Errorf("stopReason %v", m["stopReason"])
		}
		types := []string{"text", "thinking", "toolCall"}
		if f == interop.Omp {
			types = append(types, "redactedThinking", "anthropicServerTool")
		}
		return piBlocks(m["content"], types...)
	case "toolResult":
		if err := want(m, "toolCallId:s", "toolName:s", "content:l", "isError:b"); err != nil {
			return err
		}
		return piBlocks(m["content"], "text", "image")
	case "bashExecution":
		return want(m, "command:s", "output:s", "cancelled:b", "truncated:b")
	case "custom":
		if err := want(m, "customType:s", "content:sl", "display:b"); err != nil {
			return err
		}
		return piBlocks(m["content"], "text", "image")
	}
	return fmt.Errorf("role %q", role)
}

var blockFields = map[string][]string{
	"text": {"text:s"}, "thinking": {"thinking:s"}, "image": {"data:s", "mimeType:s"}, "toolCall": {"id:s", "name:s", "arguments:o"},
}

func piBlocks(content any, types ...string) error {
	if _, ok := content.(string); ok {
		return nil
	}
	list, ok := content.([]any)
	if !ok {
		return fmt.Errorf("content %v", content)
	}
	for _, b := range list {
		v, _ := b.(obj)
		typ, _ := v["type"].(string)
		if !slices.Contains(types, typ) {
			return fmt.Errorf("a block of type %q, want one of %v", typ, types)
		}
		if err := want(v, blockFields[typ]...); err != nil {
			return fmt.Errorf("block %s: %w", typ, err)
		}
	}
	return nil
}

func operatorHeader(v obj) error {
	if v["type"] != "session" {
		return fmt.Errorf("no header")
	}
	return want(v, "version:i", "id:s", "timestamp:n", "cwd:s", "parent_session?:s0")
}

var operatorFields = map[string][]string{
	"message": {"message:o", "meta?:o0"}, "thinking_level_change": {"thinking_level:s"}, "model_change": {"model_id:s", "provider_id:s"},
	"compaction": {"summary:s", "first_kept_entry_id:s", "tokens_before:i", "from_hook?:b"}, "branch_summary": {"from_id:s", "summary:s", "from_hook?:b"},
	"label": {"label?:s0", "target_id:s"}, "leaf": {"target_id?:s0"}, "custom": {"custom_type:s"},
	"custom_message": {"custom_type:s", "content:l", "display?:b"}, "session_info": {"name?:s0"}, "channel": {"name:s", "chat_id?:s0", "user_id?:s0"},
}

func operatorEntry(v obj) error {
	typ, _ := v["type"].(string)
	fields := operatorFields[typ]
	if fields == nil {
		return fmt.Errorf("type %q", typ)
	}
	if err := want(v, append([]string{"id:s", "timestamp:n"}, fields...)...); err != nil {
		return err
	}
	switch typ {
	case "thinking_level_change":
		if !slices.Contains([]string{"off", "minimal", "low", "medium", "high", "xhigh", "max"}, v["thinking_level"].(string)) {
			return fmt.Errorf("thinking level %v", v["thinking_level"])
		}
	case "message":
		return operatorMessage(v["message"].(obj))
	case "custom_message":
		return operatorBlocks(v["content"])
	}
	return nil
}

func operatorMessage(m obj) error {
	role, _ := m["role"].(string)
	if err := want(m, "timestamp:n", "id?:s"); err != nil {
		return err
	}
	switch role {
	case "user", "system", "tool":
		return operatorBlocks(m["contents"])
	case "assistant":
		if err := want(m, "usage:o", "stop_reason:s", "error?:s"); err != nil {
			return err
		}
		u := m["usage"].(obj)
		if err := want(u, "input_tokens:i", "output_tokens:i", "cache_read_tokens:i", "cache_write_tokens:i", "cost:o"); err != nil {
			return err
		}
		if err := want(u["cost"].(obj), "input:n", "output:n", "cache_read:n", "cache_write:n", "total:n"); err != nil {
			return err
		}
		if !slices.Contains([]string{"stop", "length", "tool_calls", "content_filter", "abort", "error"}, m["stop_reason"].(string)) {
			return fmt.Errorf("stop_reason %v", m["stop_reason"])
		}
		return operatorBlocks(m["contents"])
	case "custom":
		if err := want(m, "custom_type:s"); err != nil {
			return err
		}
		return operatorBlocks(m["contents"])
	}
	return fmt.Errorf("role %q", role)
}

func operatorBlocks(content any) error {
	list, ok := content.([]any)
	if !ok {
		return fmt.Errorf("contents %v", content)
	}
	fields := map[string][]string{
		"text": {"content:s"}, "image": {"images:l"}, "audio": {"audio:l"}, "thinking": {"content:s", "signature:s"},
		"tool_call": {"id:s", "name:s", "kind?:s0", "args:o", "metadata?:o"}, "tool_result": {"id:s", "content:s", "is_error:b", "metadata?:o", "terminate?:b", "terminate_message?:s0"},
	}
	for _, b := range list {
		v, _ := b.(obj)
		typ, _ := v["type"].(string)
		if fields[typ] == nil {
			return fmt.Errorf("a block of type %q", typ)
		}
		if err := want(v, fields[typ]...); err != nil {
			return fmt.Errorf("block %s: %w", typ, err)
		}
	}
	return nil
}

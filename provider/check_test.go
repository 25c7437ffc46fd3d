package provider_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/provider"
)

// The checkers hold a request against the written rules of an API. They share no code with the package.
// docs/provider.md names the source of each rule.

type object = map[string]any

var (
	anthropicID = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	name128     = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	geminiName  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`)
	name64      = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
)

// check returns what is wrong with a request; "" = nothing.
func check(r provider.Request) (wrong string) {
	defer func() {
		if p := recover(); p != nil {
			wrong = fmt.Sprint(p)
		}
	}()
	list := make([]object, len(r.Messages))
	for i, m := range r.Messages {
		if err := json.Unmarshal(m, &list[i]); err != nil {
			return fmt.Sprintf("%d: %v in %s", i, err, m)
		}
	}
	switch r.API {
	case provider.Anthropic:
		checkAnthropic(list)
		checkSystem(r.System, func(v []any) { texts(v, "text") })
	case provider.OpenAIChat:
		checkChat(list)
	case provider.OpenAIResponses:
		checkResponses(list)
	case provider.Gemini:
		checkGemini(list)
	}
	checkValues(r)
	return ""
}

func must(ok bool, format string, args ...any) {
	if !ok {
		panic(fmt.Sprintf(format, args...))
	}
}

func keys(o object, where string, allowed ...string) {
	for k := range o {
		must(slices.Contains(allowed, k), "%s: field %q", where, k)
	}
}

func blank(v any) bool { s, ok := v.(string); return !ok || strings.TrimSpace(s) == "" }

func checkSystem(raw json.RawMessage, f func([]any)) {
	if raw == nil {
		return
	}
	var list []any
	must(json.Unmarshal(raw, &list) == nil && len(list) > 0, "system %s", raw)
	f(list)
}

func texts(list []any, typ string) {
	for _, v := range list {
		b := v.(object)
		must(b["type"] == typ && !blank(b["text"]), "text block %v", b)
	}
}

// blocks returns content as blocks: a string is one of text.
func blocks(content any, where string) []object {
	if s, ok := content.(string); ok {
		must(!blank(s), "%s: blank", where)
		return []object{{"type": "text", "text": s}}
	}
	list, ok := content.([]any)
	must(ok && len(list) > 0, "%s: content %v", where, content)
	var out []object
	for _, v := range list {
		out = append(out, v.(object))
	}
	return out
}

func checkAnthropic(list []object) {
	used := map[string]bool{}
	var open []string // calls of the message before
	marks := 0
	for i, m := range list {
		where := fmt.Sprintf("message %d", i)
		keys(m, where, "role", "content")
		role := m["role"]
		must(role == "user" || role == "assistant", "%s: role %v", where, role)
		must(i > 0 || role == "user", "the first message is the %v's", role)
		var calls, results []string
		content := blocks(m["content"], where)
		for k, b := range content {
			if b["cache_control"] != nil {
				marks++
			}
			switch typ := b["type"]; typ {
			case "text":
				keys(b, where, "type", "text", "cache_control", "citations")
				must(!blank(b["text"]), "%s: blank text", where)
			case "thinking":
				keys(b, where, "type", "thinking", "signature")
				must(role == "assistant" && !blank(b["signature"]), "%s: thinking %v", where, b)
				must(k < len(content)-1, "%s: ends with thinking", where)
			case "redacted_thinking":
				keys(b, where, "type", "data")
				must(role == "assistant" && !blank(b["data"]), "%s: %v", where, b)
				must(k < len(content)-1, "%s: ends with thinking", where)
			case "tool_use":
				id := b["id"].(string)
				must(role == "assistant" && anthropicID.MatchString(id) && !used[id], "%s: call %q, used %v", where, id, used[id])
				must(name128.MatchString(b["name"].(string)), "%s: name %q", where, b["name"])
				_, ok := b["input"].(object)
				must(ok, "%s: input %v", where, b["input"])
				used[id] = true
				calls = append(calls, id)
			case "tool_result":
				keys(b, where, "type", "tool_use_id", "content", "is_error", "cache_control")
				must(role == "user" && len(results) == k, "%s: a result that is not at the beginning", where)
				results = append(results, b["tool_use_id"].(string))
				anthropicResult(b, where)
			case "image":
				must(role == "user", "%s: image of %v", where, role)
				anthropicImage(b, where)
			case "document", "search_result", "container_upload":
				must(role == "user", "%s: %v of %v", where, typ, role)
			case "server_tool_use", "web_search_tool_result":
				must(role == "assistant", "%s: %v of %v", where, typ, role)
			default:
				must(false, "%s: block of type %v", where, typ)
			}
		}
		slices.Sort(open)
		slices.Sort(results)
		must(slices.Equal(open, results), "%s: calls %q, results %q", where, open, results)
		open = calls
	}
	must(len(open) == 0, "calls without a result: %q", open)
	must(marks <= 4, "%d cache marks", marks)
}

func anthropicResult(b object, where string) {
	if b["content"] == nil {
		return
	}
	if _, ok := b["content"].(string); ok || len(b["content"].([]any)) == 0 {
		return // both may be empty
	}
	for _, in := range blocks(b["content"], where) {
		switch in["type"] {
		case "text":
			must(!blank(in["text"]), "%s: blank text in a result", where)
		case "image":
			must(b["is_error"] != true, "%s: image in an error", where)
			anthropicImage(in, where)
		case "document", "search_result":
			must(b["is_error"] != true, "%s: document in an error", where)
		case "tool_reference":
			must(b["is_error"] != true && !blank(in["tool_name"]), "%s: %v", where, in)
		default:
			must(false, "%s: %v in a result", where, in)
		}
	}
}

func anthropicImage(b object, where string) {
	src := b["source"].(object)
	if src["type"] == "url" {
		return
	}
	mimes := []string{"image/jpeg", "image/png", "image/gif", "image/webp"}
	must(src["type"] == "base64" && slices.Contains(mimes, src["media_type"].(string)), "%s: image %v", where, src)
	must(!strings.Contains(src["data"].(string), ":"), "%s: image %v", where, src)
}

func checkChat(list []object) {
	waiting := map[string]bool{}
	for i, m := range list {
		where := fmt.Sprintf("message %d", i)
		role := m["role"]
		must(len(waiting) == 0 || role == "tool", "%s: calls wait: %v", where, waiting)
		switch role {
		case "system", "developer", "user":
			keys(m, where, "role", "content", "name")
			chatContent(m["content"], where, role == "user")
		case "assistant":
			keys(m, where, "role", "content", "refusal", "tool_calls", "name", "audio", "annotations", "reasoning_content", "reasoning")
			calls, _ := m["tool_calls"].([]any)
			must(m["tool_calls"] == nil || len(calls) > 0, "%s: empty tool_calls", where)
			if m["content"] != nil && m["content"] != "" && len(calls) == 0 {
				chatContent(m["content"], where, false)
			}
			refused := !blank(m["refusal"])
			must(len(calls) > 0 || m["content"] != nil && m["content"] != "" || refused, "%s: neither content nor calls", where)
			for _, v := range calls {
				waiting[chatCall(v.(object), where, waiting)] = true
			}
		case "tool":
			keys(m, where, "role", "content", "tool_call_id")
			id := m["tool_call_id"].(string)
			must(waiting[id], "%s: a result for %q, which does not wait", where, id)
			delete(waiting, id)
			if _, ok := m["content"].(string); !ok {
				chatContent(m["content"], where, false)
			}
		default:
			must(false, "%s: role %v", where, role)
		}
	}
	must(len(waiting) == 0, "calls without a result: %v", waiting)
}

func chatCall(c object, where string, waiting map[string]bool) string {
	id := c["id"].(string)
	must(len(id) > 0 && len(id) <= 40 && !waiting[id], "%s: call id %q", where, id)
	var fn object
	if c["type"] == "custom" {
		fn = c["custom"].(object)
		_ = fn["input"].(string)
	} else {
		must(c["type"] == "function", "%s: call %v", where, c)
		fn = c["function"].(object)
		must(json.Valid([]byte(fn["arguments"].(string))), "%s: arguments %v", where, fn["arguments"])
	}
	must(name64.MatchString(fn["name"].(string)), "%s: name %q", where, fn["name"])
	return id
}

func chatContent(content any, where string, isUser bool) {
	for _, b := range blocks(content, where) {
		switch b["type"] {
		case "text":
			must(!blank(b["text"]), "%s: blank text", where)
		case "refusal":
		case "image_url":
			must(isUser && imageAddress(b["image_url"].(object)["url"]), "%s: image %v", where, b)
		case "file", "input_audio":
			must(isUser, "%s: %v", where, b)
		default:
			must(false, "%s: part %v", where, b)
		}
	}
}

func imageAddress(v any) bool {
	s := v.(string)
	head, data, ok := strings.Cut(s, ";base64,")
	return strings.HasPrefix(s, "http") || ok && strings.HasPrefix(head, "data:image/") && !strings.Contains(data, ":")
}

func checkResponses(list []object) {
	waiting, used := map[string]string{}, map[string]bool{}
	for i, m := range list {
		where := fmt.Sprintf("item %d", i)
		typ, _ := m["type"].(string)
		for _, k := range []string{"api", "provider", "usage", "stopReason", "timestamp", "model"} {
			must(m[k] == nil, "%s: field %q", where, k)
		}
		switch typ {
		case "", "message":
			responsesMessage(m, where)
		case "reasoning":
			must(i+1 < len(list) && ofModel(list[i+1]), "%s: reasoning without its following item", where)
			must(m["id"] == nil || strings.HasPrefix(m["id"].(string), "rs"), "%s: id %v", where, m["id"])
		case "function_call", "custom_tool_call":
			id := m["call_id"].(string)
			must(name64.MatchString(id) && !used[id], "%s: call_id %q, used %v", where, id, used[id])
			must(name64.MatchString(m["name"].(string)), "%s: name %q", where, m["name"])
			if typ == "function_call" {
				must(json.Valid([]byte(m["arguments"].(string))), "%s: arguments %v", where, m["arguments"])
				must(m["id"] == nil || strings.HasPrefix(m["id"].(string), "fc_"), "%s: id %v", where, m["id"])
			}
			used[id], waiting[id] = true, typ+"_output"
		case "function_call_output", "custom_tool_call_output":
			id := m["call_id"].(string)
			must(waiting[id] == typ, "%s: %s for %q, which waits for %q", where, typ, id, waiting[id])
			delete(waiting, id)
			if _, ok := m["output"].(string); !ok {
				for _, b := range blocks(m["output"], where) {
					responsesPart(b, where, "input_text")
				}
			}
		case "image_generation_call":
			must(m["result"] == nil || sealed.MatchString(m["result"].(string)), "%s: result %v", where, m["result"])
		case "web_search_call", "compaction", "item_reference":
		default:
			must(false, "%s: type %q", where, typ)
		}
	}
	must(len(waiting) == 0, "calls without a result: %v", waiting)
}

func ofModel(m object) bool {
	switch m["type"] {
	case "function_call", "custom_tool_call", "reasoning", "web_search_call":
		return true
	}
	return m["role"] == "assistant"
}

func responsesMessage(m object, where string) {
	typ := "input_text"
	switch m["role"] {
	case "assistant":
		typ = "output_text"
	case "user", "system", "developer":
	default:
		must(false, "%s: role %v", where, m["role"])
	}
	if s, ok := m["content"].(string); ok {
		must(!blank(s), "%s: blank", where)
		return
	}
	for _, b := range blocks(m["content"], where) {
		responsesPart(b, where, typ)
	}
}

func responsesPart(b object, where, typ string) {
	switch b["type"] {
	case typ:
		must(!blank(b["text"]), "%s: blank text", where)
	case "refusal":
		must(typ == "output_text", "%s: refusal", where)
	case "input_image":
		must(typ == "input_text" && imageAddress(b["image_url"]), "%s: image %v", where, b)
	case "input_file":
		must(typ == "input_text", "%s: file", where)
	default:
		must(false, "%s: part %v", where, b)
	}
}

func checkGemini(list []object) {
	var open []string
	for i, m := range list {
		where := fmt.Sprintf("content %d", i)
		keys(m, where, "role", "parts")
		role := m["role"]
		must(role == "user" || role == "model", "%s: role %v", where, role)
		must(i > 0 || role == "user", "the first content is the %v's", role)
		var calls, results []string
		parts := m["parts"].([]any)
		must(len(parts) > 0, "%s: no parts", where)
		for _, v := range parts {
			p := v.(object)
			kinds := 0
			for _, k := range []string{"text", "functionCall", "functionResponse", "inlineData", "fileData", "executableCode", "codeExecutionResult"} {
				if p[k] != nil {
					kinds++
				}
			}
			must(kinds == 1, "%s: %d kinds in %v", where, kinds, p)
			if s, ok := p["text"].(string); ok {
				must(!blank(s) || p["thoughtSignature"] != nil, "%s: blank text", where)
				must(p["thought"] == nil || role == "model", "%s: thought of %v", where, role)
			}
			if c, ok := p["functionCall"].(object); ok {
				must(role == "model" && geminiName.MatchString(c["name"].(string)), "%s: call %v", where, c)
				calls = append(calls, c["name"].(string))
			}
			if c, ok := p["functionResponse"].(object); ok {
				_, isObject := c["response"].(object)
				must(role == "user" && isObject, "%s: response %v", where, c)
				results = append(results, c["name"].(string))
			}
			if d, ok := p["inlineData"].(object); ok {
				must(role == "user" && !strings.Contains(d["data"].(string), ":"), "%s: data %v", where, d)
			}
		}
		slices.Sort(open)
		slices.Sort(results)
		must(slices.Equal(open, results), "%s: calls %q, responses %q", where, open, results)
		open = calls
	}
	must(len(open) == 0, "calls without a response: %q", open)
}

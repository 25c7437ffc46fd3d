package codex

import (
	"bytes"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// isReasoning reports whether Codex loads the reasoning item.
func isReasoning(item []byte) bool {
	if end, err := rawjson.ValueEnd(item, 0, rawjson.MaxDepth-8); err != nil || end != len(item) || len(item) == 0 ||
		item[0] != '{' || bytes.IndexByte(item, '\n') >= 0 {
		return false
	}
	if string(rawjson.Field(item, "type")) != `"reasoning"` ||
		!typedTexts(rawjson.Field(item, "summary"), "summary_text") {
		return false
	}
	if c := rawjson.OrNull(rawjson.Field(item, "content")); string(c) != "null" &&
		!typedTexts(c, "reasoning_text", "text") {
		return false
	}
	for _, name := range []string{"id", "encrypted_content"} {
		if v := rawjson.OrNull(rawjson.Field(item, name)); string(v) != "null" && !rawjson.IsString(v) {
			return false
		}
	}
	return true
}

func typedTexts(list []byte, types ...string) bool {
	return rawjson.Every(list, func(b []byte) bool {
		return slices.Contains(types, rawjson.Text(rawjson.Field(b, "type"))) &&
			rawjson.IsString(rawjson.Field(b, "text"))
	})
}

// areTexts reports whether a value is a list of strings.
func areTexts(list []byte) bool { return rawjson.Every(list, rawjson.IsString) }

// areItems reports whether a value is a list of conversation items.
func areItems(list []byte) bool {
	return rawjson.Every(list, func(item []byte) bool { return rawjson.IsString(rawjson.Field(item, "type")) })
}

// isObject reports whether a value is an object.
func isObject(val []byte) bool { return len(val) > 0 && val[0] == '{' }

// hasTexts reports whether these fields are strings.
func hasTexts(object []byte, names ...string) bool {
	for _, name := range names {
		if !rawjson.IsString(rawjson.Field(object, name)) {
			return false
		}
	}
	return true
}

// mayHaveTexts reports whether these fields are strings, null, or absent.
func mayHaveTexts(object []byte, names ...string) bool {
	for _, name := range names {
		if v := rawjson.OrNull(rawjson.Field(object, name)); v[0] != 'n' && !rawjson.IsString(v) {
			return false
		}
	}
	return true
}

// isCount reports whether a value is a whole number that is not negative.
func isCount(v []byte) bool {
	return len(v) > 0 && len(v) < 16 && len(bytes.Trim(v, "0123456789")) == 0
}

// isUUID reports whether a thread may have this ID.
func isUUID(id string) bool {
	const long = 36
	return len(id) == long && uuid.Validate(id) == nil
}

// isThread reports whether a JSON value is such an ID.
func isThread(val []byte) bool { return isUUID(rawjson.Text(val)) }

// isThreadSource reports whether a value is one of the kinds of thread that Codex knows.
func isThreadSource(val []byte) bool {
	switch string(val) {
	case `"user"`, `"subagent"`, `"memory_consolidation"`:
		return true
	}
	return false
}

// isSource reports whether Codex loads this origin of a session.
func isSource(val []byte) bool {
	if rawjson.IsString(val) {
		return true // Codex treats an unknown string as an unknown source
	}
	sub := rawjson.Field(val, "subagent")
	if rawjson.IsString(rawjson.Field(val, "custom")) {
		return hasOneField(val)
	}
	switch string(sub) {
	case `"review"`, `"compact"`, `"memory_consolidation"`:
		return hasOneField(val)
	}
	spawn := rawjson.Field(sub, "thread_spawn")
	return hasOneField(val) && hasOneField(sub) && (rawjson.IsString(rawjson.Field(sub, "other")) ||
		isThread(rawjson.Field(spawn, "parent_thread_id")) && isCount(rawjson.Field(spawn, "depth")) &&
			mayHaveTexts(spawn, "agent_path", "agent_nickname", "agent_role"))
}

func hasOneField(object []byte) bool {
	n := 0
	for m := rawjson.Walk(object); m.Closing == '}' && m.Next(); {
		n++
	}
	return n == 1
}

// isGit reports whether Codex loads this description of a Git repository.
func isGit(val []byte) bool {
	return isObject(val) && mayHaveTexts(val, "commit_hash", "branch", "repository_url")
}

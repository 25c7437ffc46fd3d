package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

var allProfiles = map[string]Profile{"coppice": Coppice, "pi": Pi, "omp": OMP, "atomic": Atomic, "operator": Operator}

// oddBodies are entries with every kind of value in every field that contexts are made of.
func oddBodies() []string {
	bodies := map[string][]string{
		"message":               {`"message":%s`, `"message":{"role":%s,"content":"x"}`, `"message":{"role":"assistant","content":%s,"stopReason":"error"}`, `"message":{"role":"assistant","content":[%s]}`, `"message":{"role":"assistant","content":[{"type":"toolCall","id":%s,"name":%[1]s,"arguments":%[1]s}],"stopReason":%[1]s,"provider":%[1]s,"model":%[1]s}`, `"message":{"role":"toolResult","toolCallId":%s}`},
		"compaction":            {`"summary":%s,"tokensBefore":%[1]s,"firstKeptEntryId":%[1]s,"details":%[1]s,"systemMessage":%[1]s`, `"details":{"strategy":%s}`, `"details":{"strategy":"verbatim-lines","tokensBefore":%s},"summary":%[1]s,"firstKeptEntryId":"e0"`, `"preserveData":{"openaiRemoteCompaction":{"provider":"p","replacementHistory":%s}},"providerReplayThroughEntryId":%[1]s`},
		"branch_summary":        {`"summary":%s,"fromId":%[1]s`},
		"custom_message":        {`"customType":%s,"content":%[1]s,"display":%[1]s,"details":%[1]s,"excludeFromContext":%[1]s`},
		"model_change":          {`"provider":%s,"modelId":%[1]s,"model":%[1]s,"role":%[1]s`, `"provider":"p","modelId":%s`},
		"thinking_level_change": {`"thinkingLevel":%s`},
		"mode_change":           {`"mode":%s,"data":%[1]s`},
		"leaf":                  {`"targetId":%s,"target_id":%[1]s`},
		"label":                 {`"targetId":%s,"label":%[1]s`},
		"context_edit":          {`"targetId":%s,"replacement":%[1]s`, `"targetId":"e0","replacement":{"content":%s}`},
		"reset_boundary":        {`"x":%s`},
		"unknown":               {`"x":%s`},
	}
	values := []string{`null`, `true`, `-1.5e3`, `""`, `"e0"`, `"text \u00e9 \\ \""`, `[]`, `[[],{},"x",null,1,{"type":"text"},{"type":"text","text":5},{"type":"thinking"},{"type":"image"}]`, `{}`, `{"role":{},"content":{}}`}
	var out []string
	for typ, fields := range bodies {
		for _, f := range fields {
			for _, v := range values {
				out = append(out, `{"type":"`+typ+`",`+fmt.Sprintf(f, v)+`}`)
			}
		}
	}
	slices.Sort(out)
	return out
}

// oddPath makes a path of lines that need not be JSON at all.
func oddPath(lines [][]byte) []Entry {
	var path []Entry
	types := []string{"message", "compaction", "branch_summary", "custom_message", "leaf", "context_edit"}
	for i, raw := range lines {
		e := Entry{Ordinal: uint64(i), ID: fmt.Sprint("e", i), Raw: raw}
		if l, err := ParseLine(raw); err == nil {
			e.Type, e.Time = l.Type, l.Time
		} else if e.Type = types[i%len(types)]; len(raw) > 0 {
			e.Type = types[int(raw[0])%len(types)]
		}
		if i > 0 {
			e.ParentID = path[i-1].ID
		}
		path = append(path, e)
	}
	return path
}

// checkOdd builds a context every way there is and looks at what every context must hold.
func checkOdd(t *testing.T, path []Entry, valid bool) {
	t.Helper()
	for name, p := range allProfiles {
		c := BuildContext(path, p)
		for _, m := range c.Messages {
			if valid && (!json.Valid(m.Raw) || m.Raw[0] != '{') {
				t.Fatalf("%s: message %q", name, m.Raw)
			}
		}
		if len(c.Diagnostics) > 101 || c.Settings.ThinkingLevel == "" {
			t.Fatalf("%s: %d diagnostics, settings %+v", name, len(c.Diagnostics), c.Settings)
		}
		w := RestoreWorkingContext(p, -1, Settings{}, 0, path)
		if d := diff(c, w.Context()); d != "" {
			t.Fatalf("%s (-path +window):\n%s", name, d)
		}
		bounded := NewWorkingContext(p, 100)
		for i, e := range path {
			if !bounded.Push(e) {
				bounded = RestoreWorkingContext(p, 100, Settings{}, 0, path[:i+1])
			}
		}
		bounded.Context()
	}
}

// TestOddBodies: a value of the wrong type is as good as none, alone and among others.
func TestOddBodies(t *testing.T) {
	user := `{"type":"message","message":{"role":"user","content":"x"}}`
	for _, body := range oddBodies() {
		checkOdd(t, oddPath([][]byte{[]byte(user), []byte(body), []byte(user)}), true)
	}
	var all [][]byte
	for _, body := range oddBodies() {
		all = append(all, []byte(body))
	}
	checkOdd(t, oddPath(all), true)
}

func FuzzBuildContext(f *testing.F) {
	for i, body := range oddBodies() {
		if i%7 == 0 {
			f.Add([]byte(body))
		}
	}
	f.Add([]byte(`{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"a"}}` + "\n" +
		`{"type":"compaction","firstKeptEntryId":"e0","summary":"S"}` + "\n" +
		`{"type":"message","id":"b","parentId":"a","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"assistant","content":[{"type":"text","text":"b"}]}}`))
	f.Add([]byte("{\"message\":{\"role\n\x00\n{{{{\n]\n\"\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		lines := bytes.Split(data, []byte("\n"))
		if len(lines) > 50 {
			return
		}
		valid := true
		for _, l := range lines {
			valid = valid && json.Valid(l)
		}
		checkOdd(t, oddPath(lines), valid)
	})
}

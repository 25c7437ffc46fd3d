package scenarios_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/entry"
)

// shapes are turns as other programs' adapters store them, and the JSON that is new in each.
var shapes = []struct {
	name string
	turn func(n int) (t coppice.Turn, fresh int) // n counts from 0
}{
	// A step of a graph: its state holds all messages so far, and a version for each channel.
	{"langgraph", func() func(n int) (coppice.Turn, int) {
		var messages []json.RawMessage
		return func(n int) (coppice.Turn, int) {
			m := compact(map[string]any{"type": "ai", "id": fmt.Sprintf("run-%08d", n), "content": prose(n, 600)})
			messages = append(messages[:n], m)
			return coppice.Turn{State: map[string]any{
				"channel_values":   map[string]any{"messages": messages, "next": "agent"},
				"channel_versions": map[string]int{"messages": n, "next": n, "__start__": 1},
				"versions_seen":    map[string]any{"agent": map[string]int{"messages": n}},
			}}, len(m)
		}
	}()},
	// A run of the Responses API: a question, reasoning, a call, its output, the answer.
	{"openai", func(n int) (coppice.Turn, int) {
		id := fmt.Sprintf("%016x", n)
		return turnOf(
			map[string]any{"type": "message", "role": "user", "content": prose(n, 200)},
			map[string]any{"type": "reasoning", "id": "rs_" + id, "encrypted_content": noise(900, uint64(n))},
			map[string]any{"type": "function_call", "call_id": "call_" + id, "name": "read", "arguments": "{}"},
			map[string]any{"type": "function_call_output", "call_id": "call_" + id, "output": prose(n+1, 1500)},
			map[string]any{"type": "message", "role": "assistant", "content": prose(n+2, 400)},
		)
	}},
	// The lines of a turn in a file of Claude Code, which holds the result of a tool twice.
	{"claude", func(n int) (coppice.Turn, int) {
		line := func(role string, content any) map[string]any {
			return map[string]any{
				"sessionId": "01a21ecd-2282-7ee0-bd3e-755584d5812d", "cwd": "/home/user/project", "version": "2.1.0",
				"gitBranch": "main", "uuid": fmt.Sprintf("%032x", n),
				"message": map[string]any{"role": role, "content": content},
			}
		}
		result := line("user", prose(n+1, 1500))
		result["toolUseResult"] = map[string]any{"stdout": prose(n+1, 1500)}
		return turnOf(line("user", prose(n, 200)), line("assistant", prose(n+3, 100)), result,
			line("assistant", prose(n+2, 400)))
	}},
}

// BenchmarkBytes is what a session of 500 turns costs: bytes of JSON that are new in a turn, bytes that are sent to the
// store for a turn, early and late, and bytes that it has in the end, over all that was new.
func BenchmarkBytes(b *testing.B) {
	const turns, span = 500, 100
	for _, shape := range shapes {
		for _, kind := range memoryStores {
			b.Run(shape.name+"/"+kind.name, func(b *testing.B) {
				for b.Loop() {
					d := kind.open()
					s, fresh, sent := sessionOf(b, d, noSnapshots), 0, [turns + 1]int64{}
					for n := range turns {
						t, size := shape.turn(n)
						if _, err := s.Commit(b.Context(), t); err != nil {
							b.Fatal(err)
						}
						fresh += size
						sent[n+1] = s.IO().BytesWritten
					}
					if err := s.Close(); err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(float64(fresh)/turns, "new/turn")
					b.ReportMetric(float64(sent[span]-sent[0])/span, "sent/early-turn")
					b.ReportMetric(float64(sent[turns]-sent[turns-span])/span, "sent/late-turn")
					b.ReportMetric(float64(kept(b, d))/float64(fresh), "kept/new")
				}
			})
		}
	}
}

func kept(b *testing.B, d backend.Backend) (size int64) {
	b.Helper()
	for info, err := range d.List(b.Context(), backend.ListOptions{}) {
		if err != nil {
			b.Fatal(err)
		}
		size += info.Size
	}
	return size
}

// turnOf is a turn with a message for each value.
func turnOf(messages ...map[string]any) (t coppice.Turn, size int) {
	for _, m := range messages {
		raw := compact(m)
		t.Entries = append(t.Entries, entry.Message(raw))
		size += len(raw)
	}
	return t, size
}

func compact(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

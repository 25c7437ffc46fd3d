package transcript

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// A window of the end of a path, where there is one, is that of the whole path.
func TestRestoreEnd(t *testing.T) {
	ends := 0
	rapid.Check(t, func(rt *rapid.T) {
		profile := rapid.SampledFrom([]Profile{Coppice, Pi, Operator}).Draw(rt, "profile")
		bound := rapid.IntRange(600, 3000).Draw(rt, "bound")
		path := drawnPath(rt, rapid.IntRange(1, 80).Draw(rt, "n"))
		whole := RestoreWorkingContext(profile, bound, Settings{}, 0, path)
		cut := rapid.IntRange(0, len(path)).Draw(rt, "cut")
		from, latest := 0, -1
		if sel := rulesOf(profile).choose(path); sel.boundary >= 0 {
			from, latest = sel.kept, sel.boundary
		}
		var stay []Entry
		omitted := 0
		for i := from; i < cut; i++ {
			switch {
			case i == latest, path[i].Type == "branch_summary":
				stay = append(stay, path[i])
			case path[i].Type == "message":
				omitted++
			}
		}
		if from > cut {
			return
		}
		base := BuildContext(path[:cut], profile).Settings
		end, ok := RestoreEnd(profile, bound, base, omitted, stay, path[cut:])
		if !ok {
			return
		}
		ends++
		if got, want := end.Context(), whole.Context(); !reflect.DeepEqual(got, want) {
			rt.Fatalf("the end from %d of %d: %+v\nwant %+v", cut, len(path), got, want)
		}
		if end.Bytes() != whole.Bytes() || end.Omitted() != whole.Omitted() {
			rt.Fatalf("%d bytes, %d omitted, want %d, %d", end.Bytes(), end.Omitted(), whole.Bytes(), whole.Omitted())
		}
	})
	if ends == 0 {
		t.Error("no window was made of the end of a path")
	}
}

// drawnPath draws a path of turns with calls, some without a result, results without a call, and summaries.
func drawnPath(t *rapid.T, n int) (path []Entry) {
	for i := range n {
		e := Entry{Ordinal: uint64(i), ID: fmt.Sprint("e", i), Type: "message"}
		if i > 0 {
			e.ParentID = path[i-1].ID
		}
		body := ""
		call := rapid.IntRange(0, 5).Draw(t, "call")
		switch kind := rapid.IntRange(0, 19).Draw(t, "kind"); {
		case kind < 7:
			body = fmt.Sprintf(`"message":{"role":"user","content":"question %d"}`, i)
		case kind < 11:
			body = fmt.Sprintf(`"message":{"role":"assistant","content":[{"type":"text","text":"%060d"}],`+
				`"model":"m"}`, i)
		case kind < 14:
			body = fmt.Sprintf(`"message":{"role":"assistant","content":[{"type":"toolCall","id":"c%d","name":"n",`+
				`"arguments":{}}],"model":"m"}`, call)
		case kind < 17:
			body = fmt.Sprintf(`"message":{"role":"toolResult","toolCallId":"c%d","content":[]}`, call)
		case kind < 18:
			e.Type, body = "branch_summary", fmt.Sprintf(`"summary":"left %d","fromId":"x"`, i)
		case kind < 19:
			e.Type, body = "custom", `"customType":"x"`
		default:
			e.Type = "compaction"
			body = fmt.Sprintf(`"summary":"so far","firstKeptEntryId":"e%d","tokensBefore":1`, max(0, i-call*5))
		}
		e.Raw = fmt.Appendf(nil, `{"type":%q,"id":%q,"parentId":%q,%s}`, e.Type, e.ID, e.ParentID, body)
		path = append(path, e)
	}
	return path
}

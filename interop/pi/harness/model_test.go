package harness

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/transcript"
)

// gen writes a file of the harness as its sessions do, and knows what the harness would answer for it.
type gen struct {
	old     bool
	lines   []string
	seq     int
	n       int
	tips    map[string]string
	parents map[string]string
	says    map[string]string   // by ID: role and text of a message; "" = no message
	tails   map[string][]string // by compaction: the messages that replace all before it
	names   []string            // of lanes
	main    bool                // the file speaks of the main lane; else the session opens at another
}

func newGen(old bool) *gen {
	return &gen{
		old: old, lines: []string{headerOf(old)}, tips: map[string]string{mainLane: ""}, parents: map[string]string{},
		says: map[string]string{}, tails: map[string][]string{}, names: []string{mainLane},
	}
}

func (g *gen) next() int {
	g.seq++
	return g.seq
}

func js(v any) string {
	p, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(p)
}

func place(id string) any {
	if id == "" {
		return nil
	}
	return id
}

// message returns a message and its form in a context.
func (g *gen) message(d *rapid.T) (raw, says string) {
	text := fmt.Sprintf("t%d", g.n)
	switch rapid.IntRange(0, 4).Draw(d, "role") {
	case 0, 1:
		return fmt.Sprintf(`{"role":"user","content":%q,"timestamp":1767225600000}`, text), "user: " + text
	case 2:
		return fmt.Sprintf(`{"role":"toolResult","toolCallId":"c","toolName":"read","content":[{"type":"text","text":%q}],"isError":false,"timestamp":1}`, text), "toolResult: " + text
	default:
		stop := rapid.SampledFrom([]string{"stop", "toolUse", "error", "aborted", "deferred"}).Draw(d, "stop")
		if says = "assistant: " + text; stop == "deferred" || !g.old && (stop == "error" || stop == "aborted") {
			says = ""
		}
		return fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":%q}],"api":"a","provider":"p","model":"m","usage":{"input":1},"stopReason":%q,"timestamp":1}`, text, stop), says
	}
}

// entry adds an entry to a lane.
func (g *gen) entry(d *rapid.T, lane string) {
	g.n++
	g.main = g.main || lane == mainLane
	id, parent := fmt.Sprintf("e%d", g.n), g.tips[lane]
	body := ""
	switch rapid.IntRange(0, 6).Draw(d, "type") {
	case 0:
		var tail []string
		g.tails[id] = []string{"compactionSummary: S" + id}
		for range rapid.IntRange(0, 3).Draw(d, "tail") {
			g.n++
			raw, says := g.message(d)
			if tail = append(tail, raw); says != "" {
				g.tails[id] = append(g.tails[id], strings.Replace(says, "user: ", "custom: ", 1))
			}
		}
		body = fmt.Sprintf(`"type":"compaction","summary":"S%s","retainedTail":[%s],"tokensBefore":1,"fromHook":false`, id, strings.Join(tail, ","))
	case 1:
		body, g.says[id] = fmt.Sprintf(`"type":"branch_summary","fromId":%s,"summary":"B%s","fromHook":false`, js(place(parent)), id), "branchSummary: B"+id
	case 2:
		body = `"type":"custom","customType":"ext","data":{"kind":"entry","id":"e1","seq":1}`
	default:
		raw, says := g.message(d)
		body, g.says[id] = `"type":"message","message":`+raw, says
	}
	g.parents[id], g.tips[lane] = parent, id
	if g.old {
		g.lines = append(g.lines, fmt.Sprintf(`{"kind":"entry","lane":%q,"id":%q,%s,"parentId":%s,"seq":%d,"timestamp":1767225600000}`, lane, id, body, js(place(parent)), g.next()))
		return
	}
	tx := []string{fmt.Sprintf(`{"kind":"entry","id":%q,"parentId":%s,%s,"seq":%d,"timestamp":1767225600000}`, id, js(place(parent)), body, g.next())}
	if rapid.Bool().Draw(d, "usage") {
		tx = append(tx, fmt.Sprintf(`{"kind":"usage","id":"x%d","usage":{"input":1},"entryId":%q,"adjustment":false,"seq":%d}`, g.n, id, g.next()))
	}
	g.lines = append(g.lines, "["+strings.Join(append(tx, g.tip(lane, id)), ",")+"]")
}

func (g *gen) tip(lane, id string) string {
	return fmt.Sprintf(`{"kind":"value","op":"set","seq":%d,"namespace":"pi.branch.tip","key":%q,"value":%s}`, g.next(), lane, js(place(id)))
}

// aside adds what is no entry.
func (g *gen) aside(d *rapid.T) {
	some := func(name string) string {
		if g.n == 0 {
			return ""
		}
		for {
			id := fmt.Sprintf("e%d", rapid.IntRange(1, g.n).Draw(d, name))
			if _, ok := g.parents[id]; ok {
				return id
			}
		}
	}
	lane := rapid.SampledFrom(append([]string{"l1", "l2"}, g.names...)).Draw(d, "lane")
	switch rapid.IntRange(0, 5).Draw(d, "aside") {
	case 0, 1: // a lane is made, or moved
		at := ""
		if len(g.parents) > 0 && rapid.IntRange(0, 5).Draw(d, "root") > 0 {
			at = some("at")
		}
		g.main = g.main || lane == mainLane
		if _, ok := g.tips[lane]; !ok {
			g.names = append(g.names, lane)
		}
		if g.tips[lane] = at; g.old {
			g.lines = append(g.lines, fmt.Sprintf(`{"kind":"lane","seq":%d,"lane":%q,"leafId":%s}`, g.next(), lane, js(place(at))))
			return
		}
		g.lines = append(g.lines, g.tip(lane, at))
	case 2:
		if g.old {
			g.lines = append(g.lines, fmt.Sprintf(`{"kind":"record","id":"r%d","lane":"main","type":"queue_cancelled","entryId":"q","seq":%d,"timestamp":1}`, g.seq, g.next()))
			return
		}
		g.lines = append(g.lines, fmt.Sprintf(`{"kind":"list","op":"append","seq":%d,"namespace":"pi.pending.assistant_frame","key":"k","value":[1]}`, g.next()))
	case 3:
		if g.old {
			g.lines = append(g.lines, fmt.Sprintf(`{"kind":"fact","seq":%d,"fact":"name","name":"N"}`, g.next()))
			return
		}
		g.lines = append(g.lines, fmt.Sprintf(`{"kind":"value","op":"set","seq":%d,"namespace":"pi.lane.config","key":"main","value":{"model":{"provider":"p","modelId":"m%d"},"thinkingLevel":"low","activeToolNames":[]}}`, g.next(), g.seq))
	default:
		if len(g.parents) == 0 {
			return
		}
		if g.old {
			g.lines = append(g.lines, fmt.Sprintf(`{"kind":"fact","seq":%d,"fact":"label","targetId":%q,"label":"L"}`, g.next(), some("target")))
			return
		}
		g.lines = append(g.lines, fmt.Sprintf(`{"kind":"value","op":"delete","seq":%d,"namespace":"pi.entry.label","key":%q}`, g.next(), some("target")))
	}
}

// context is what the harness answers for a lane: the last compaction with its tail, and what came after.
func (g *gen) context(lane string) []string {
	var after []string
	for at := g.tips[lane]; at != ""; at = g.parents[at] {
		if tail, ok := g.tails[at]; ok {
			return append(append([]string{}, tail...), after...)
		}
		if says := g.says[at]; says != "" {
			after = append([]string{says}, after...)
		}
	}
	return after
}

// Every generated session shows on every lane what the harness would show there, and has every entry of the file
// in its place.
func TestContextsOfGeneratedFiles(t *testing.T) {
	rapid.Check(t, func(d *rapid.T) {
		g := newGen(rapid.Bool().Draw(d, "old"))
		for range rapid.IntRange(0, 40).Draw(d, "n") {
			if rapid.IntRange(0, 2).Draw(d, "what") == 0 {
				g.aside(d)
			} else {
				g.entry(d, rapid.SampledFrom(g.names).Draw(d, "on"))
			}
		}
		s, err := tryRead(source([]byte(lf(g.lines...))))
		if err != nil || len(s.found) > 0 {
			d.Fatalf("%v, %v\n%s", err, s.found, lf(g.lines...))
		}
		for _, lane := range g.names {
			if lane == mainLane && !g.main {
				continue
			}
			got := says(transcript.BuildContext(s.path(s.laneEnd(lane)), transcript.Coppice))
			if diff := cmp.Diff(g.context(lane), got); diff != "" {
				d.Fatalf("lane %s: %s\n%s\n%s", lane, diff, lf(g.lines...), s.outline())
			}
		}
		s.checkPlaces(d, g.parents)
	})
}

// checkPlaces wants of each entry of the file that the next one above it that the file has is its parent.
func (s session) checkPlaces(t interface{ Fatalf(string, ...any) }, parents map[string]string) {
	seen := 0
	for i, e := range s.entries {
		want, ok := parents[e.ID]
		if !ok {
			continue
		}
		seen++
		up, got := s.parents[i], ""
		for ; up >= 0; up = s.parents[up] {
			if _, ok := parents[s.entries[up].ID]; ok {
				got = s.entries[up].ID
				break
			}
		}
		if got != want {
			t.Fatalf("%s stands below %q, not %q", e.ID, got, want)
		}
	}
	if seen != len(parents) {
		t.Fatalf("%d entries of %d are there", seen, len(parents))
	}
}

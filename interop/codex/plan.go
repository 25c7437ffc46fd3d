package codex

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"iter"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
	"github.com/coppice-go/coppice/transcript"
)

// ownIDPrefix begins the IDs of entries that came from a rollout.
const ownIDPrefix = "cx-"

// callSeed is the seed for hashes of call IDs. The hashes stay in this process.
var callSeed = maphash.MakeSeed()

// callHash returns the hash of a call ID.
func callHash(id string) uint64 { return maphash.String(callSeed, id) }

// Classes of entries.
const (
	classSilent  byte = iota
	classTold         // written by Codex before a turn; a rollback removes it with the turn
	classSpeaks       // the model sees it
	classRan          // a command that the user ran: the model sees it, and a rollback treats it like classTold
	classAsks         // user message that begins a turn
	classSummary      // compaction
)

// linePlan is the result of the first pass over the entries: the path from the root to the head, which is written.
//
// Bounds (I15): about 200 bytes per entry, and 16 per tool result.
type linePlan struct {
	Lines   []transcript.Line // without their content
	class   []byte
	known   int // number of entries in the original
	parents []int64
	last    map[string]int   // index by ID
	Results map[int][]uint64 // by entry: the calls that it answers
	kept    map[int]string   // by compaction: the first entry that it keeps
	Parts   map[string]int   // by compaction from a rollout: the number of entries of its history
	begun   map[int]bool     // entries that record the beginning of a turn in the file
	Meta    []byte           // payload of the first line of the session's rollout
	Path    []int            // from the root to the head
	needs   []neededRange    // sorted by at
	from    []int            // by index in needs: the smallest from of this range and all later ones
	next    int              // index in needs
}

// neededRange is a range of the path, from its first place to at, that is written again at that place: by a compaction,
// or where a rollback is not possible.
type neededRange struct{ from, at int }

// newLinePlan makes the first pass over the entries. The file has the first known entries already.
func newLinePlan(
	entries iter.Seq2[transcript.Draft, error], known int, head string,
) (*linePlan, interop.Losses, error) {
	p := &linePlan{
		last: map[string]int{}, Results: map[int][]uint64{}, kept: map[int]string{},
		Parts: map[string]int{}, begun: map[int]bool{},
	}
	losses, ids, n := interop.Losses{}, piwriter.CallIDs{}, 0
	for d, err := range entries {
		l, ok, err := piwriter.LineOf(d, err)
		if err != nil {
			return nil, nil, err
		}
		n++
		if !ok {
			losses[piwriter.LostEntry]++
			continue
		}
		i := len(p.Lines)
		if n <= known {
			p.known = i + 1
		}
		p.look(i, l, ids.Message(l.ID, l.ParentID, rawjson.Field(l.Raw, "message")))
		target := ""
		if l.Type == "leaf" {
			target = rawjson.Text(rawjson.Field(l.Raw, "targetId"))
		}
		l.Raw = []byte(target)
		p.last[l.ID] = i
		p.Lines = append(p.Lines, l)
	}
	p.parents, _ = transcript.ResolveParents(p.Lines)
	to, err := p.headOf(head)
	if err != nil {
		return nil, nil, err
	}
	p.Path = p.pathTo(to)
	p.orphans(losses)
	for i, on := 0, 0; i < len(p.Lines); i++ {
		if on < len(p.Path) && p.Path[on] == i {
			on++
		} else if i >= p.known && p.class[i] != classSilent {
			losses[lostBranch]++
		}
	}
	p.needs = p.compactions()
	return p, losses, nil
}

// look records what the second pass needs to know of an entry.
func (p *linePlan) look(i int, l transcript.Line, message []byte) {
	class := classSilent
	switch l.Type {
	case "message":
		class = classSpeaks
		s := transcript.Inspect(message)
		for _, id := range s.Results {
			p.Results[i] = append(p.Results[i], callHash(id))
		}
		if string(rawjson.Field(message, "role")) == `"user"` && len(s.Results) == 0 && !isInserted(message) {
			class = classAsks
		}
	case "custom_message":
		class = classOfTold(l.Raw)
	case "branch_summary":
		class = classSpeaks
	case "compaction":
		class = classSummary
		if id := rawjson.Text(rawjson.Field(l.Raw, "firstKeptEntryId")); id != l.ID {
			p.kept[i] = strings.Clone(id)
		}
	case "custom":
		payload := rawjson.Field(rawjson.Field(l.Raw, "data"), "payload")
		switch string(rawjson.Field(l.Raw, "customType")) {
		case `"codex.session_meta"`:
			if len(payload) > 0 && payload[0] == '{' && (p.Meta == nil || !strings.HasPrefix(l.ID, ownIDPrefix+"b")) {
				p.Meta = bytes.Clone(payload)
			}
		case `"codex.task_started"`, `"codex.turn_started"`:
			p.begun[i] = rawjson.IsString(rawjson.Field(payload, "turn_id"))
		}
	}
	p.class = append(p.class, class)
	if dot := strings.LastIndexByte(l.ID, '.'); dot > 0 && strings.HasPrefix(l.ID, ownIDPrefix) &&
		l.Type != "model_change" && l.Type != "thinking_level_change" {
		p.Parts[l.ID[:dot]]++
	}
}

// classOfTold returns the class of a message that neither user nor model wrote.
func classOfTold(raw []byte) byte {
	content := rawjson.Field(raw, "content")
	switch string(rawjson.Field(raw, "customType")) {
	case `"codex.agent_message"`, `"codex.user"`:
		return classAsks
	case `"codex.context"`:
		if strings.HasPrefix(strings.TrimSpace(plainText(content)), "<user_shell_command>") {
			return classRan
		}
		return classTold
	case `"codex.developer"`:
		if isPrelude(content) {
			return classTold
		}
	}
	return classSpeaks
}

// headOf returns the index of the head's entry, -1 = none. If the head is a leaf entry whose target exists, that is the
// head.
func (p *linePlan) headOf(head string) (int, error) {
	if head == "" {
		return -1, nil
	}
	i, ok := p.last[head]
	if !ok {
		return -1, fmt.Errorf("%w: %q", interop.ErrHead, head)
	}
	for range len(p.Lines) {
		if p.Lines[i].Type != "leaf" {
			break
		}
		target := string(p.Lines[i].Raw)
		if target == "" {
			return -1, nil
		}
		next, ok := p.last[target]
		if !ok {
			break
		}
		i = next
	}
	return i, nil
}

// pathTo returns the entries from the root to entry i.
func (p *linePlan) pathTo(i int) (path []int) {
	for i >= 0 && (len(path) == 0 || i < path[len(path)-1]) { // the parent of an entry must precede it
		path = append(path, i)
		i = int(p.parents[i])
	}
	slices.Reverse(path)
	return path
}

// orphans counts a path whose first entry has a parent that is missing.
func (p *linePlan) orphans(losses interop.Losses) {
	if len(p.Path) > 0 && p.Lines[p.Path[0]].ParentID != "" {
		losses[lostOrphan]++
	}
}

// Answers returns the number of results on the path for each call.
func (p *linePlan) Answers() map[uint64]int {
	left := map[uint64]int{}
	for _, i := range p.Path {
		for _, h := range p.Results[i] {
			left[h]++
		}
	}
	return left
}

// compactions returns the ranges that the compactions on the path keep.
func (p *linePlan) compactions() (needs []neededRange) {
	places := map[string]int{}
	for at, i := range p.Path {
		if id, ok := p.kept[i]; ok && p.class[i] == classSummary {
			if from, ok := places[id]; ok {
				needs = append(needs, neededRange{from, at})
			}
		}
		places[p.Lines[i].ID] = at
	}
	p.begin(needs)
	return needs
}

// begin computes from for all needs.
func (p *linePlan) begin(needs []neededRange) {
	p.next, p.from = 0, make([]int, len(needs)+1)
	p.from[len(needs)] = len(p.Path)
	for i, n := range slices.Backward(needs) {
		p.from[i] = min(n.from, p.from[i+1])
	}
}

// Wants returns the first place that is needed at a place or after it, or len(path). Calls must be in order of places.
func (p *linePlan) Wants(at int) int {
	for p.next < len(p.needs) && p.needs[p.next].at < at {
		p.next++
	}
	return p.from[p.next]
}

// Keeps returns the first place that is needed at a place, or false if none is.
func (p *linePlan) Keeps(at int) (from int, ok bool) {
	n, ok := slices.BinarySearchFunc(p.needs, at, func(n neededRange, at int) int { return n.at - at })
	if !ok {
		return 0, false
	}
	return p.needs[n].from, true
}

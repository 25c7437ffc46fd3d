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

// ownIDPrefix begins the ids of entries that came from a rollout.
const ownIDPrefix = "cx-"

// callSeed is of the hashes of ids, which never leave the process.
var callSeed = maphash.MakeSeed()

// callHash returns what represents the id of a call.
func callHash(id string) uint64 { return maphash.String(callSeed, id) }

// What an entry is to the conversation.
const (
	classSilent  byte = iota
	classTold         // Codex says it by itself before a turn: it goes with the turn
	classSpeaks       // the model sees it
	classRan          // likewise, and Codex takes it for what it says before a turn: a command of the user's
	classAsks         // the user speaks: a turn begins
	classSummary      // a compaction
)

// linePlan is the line of conversation that is written, that of the head: what the first walk over the entries found.
//
// Bounds (I15): about 200 bytes an entry, and 16 for each result of a call.
type linePlan struct {
	Lines   []transcript.Line // heads only
	class   []byte
	known   int // entries that the original has
	parents []int64
	last    map[string]int   // by id
	Results map[int][]uint64 // of an entry: the calls that it answers
	kept    map[int]string   // of a compaction: the first entry that it keeps
	Parts   map[string]int   // of a compaction from a rollout: the entries of its history
	begun   map[int]bool     // the entries by which a file names the beginning of a turn
	Meta    []byte           // payload of the session's first line in a rollout
	Path    []int            // the line of the head, its root first
	needs   []neededRange    // by the place where each is wanted
	from    []int            // by need: where the first of it and of those after it begins
	next    int              // need
}

// neededRange is what of the line has to be said at a place further on: by a compaction, or where the file goes back.
type neededRange struct{ from, at int }

// newLinePlan walks the entries, the first known of which a file has already.
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

// look notes what is to be known of an entry before it is written.
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

// classOfTold returns the class of a message that neither the user nor the model said.
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

// headOf returns the entry of a head, -1 = none; a leaf entry leads on to its target, if that is there.
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

// pathTo returns the entries from the root to one.
func (p *linePlan) pathTo(i int) (path []int) {
	for i >= 0 && (len(path) == 0 || i < path[len(path)-1]) { // an entry before its parent has lost it
		path = append(path, i)
		i = int(p.parents[i])
	}
	slices.Reverse(path)
	return path
}

// orphans counts a line whose beginning is not there.
func (p *linePlan) orphans(losses interop.Losses) {
	if len(p.Path) > 0 && p.Lines[p.Path[0]].ParentID != "" {
		losses[lostOrphan]++
	}
}

// Answers counts the results that come on the line, by the call that they answer.
func (p *linePlan) Answers() map[uint64]int {
	left := map[uint64]int{}
	for _, i := range p.Path {
		for _, h := range p.Results[i] {
			left[h]++
		}
	}
	return left
}

// compactions returns what those on the line keep.
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

// begin notes by need where the first of it and of those after it begins.
func (p *linePlan) begin(needs []neededRange) {
	p.next, p.from = 0, make([]int, len(needs)+1)
	p.from[len(needs)] = len(p.Path)
	for i, n := range slices.Backward(needs) {
		p.from[i] = min(n.from, p.from[i+1])
	}
}

// Wants returns from where on what is said is wanted at a place or after it; len(path) = nothing is. Places are asked
// for in their order.
func (p *linePlan) Wants(at int) int {
	for p.next < len(p.needs) && p.needs[p.next].at < at {
		p.next++
	}
	return p.from[p.next]
}

// Keeps returns where what is wanted at a place begins; false: nothing is.
func (p *linePlan) Keeps(at int) (from int, ok bool) {
	n, ok := slices.BinarySearchFunc(p.needs, at, func(n neededRange, at int) int { return n.at - at })
	if !ok {
		return 0, false
	}
	return p.needs[n].from, true
}

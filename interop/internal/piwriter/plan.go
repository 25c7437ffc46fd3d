package piwriter

import (
	"fmt"
	"iter"
	"strconv"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// plan is the result of the first pass.
type plan struct {
	lines   []transcript.Line // without their content
	parts   []int32           // number of lines per entry
	parents []int64
	ids     []string // of the entry's first line
	last    map[string]int
	titled  bool              // an entry has the session's title
	made    map[string]bool   // new IDs
	next    map[string]int    // by ID: number for the suffix of the next new ID
	more    map[int][]string  // by entry: IDs of its second and later lines
	tails   map[string]string // for appended entries: the ID that replaces one dropped or split
}

func newPlan(entries iter.Seq2[transcript.Draft, error], t Target, losses interop.Losses) (*plan, error) {
	p := &plan{last: map[string]int{}, made: map[string]bool{}, next: map[string]int{}, more: map[int][]string{}}
	for d, err := range entries {
		l, ok, err := LineOf(d, err)
		if err != nil {
			return nil, err
		}
		if !ok {
			losses[LostEntry]++
			continue
		}
		n := t.count(l)
		var target []byte
		if l.Type == "leaf" {
			target = []byte(rawjson.Text(rawjson.Field(l.Raw, "targetId")))
		}
		l.Raw = target
		p.titled = p.titled || l.Type == "session_info" || l.Type == "title_change"
		p.last[l.ID] = len(p.lines)
		p.lines, p.parts = append(p.lines, l), append(p.parts, int32(n))
	}
	var found []transcript.Diagnostic
	p.parents, found = transcript.ResolveParents(p.lines)
	p.count(found, losses)
	p.ids = make([]string, len(p.lines))
	for i, l := range p.lines {
		if p.ids[i] = l.ID; p.last[l.ID] != i {
			p.ids[i] = p.fresh(l.ID)
			losses[lostDuplicate]++
		}
	}
	for i, n := range p.parts {
		for k := int32(1); k < n; k++ {
			p.more[i] = append(p.more[i], p.fresh(p.ids[i]))
		}
	}
	return p, nil
}

func (t Target) count(l transcript.Line) int {
	switch {
	case isCommit(l):
		return 0
	case t.Count != nil:
		return t.Count(l)
	}
	return len(t.Convert(l, func(string) {}))
}

// count counts the parents that were removed. The list of diagnostics is bounded, so only its kinds are used.
func (p *plan) count(found []transcript.Diagnostic, losses interop.Losses) {
	if len(found) == 0 {
		return
	}
	for i, l := range p.lines {
		if !l.HasParent || l.ParentID == "" || p.parents[i] >= 0 {
			continue
		}
		if _, ok := p.last[l.ParentID]; ok {
			losses[lostCycle]++
		} else {
			losses[lostOrphan]++
		}
	}
}

// fresh returns an ID that no entry has.
func (p *plan) fresh(id string) string {
	for {
		p.next[id]++
		made := id + "." + strconv.Itoa(p.next[id])
		if _, ok := p.last[made]; !ok && !p.made[made] {
			p.made[made] = true
			return made
		}
	}
}

// headOf returns the ID of the line for a head. A leaf entry counts as its target, if that exists.
func (p *plan) headOf(head string) (string, error) {
	if head == "" {
		return "", nil
	}
	i, ok := p.last[head]
	if !ok {
		return "", fmt.Errorf("%w: %q", interop.ErrHead, head)
	}
	for range len(p.lines) {
		if p.lines[i].Type != "leaf" {
			break
		}
		target := string(p.lines[i].Raw)
		if target == "" {
			return "", nil
		}
		next, ok := p.last[target]
		if !ok {
			break
		}
		i = next
	}
	return p.tail(int64(i)), nil
}

// first returns the ID of the line by which other lines name an entry; "" = it does not exist.
func (p *plan) first(id string) string {
	if i, ok := p.last[id]; ok {
		return p.ids[i]
	}
	return ""
}

// tail returns the ID of the last line of an entry, or, if it was dropped, of its parent; "" = none.
func (p *plan) tail(i int64) string {
	for i >= 0 && p.parts[i] == 0 {
		i = p.parents[i]
	}
	switch {
	case i < 0:
		return ""
	case p.parts[i] == 1:
		return p.ids[i]
	}
	return p.more[int(i)][p.parts[i]-2]
}

// write writes one entry and returns the ID of its last line; "" = it was dropped.
func (p *plan) write(out *lineWriter, i int, l transcript.Line, t Target, losses interop.Losses) string {
	if p.parts[i] == 0 {
		if !isCommit(l) {
			t.Convert(l, func(kind string) { losses[kind]++ })
		}
		return ""
	}
	parent := p.tail(p.parents[i])
	id := ""
	raws := t.Convert(l, func(kind string) { losses[kind]++ })
	for k, raw := range raws[:min(len(raws), int(p.parts[i]))] {
		if id = p.ids[i]; k > 0 {
			id = p.more[i][k-1]
		}
		out.put(withPlace(raw, l, id, parent, t.Parent, k == 0))
		parent = id
	}
	return id
}

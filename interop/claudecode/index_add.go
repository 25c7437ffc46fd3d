package claudecode

import (
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/transcript"
)

// add adds one object.
func (x *index) add(o *jsonl.Object, f *lineFacts) error {
	i := x.entered
	if i >= maxRows {
		return fmt.Errorf("line %d: more than %d lines", o.Number, maxRows)
	}
	if !f.typed {
		x.Bad++
		x.refused++
		x.Note(int32(o.Number), transcript.DiagBadLine, "an object without a type")
		return nil
	}
	r := &f.row
	r.head, r.Unit = i, i
	if o.Part && !f.damaged {
		x.Note(r.Line, transcript.DiagOversize, jsonl.OversizeDetail(o.Size, jsonl.MaxLine))
	}
	if f.known {
		x.genuine++
	} else if !f.damaged {
		x.refused++
	}
	x.keep(r.names, f.parent)
	if f.named {
		x.identify(f, i)
	}
	if r.Kind == kindNewer {
		x.renew(f)
	} else if r.Kind != kindAgain {
		x.connect(f, i)
	}
	if r.Kind >= kindOther {
		x.about(f)
	}
	if x.Env == nil && r.Kind.Speaks() {
		x.Env = envelopeOf(o.Raw)
	}
	if i%rowsPerChunk == 0 {
		x.pieces = append(x.pieces, make([]lineRow, 0, rowsPerChunk))
	}
	last := &x.pieces[len(x.pieces)-1]
	*last = append(*last, *r)
	x.entered++
	return nil
}

// rowsPerChunk is the number of rows per allocation while the total is unknown.
const rowsPerChunk = 1 << 10

func (x *index) early(i int32) *lineRow { return &x.pieces[i/rowsPerChunk][i%rowsPerChunk] }

// link joins the rows into one slice and finds the row that each one names.
func (x *index) link() {
	x.Rows = slices.Concat(x.pieces...)
	x.pieces = nil
	for i := range x.Rows {
		if r := &x.Rows[i]; r.Flags&flagNamed != 0 && r.Kind != kindAgain && r.Kind != kindNewer {
			if p, ok := x.byKey[r.names]; ok {
				r.parent = p
			}
		}
	}
}

// identify registers a row under its ID. A repeated line adds nothing. With other fields it amends the first one,
// unless its place in the conversation or its kind differs: then it replaces the first one from there on.
func (x *index) identify(f *lineFacts, i int32) {
	r := &f.row
	x.keep(r.Key, f.uuid)
	at, ok := x.byKey[r.Key]
	if !ok {
		x.byKey[r.Key] = i
		return
	}
	before := x.early(at)
	switch {
	case before.sum == r.sum:
		x.Note(r.Line, transcript.DiagDuplicateID, fmt.Sprintf("line %d again", before.Line))
		r.Kind = kindAgain
	case x.amends(before, f, at):
		x.Note(r.Line, transcript.DiagDuplicateID, fmt.Sprintf("line %d again, with other fields: it amends that",
			before.Line))
		before.sum = r.sum
		x.newer[at] = i
		r.Kind = kindNewer
	default:
		x.Note(r.Line, transcript.DiagDuplicateID,
			fmt.Sprintf("line %d has the same id: this one answers to it", before.Line))
		before.Flags |= flagPast
		x.byKey[r.Key] = i
		return
	}
	r.parent, r.Held = at, 0
	r.Flags &^= flagSystem | flagText
}

// amends reports whether a line is the line of row at with other fields. A compaction writes the rows that it keeps
// again after itself, with another parent: they have another place and amend nothing.
func (x *index) amends(before *lineRow, f *lineFacts, at int32) bool {
	r := &f.row
	msg := int32(0)
	if f.sent {
		msg = x.msgs[f.msg]
	}
	const same = flagSide | flagText | flagPart
	return r.Kind == before.Kind && r.Kind != kindBoundary && r.Kind != kindSummary &&
		(r.names == before.names || at > x.ended) && r.Held == before.Held && r.Flags&same == before.Flags&same &&
		msg == before.msg && x.Models.of(f.model) == before.Model
}

// renew records the calls and agents of a line that amends another.
func (x *index) renew(f *lineFacts) {
	for _, c := range f.calls {
		x.Calls[c.id] = toolCall{f.row.parent, x.Tools.of(c.tool)}
	}
	x.mention(f.mention, &x.Agents, "")
	x.mention(f.run, &x.Runs, workflowPrefix)
}

// keep records an ID that is not a UUID.
func (x *index) keep(k lineKey, odd []byte) {
	if len(odd) == 0 {
		return
	}
	if _, ok := x.odd[k]; ok {
		return
	}
	if x.odd == nil {
		x.odd = map[lineKey]string{}
	}
	if x.odd[k] = string(odd); len(odd) > maxID {
		x.odd[k] = "cc-" + hex.EncodeToString(k[:])
	}
}

// connect records the message, the calls and the answers of a row.
func (x *index) connect(f *lineFacts, i int32) {
	r := &f.row
	r.Model = x.Models.of(f.model)
	if f.sent {
		if r.msg = x.msgs[f.msg]; r.msg == 0 {
			r.msg = int32(len(x.msgs)) + 1
			x.msgs[f.msg] = r.msg
		}
	}
	for _, c := range f.calls {
		x.Calls[c.id] = toolCall{i, x.Tools.of(c.tool)}
		x.open[c.id] = i
	}
	for _, k := range f.answers {
		delete(x.open, k)
		if c, ok := x.Calls[k]; ok {
			r.call = max(r.call, c.Row)
		} else {
			x.unmet[i] = append(x.unmet[i], k)
		}
	}
	x.mention(f.mention, &x.Agents, "")
	x.mention(f.run, &x.Runs, workflowPrefix)
	if r.Kind == kindOther && r.names == x.explicit && r.names != (lineKey{}) {
		r.Kind = kindPlace // the user went back to that place
	}
	switch {
	case r.Kind == kindBoundary:
		x.ended = i
		x.preserved(f.compacted, i)
	case f.forked != nil:
		x.forked = keyOf(f.forked)
	case f.prompted && f.outright:
		x.explicit = f.leaf
	case r.Kind.Speaks() && !f.side, f.prompted && f.leaf != x.explicit:
		x.explicit = lineKey{} // the conversation continued
	}
	if f.rank > 0 {
		x.name(f, i)
	}
}

// name records a line that may name the session. An explicit name holds from there on, if its rank is not lower than
// that of the name before. Summaries are evaluated at the end.
func (x *index) name(f *lineFacts, i int32) {
	t := foundTitle{row: i, rank: f.rank, text: titleText(f.title), leaf: f.leaf}
	if t.text == "" || t.rank > 1 && t.rank < x.named.rank {
		return
	}
	if t.rank > 1 {
		if t.text != x.named.text {
			x.names = append(x.names, i)
		}
		if t.text != x.named.text || t.rank != x.named.rank {
			x.namings = append(x.namings, t)
		}
		x.named = t
		return
	}
	for k := range x.titles {
		if old := &x.titles[k]; old.leaf == t.leaf {
			*old = t // the later one counts
			return
		}
	}
	if len(x.titles) < maxTitles {
		x.titles = append(x.titles, t)
	}
}

// workflowPrefix distinguishes runs of workflows from agents, whose names have no slash.
const workflowPrefix = "workflows/"

// mention records, once, an agent with a possible transcript of its own, or a run of a workflow with agents.
func (x *index) mention(id []byte, list *[]string, mark string) {
	name := agentName(rawjson.Text(id))
	if name == "" || len(*list) >= maxAgents || x.agent[mark+name] {
		return
	}
	x.agent[mark+name] = true
	*list = append(*list, name)
}

// about updates the session's fields from a line.
func (x *index) about(f *lineFacts) {
	if x.Created.IsZero() {
		if t, ok := jsonl.Stamp(f.stamp); ok {
			x.Created = t
		}
	}
	if x.Cwd == "" {
		x.Cwd = rawjson.Text(f.cwd)
	}
	if id := stringBytes(f.session); len(id) > 0 && len(id) <= maxNameSize && (x.Session == "" || !f.side) &&
		string(id) != x.Session {
		x.sessions++
		if x.Session = string(id); x.Begun == "" {
			x.Begun = x.Session
		}
	}
	if x.AgentID == "" && f.side {
		x.AgentID = agentName(rawjson.Text(f.agent))
	}
}

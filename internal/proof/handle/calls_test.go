package handle

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// record is one call of a session and what it said.
type record struct {
	lane, n    int
	kind       byte
	h          *handle
	begin, end int // moments
	cancelled  int // the moment; 0 = it was not
	returned   bool
	err        error
	receipt    coppice.Receipt
	before     uint64   // the handle's seq when the call began
	commit     string   // and its commit
	texts      []string // of the entries that it appends
	ids        []string // that were returned
	doc        string   // the state that it commits; "" = none
	key        string
	after      checkpoint.Head // the handle's head when the call had returned
	idle       bool            // it committed nothing, though it returned nil
}

func (c *record) String() string {
	text := fmt.Sprintf("lane %d call %d (%c on h%d)", c.lane, c.n, c.kind, c.h.n)
	if c.returned && c.err != nil {
		text += fmt.Sprintf(" [%v]", c.err)
	}
	return text
}

// The turns with the one key have the content of opKeyed, that of opBoth, which carries the entry keyedText, or one of
// their own. Each content has a document that no other turn has.
const (
	theKey     = "key"
	keyedDoc   = `{"turn":"keyed"}`
	carriedDoc = `{"turn":"carried"}`
	keyedText  = "keyed"
)

// begin records that a call begins.
func (r *run) begin(l *laneRun, h *handle, kind byte) *record {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &record{lane: l.n, kind: kind, h: h, begin: r.w.tick()}
	for _, o := range r.records {
		if o.lane == c.lane {
			c.n++
		}
	}
	if !in(kind, "OW") {
		head := h.s.Head()
		c.before, c.commit = head.Seq, head.Commit
	}
	text := fmt.Sprintf("t%d-%d.", c.lane, c.n)
	switch {
	case in(kind, appends+"L"):
		c.texts = []string{text}
	case kind == opBoth:
		c.texts = []string{keyedText}
	case in(kind, entryTurns):
		c.texts = []string{text + "a", text + "b"}
	}
	switch {
	case kind == opKeyed:
		c.key, c.doc = theKey, keyedDoc
	case kind == opBoth:
		c.key, c.doc = theKey, carriedDoc
	case kind == opOther:
		c.key, c.doc = theKey, fmt.Sprintf(`{"turn":%q}`, text)
	case in(kind, turns):
		c.doc = fmt.Sprintf(`{"turn":%q}`, text)
	}
	r.records = append(r.records, c)
	return c
}

// do makes the call.
func (r *run) do(ctx context.Context, h *handle, c *record) {
	var err error
	var ids []string
	var receipt coppice.Receipt
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			r.mu.Lock()
			r.violate("panic", "%s: %v\n%s", c, p, debug.Stack())
			r.mu.Unlock()
		}
		at, head := r.w.tick(), h.s.Head()
		r.mu.Lock()
		defer r.mu.Unlock()
		c.returned, c.end, c.err, c.ids, c.receipt, c.after = true, at, err, ids, receipt, head
	}()
	switch c.kind {
	case opAppend:
		ids, err = h.s.Append(ctx, entry.User(c.texts[0]))
	case opReply:
		d := entry.User(c.texts[0])
		d.Parent = r.base.root
		ids, err = h.s.Append(ctx, d)
	case opRoot:
		ids, err = h.s.Append(ctx, rootLine(c.texts[0]))
	case opLabel:
		receipt, err = h.s.Label(ctx, r.base.root, c.texts[0])
	case opSide:
		receipt, err = h.s.Switch(ctx, "side")
	case opMain:
		receipt, err = h.s.Switch(ctx, "main")
	case opRebase:
		receipt, err = h.s.Rebase(ctx)
	case opReload:
		err = h.s.Reload(ctx)
	case opClaim:
		receipt, err = h.s.Claim(ctx)
	case opClose:
		err = h.s.Close()
	default:
		receipt, err = h.s.Commit(ctx, r.turn(c))
		ids = receipt.IDs
	}
}

// rootLine is a line with an id of its own and no parent.
func rootLine(text string) transcript.Draft {
	return transcript.Draft{Raw: fmt.Appendf(nil,
		`{"type":"message","id":"own-%s","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":%q}}`, text[:len(text)-1], text)}
}

// turn is what a commit saves.
func (r *run) turn(c *record) coppice.Turn {
	t := coppice.Turn{State: json.RawMessage(c.doc), Key: c.key}
	if c.key == "" {
		t.Reason = c.needle()
	}
	for _, text := range c.texts {
		t.Entries = append(t.Entries, entry.User(text))
	}
	if c.kind == opBased {
		t.Base = r.base.commit
	}
	return t
}

// visit is a process that opens the session and closes it; with opWrite it commits something in between.
func (r *run) visit(l *laneRun, kind byte) {
	c := l.rec
	h, err := r.open(100*l.n+l.next, false)
	if err == nil {
		if kind == opWrite {
			for _, k := range []byte{opAppend, opCommit} {
				inner := r.begin(l, h, k)
				r.do(context.Background(), h, inner)
			}
		}
		err = h.s.Close()
		h.closed = true
	}
	at := r.w.tick()
	r.mu.Lock()
	defer r.mu.Unlock()
	c.h, c.returned, c.end, c.err = h, true, at, err
}

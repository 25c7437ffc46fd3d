package handle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// record is one call of a session and what it returned.
type record struct {
	lane, n    int
	kind       byte
	h          *handle
	begin, end int // moments
	from, upto int // steps: the call began in the first, and had returned in the second
	cancelled  int // the moment; 0 = not cancelled
	returned   bool
	err        error
	receipt    coppice.Receipt
	base       string   // id of the commit that the turn names, or that the handle showed when the call began
	settles    string   // id of the commit that the call settles
	texts      []string // of the appended entries
	ids        []string // the returned ones
	doc        string   // the committed state; "" = none
	key        string
}

func (c *record) String() string {
	text := fmt.Sprintf("lane %d call %d (%c on h%d)", c.lane, c.n, c.kind, c.h.n)
	if c.returned && c.err != nil {
		text += fmt.Sprintf(" [%v]", c.err)
	}
	return text
}

func (c *record) ok() bool { return c.returned && c.err == nil }

func (c *record) failed(targets ...error) bool { return c.returned && failed(c.err, targets...) }

func (c *record) unknown() bool { return c.failed(coppice.ErrCommitUnknown) }

// refused reports whether nothing was applied.
func (c *record) refused() bool { return c.returned && c.err != nil && !c.unknown() }

// based reports whether a turn names its base. One of a session that does not exist yet cannot.
func (c *record) based() bool { return in(c.kind, based) && c.base != "" }

// over reports whether a call was under way at any moment between two.
func (c *record) over(from, to int) bool { return c.begin <= to && (!c.returned || c.end >= from) }

// needle returns a text that only the data of this call contains, if it has no key.
func (c *record) needle() string { return fmt.Sprintf("t%d-%d.", c.lane, c.n) }

// same reports whether two calls are one turn: one key, one content.
func (c *record) same(o *record) bool { return c.key != "" && o.key == c.key && o.doc == c.doc }

// The turns with the one key have the content of opKeyed, that of opRetry, which has the entry keyedText, or one of
// their own. Each content has a document that no other turn has.
const (
	theKey     = "key"
	keyedDoc   = `{"turn":"keyed"}`
	carriedDoc = `{"turn":"carried"}`
	keyedText  = "keyed"
)

// begin records that a call begins.
func (r *run) begin(lane int, h *handle, kind byte) *record {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &record{lane: lane, kind: kind, h: h, begin: r.w.tick(), from: len(r.story)}
	for _, o := range r.records {
		if o.lane == lane {
			c.n++
		}
		if o.h == h && o.unknown() {
			if e, ok := errors.AsType[*coppice.Error](o.err); ok && kind == opSettle {
				c.settles = e.Commit
			}
		}
	}
	switch {
	case in(kind, old):
		c.base = r.base.commit
	case !in(kind, visits):
		c.base = h.s.Head().Commit
	}
	text := c.needle()
	switch {
	case in(kind, appends+annotations):
		c.texts = []string{text}
	case kind == opRetry:
		c.texts = []string{keyedText}
	case in(kind, entryTurns):
		c.texts = []string{text + "a", text + "b"}
	}
	switch {
	case kind == opKeyed:
		c.key, c.doc = theKey, keyedDoc
	case kind == opRetry:
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
func (r *run) do(ctx context.Context, c *record) {
	var err error
	var ids []string
	var receipt coppice.Receipt
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			r.violate("panic", "%s: %v\n%s", c, p, debug.Stack())
		}
		at := r.w.tick()
		r.mu.Lock()
		defer r.mu.Unlock()
		c.returned, c.end, c.err, c.ids, c.receipt = true, at, err, ids, receipt
	}()
	s := c.h.s
	switch c.kind {
	case opAppend:
		ids, err = s.Append(ctx, entry.User(c.texts[0]))
	case opReply:
		d := entry.User(c.texts[0])
		d.Parent = r.base.root
		ids, err = s.Append(ctx, d)
	case opRoot:
		ids, err = s.Append(ctx, rootLine(c.texts[0]))
	case opContext:
		err = s.SetContext(ctx, transcript.Item{Entry: r.base.root})
	case opLabel:
		receipt, err = s.Label(ctx, r.base.root, c.texts[0])
	case opSide:
		receipt, err = s.Switch(ctx, "side")
	case opMain:
		receipt, err = s.Switch(ctx, "main")
	case opSettle:
		receipt, err = s.Settle(ctx, c.settles)
	case opDiscard:
		err = s.Discard(ctx)
	case opReload:
		err = s.Reload(ctx)
	case opClaim:
		receipt, err = s.Claim(ctx)
	case opClose:
		err = s.Close()
	case opVisit, opWrite:
		err = r.visit(c)
	default:
		receipt, err = s.Commit(ctx, c.turn())
		ids = receipt.IDs
	}
}

// rootLine is a line with an id of its own and no parent.
func rootLine(text string) transcript.Draft {
	const line = `{"type":"message","id":"own-%s","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z",` +
		`"message":{"role":"user","content":%q}}`
	return transcript.Draft{Raw: fmt.Appendf(nil, line, text[:len(text)-1], text)}
}

// turn returns the turn of a commit.
func (c *record) turn() coppice.Turn {
	t := coppice.Turn{State: json.RawMessage(c.doc), Key: c.key, KeepBoth: in(c.kind, keeps)}
	if c.key == "" {
		t.Reason = c.needle()
	}
	for _, text := range c.texts {
		t.Entries = append(t.Entries, entry.User(text))
	}
	if c.based() {
		t.Base = c.base
	}
	return t
}

// visit is a process that opens the session and closes it; with opWrite it commits something in between.
func (r *run) visit(c *record) error {
	h, err := r.open(100*c.lane+c.n+1, false)
	if err != nil {
		return err
	}
	r.mu.Lock()
	c.h = h
	r.mu.Unlock()
	if c.kind == opWrite {
		for _, kind := range []byte{opAppend, opCommit} {
			r.do(context.Background(), r.begin(100*c.lane, h, kind))
		}
	}
	return h.s.Close()
}

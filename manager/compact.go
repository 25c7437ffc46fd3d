package manager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// Compaction configures Compact.
type Compaction struct {
	Keep         int    // estimated tokens of the newest entries that stay; 0 = 20,000
	FirstKept    string // the first entry that stays, by id or unique prefix; "" = determined by Keep
	Summary      string // "" = a hook's, else that of Options.Summarize
	Instructions string
}

// keepTokens is the default of Compaction.Keep, as in pi.
const keepTokens = 20_000

// Compact replaces the older part of the context with a summary, in one commit. The entries stay in the tree. It
// returns ErrNothing if there is nothing to summarize, or if the last entry is a compaction already.
func (m *Manager) Compact(ctx context.Context, o *Compaction) (Compacted, error) {
	if m.s == nil {
		return Compacted{}, errNone
	}
	if o == nil {
		o = &Compaction{}
	}
	c, err := m.cut(ctx, o)
	if err != nil {
		return Compacted{}, err
	}
	if hook := m.o.Hooks.BeforeCompact; hook != nil {
		if err := hook(ctx, c); err != nil {
			return Compacted{}, stopped("compact", err)
		}
	}
	out := Compacted{FirstKept: c.FirstKept, FromHook: c.Summary != nil}
	if c.FirstKept != "" && !slices.ContainsFunc(c.Path, func(e transcript.Entry) bool { return e.ID == c.FirstKept }) {
		return Compacted{}, notOnPath(c.FirstKept)
	}
	if err := m.compacted(ctx, c, o); err != nil {
		return Compacted{}, err
	}
	body, err := json.Marshal(struct {
		Summary   string          `json:"summary"`
		FirstKept string          `json:"firstKeptEntryId,omitempty"`
		Tokens    int             `json:"tokensBefore"`
		Details   json.RawMessage `json:"details,omitempty"`
		FromHook  bool            `json:"fromHook,omitempty"`
	}{c.Summary.Text, c.FirstKept, c.TokensBefore, c.Summary.Details, out.FromHook})
	out.Summary, out.TokensBefore, out.Replaced = c.Summary.Text, c.TokensBefore, len(c.Entries)
	err = errors.Join(err, rawjson.CheckText("summary", c.Summary.Text)) // package json replaces bad bytes
	d := transcript.Draft{Type: "compaction", Body: body, Err: err}
	out.Receipt, err = m.s.Commit(ctx, coppice.Turn{Reason: "compaction", Entries: []transcript.Draft{d}})
	if err != nil {
		return out, err
	}
	out.ID = out.IDs[0]
	if hook := m.o.Hooks.Compact; hook != nil {
		hook(ctx, out)
	}
	return out, nil
}

// Compact is Manager.Compact for a session of the caller, without hooks: o must contain the summary.
func Compact(ctx context.Context, s *coppice.Session, o *Compaction) (Compacted, error) {
	return (&Manager{s: s}).Compact(ctx, o)
}

// compacted sets the summary of a cut.
func (m *Manager) compacted(ctx context.Context, c *Cut, o *Compaction) error {
	switch {
	case c.Summary != nil:
	case o.Summary != "":
		c.Summary = &Summary{Text: o.Summary}
	case m.o.Summarize == nil:
		return fmt.Errorf("compact: %w", ErrNoSummary)
	default:
		s, err := m.o.Summarize(ctx,
			Job{Kind: "compaction", Entries: c.Entries, Previous: c.Previous, Instructions: c.Instructions})
		if err != nil {
			return fmt.Errorf("compact: summarise: %w", err)
		}
		c.Summary = &s
	}
	return nil
}

// notOnPath is the error for a FirstKept that is not on the path.
func notOnPath(id string) error {
	return fmt.Errorf("compact: entry %q, the first to keep, is not on the path to the head: %w", id,
		transcript.ErrNotFound)
}

// cut returns the compaction that the options describe.
func (m *Manager) cut(ctx context.Context, o *Compaction) (*Cut, error) {
	path, err := Path(ctx, m.s, "")
	if err != nil {
		return nil, err
	}
	c := &Cut{Session: m.s, Path: path, Instructions: o.Instructions}
	first, last := 0, -1 // the first entry that is not summarised yet; the newest compaction
	for i, e := range slices.Backward(path) {
		if e.Type != "compaction" {
			continue
		}
		var before struct {
			Summary   string `json:"summary"`
			FirstKept string `json:"firstKeptEntryId"`
		}
		if err := e.Decode(&before); err != nil {
			continue // of another shape: it summarises nothing
		}
		c.Previous, first, last = before.Summary, i+1, i
		kept := func(e transcript.Entry) bool { return e.ID == before.FirstKept && e.ID != "" }
		if at := slices.IndexFunc(path[:i], kept); at >= 0 {
			first = at
		}
		break
	}
	if last == len(path)-1 {
		return nil, ErrNothing
	}
	c.TokensBefore = tokens(path[first:], path[last+1:])
	var kept int
	if o.FirstKept != "" {
		e, err := m.s.Entry(ctx, o.FirstKept)
		if err != nil {
			return nil, err
		}
		if kept = slices.IndexFunc(path, func(p transcript.Entry) bool { return p.Ordinal == e.Ordinal }); kept < 0 {
			return nil, notOnPath(e.ID)
		}
	} else {
		keep := o.Keep
		if keep == 0 {
			keep = keepTokens
		}
		kept = first + FindCut(path[first:], keep)
	}
	if kept < len(path) {
		c.FirstKept = path[kept].ID
	}
	for _, e := range path[first:max(first, kept)] {
		if e.Type != "compaction" {
			c.Entries = append(c.Entries, e)
		}
	}
	if !slices.ContainsFunc(c.Entries, speaks) {
		return nil, ErrNothing
	}
	return c, nil
}

// FindCut returns the index in a path of the first entry to keep, so that at least keep tokens are kept, or all if
// there are fewer. It never separates a call from its result: the kept part begins with a message, not with a tool
// result. 0 = all is kept.
func FindCut(path []transcript.Entry, keep int) int {
	sum, cut := 0, 0
	for i, e := range slices.Backward(path) {
		if sum += Estimate(e); sum >= keep {
			cut = i
			break
		}
	}
	for i := cut; i < len(path); i++ {
		if begins(path[i]) {
			return i
		}
	}
	for i := cut; i > 0; i-- { // no later entry can begin the kept part
		if begins(path[i]) {
			return i
		}
	}
	return 0
}

// begins reports whether a kept part may begin with an entry.
func begins(e transcript.Entry) bool {
	if m, ok := e.Message(); ok {
		return len(transcript.Inspect(m.Raw).Results) == 0
	}
	return e.Type == "custom_message" || e.Type == "branch_summary"
}

// speaks reports whether an entry is part of the model's context.
func speaks(e transcript.Entry) bool {
	return e.Type == "message" || e.Type == "custom_message" || e.Type == "branch_summary"
}

// The size of an image in bytes of text; four bytes count as a token.
const (
	imageBytes = 4800
	tokenBytes = 4
)

// Estimate returns the approximate number of tokens of an entry in the context: a token for four bytes, 1,200 for an
// image.
func Estimate(e transcript.Entry) int {
	if !speaks(e) {
		return 0
	}
	var body struct {
		Message struct {
			Content json.RawMessage `json:"content"`
		} `json:"message"`
		Content json.RawMessage `json:"content"`
	}
	n := len(e.Raw)
	if err := e.Decode(&body); err == nil {
		if body.Content = append(body.Content, body.Message.Content...); len(body.Content) > 0 {
			n = len(body.Content)
		}
	}
	var blocks []struct {
		Data   string `json:"data"`
		Source struct {
			Data string `json:"data"`
		} `json:"source"`
	}
	if err := json.Unmarshal(body.Content, &blocks); err == nil {
		for _, b := range blocks {
			if image := len(b.Data) + len(b.Source.Data); image > 0 {
				n += imageBytes - image
			}
		}
	}
	return (max(n, 0) + tokenBytes - 1) / tokenBytes
}

// tokens returns the size of a context: the last reported usage and an estimate of the later entries. A usage before
// the newest compaction belongs to another context and does not count.
func tokens(all, since []transcript.Entry) int {
	after := 0
	for _, e := range slices.Backward(since) {
		if u, ok := UsageOf(e); ok && e.Type == "message" && u.Total > 0 {
			return int(u.Total) + after
		}
		after += Estimate(e)
	}
	sum := 0
	for _, e := range all {
		sum += Estimate(e)
	}
	return sum
}

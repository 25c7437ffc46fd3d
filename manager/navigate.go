package manager

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// Navigate moves the head to an entry, by its id or a unique prefix. For a user message or a custom message the head
// moves to its parent, and the text is returned, to be edited and sent again; for any other entry the head moves to the
// entry itself. If the head is there already nothing is done. nil options: no summary.
//
// The summary describes the path that is left, for the model at the new head. It is made before the move, and stored in
// the commit of the move. A label is a separate commit afterwards.
func (m *Manager) Navigate(ctx context.Context, target string, o *Navigation) (Moved, error) {
	if m.s == nil {
		return Moved{}, errNone
	}
	if o == nil {
		o = &Navigation{}
	}
	p, text, err := m.plan(ctx, target, o)
	if err != nil {
		return Moved{}, err
	}
	if p.Target == p.From {
		return Moved{Receipt: coppice.Receipt{Head: m.s.Head()}, From: p.From, Already: true}, nil
	}
	if hook := m.o.Hooks.BeforeTree; hook != nil {
		if err := hook(ctx, p); err != nil {
			return Moved{}, stopped("navigate", err)
		}
	}
	fromHook := p.Summary != nil
	if err := m.summarize(ctx, p, o.Summary); err != nil {
		return Moved{}, err
	}
	moved, err := m.move(ctx, p, fromHook)
	if err != nil {
		return moved, err
	}
	moved.From, moved.Text = p.From, text
	if moved, err = m.name(ctx, p, moved); err != nil {
		return moved, err
	}
	if hook := m.o.Hooks.Tree; hook != nil {
		hook(ctx, moved)
	}
	return moved, nil
}

// BranchForEdit moves the head to the parent of a user message and returns its text: the next message is another
// version of it. Any other entry is an error. If the message is the head, only the summary of the options is used.
func (m *Manager) BranchForEdit(ctx context.Context, message string, o *Navigation) (Moved, error) {
	if m.s == nil {
		return Moved{}, errNone
	}
	e, text, err := Before(ctx, m.s, message)
	if err != nil {
		return Moved{}, err
	}
	if e.ID != m.s.Head().Entry {
		return m.Navigate(ctx, e.ID, o)
	}
	var summary coppice.BranchOptions
	if o != nil {
		summary.Summary = o.Summary
	}
	r, err := m.s.Branch(ctx, e.ParentID, &summary) // the message is the head: Navigate would do nothing
	return Moved{Receipt: r, From: e.ID, Text: text}, err
}

// Before returns a user message or a custom message with its text. Its ParentID is an entry that exists, or "". Any
// other entry is an error.
func Before(ctx context.Context, s *coppice.Session, message string) (e transcript.Entry, text string, err error) {
	if e, err = s.Entry(ctx, message); err != nil {
		return e, "", err
	}
	text, ok := Prompt(e)
	if !ok {
		return e, "", fmt.Errorf("entry %s is not a user message", e.ID)
	}
	t, err := s.Tree(ctx)
	if err != nil {
		return e, "", err
	}
	e.ParentID = ""
	if up, ok := t.Parent(e.Ordinal); ok {
		e.ParentID = t.ID(up)
	}
	return e, text, nil
}

// Prompt returns the text of an entry that a user can edit and send again: a user message or a custom message. ok is
// false for other entries.
func Prompt(e transcript.Entry) (text string, ok bool) {
	if m, is := e.Message(); is {
		shape, decoded := transcript.Inspect(m.Raw), message.Decode(m.Raw)
		ok = shape.Role == "user" && (len(shape.Results) == 0 || speaksToo(e))
		return cmp.Or(decoded.TypedText(), shape.Text), ok
	}
	if e.Type != "custom_message" {
		return "", false
	}
	content := message.UserSent(e.Raw)
	if content == nil {
		content = rawjson.Field(e.Raw, "content")
	}
	return message.ContentText(content), true
}

// speaksToo reports whether a user message with tool results also has text of the user.
func speaksToo(e transcript.Entry) bool {
	l, err := transcript.ParseLine(e.Raw)
	return err == nil && transcript.RowOf(l, -1).Role == "user"
}

// plan returns the move that the options describe.
func (m *Manager) plan(ctx context.Context, target string, o *Navigation) (*Plan, string, error) {
	t, err := m.s.Tree(ctx)
	if err != nil {
		return nil, "", err
	}
	e, err := m.s.Entry(ctx, target)
	if err != nil {
		return nil, "", err
	}
	p := &Plan{
		Session: m.s, Target: e.ID, From: t.Head(), To: e.ID, Wanted: o.Summarize || o.Summary != "",
		Instructions: o.Instructions, Label: o.Label,
	}
	text, again := Prompt(e)
	if !again {
		text = ""
	} else {
		p.To = ""
		if ord, err := t.Ordinal(e.ID); err == nil {
			if up, ok := t.Parent(ord); ok {
				p.To = t.ID(up)
			}
		}
	}
	var left []string
	p.Ancestor, left = leave(t, p.From, p.Target)
	if len(left) == 0 || !p.Wanted && m.o.Hooks.BeforeTree == nil {
		return p, text, nil
	}
	for e, err := range m.s.Entries(ctx, left...) {
		if err != nil {
			return nil, "", err
		}
		p.Left = append(p.Left, e)
	}
	return p, text, nil
}

// leave returns the last common entry of the paths to both, and the entries only on the path to from.
func leave(t *transcript.Tree, from, to string) (ancestor string, left []string) {
	if from == "" {
		return "", nil
	}
	target, err := t.Ordinal(to)
	for n := range t.Up(from) {
		if depth, ok := t.Depth(n.Ordinal); ok && err == nil {
			if at, ok := t.Ancestor(target, depth); ok && at == n.Ordinal {
				ancestor = n.ID
				break
			}
		}
		left = append(left, n.ID)
	}
	slices.Reverse(left)
	return ancestor, left
}

// summarize makes the summary of a plan, if one is wanted and the path has messages.
func (m *Manager) summarize(ctx context.Context, p *Plan, given string) error {
	switch {
	case !p.Wanted:
		p.Summary = nil
	case p.Summary != nil:
	case given != "":
		p.Summary = &Summary{Text: given}
	case len(p.Left) == 0:
	case m.o.Summarize == nil:
		return fmt.Errorf("navigate to %s: %w", p.Target, ErrNoSummary)
	default:
		s, err := m.o.Summarize(ctx, Job{Kind: "branch", Entries: p.Left, Instructions: p.Instructions})
		if err != nil {
			return fmt.Errorf("navigate to %s: summarise: %w", p.Target, err)
		}
		p.Summary = &s
	}
	return nil
}

// move makes a planned move in one commit, summary included. An empty summary is not stored.
func (m *Manager) move(ctx context.Context, p *Plan, fromHook bool) (Moved, error) {
	if p.Summary == nil || p.Summary.Text == "" {
		r, err := m.s.Branch(ctx, p.To, nil)
		return Moved{Receipt: r}, err
	}
	r, err := m.s.Branch(ctx, p.To,
		&coppice.BranchOptions{Summary: p.Summary.Text, Details: p.Summary.Details, FromHook: fromHook})
	return Moved{Receipt: r, Summary: r.Entry, FromHook: fromHook}, err
}

// name sets the label of a plan.
func (m *Manager) name(ctx context.Context, p *Plan, moved Moved) (Moved, error) {
	if p.Label == "" {
		return moved, nil
	}
	on := p.Target
	if moved.Summary != "" {
		on = moved.Summary
	}
	r, err := m.s.Label(ctx, on, p.Label)
	if err != nil {
		return moved, err
	}
	moved.Receipt = r
	return moved, nil
}

package demostore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// writer is an agent that commits its work to a session.
type writer struct {
	h      *coppice.Session
	ids    io.Reader // randomness of the ids of its entries
	clock  *clock
	p      progress         // after the last commit
	at     map[string]point // by the entry that was the head
	last   string           // the newest entry
	called int              // calls of tools that were made so far
	used   int64            // tokens of the context, for what an answer costs
	err    error            // the first one; say does nothing after it
}

// point is a place in a session to which it may go back.
type point struct {
	commit string
	p      progress
}

// maxCalls is more than the calls of tools between two commits, so that no two writers of a session use an id twice.
const maxCalls = 1000

func writerOn(h *coppice.Session, c *clock, ids io.Reader) *writer {
	return &writer{
		h: h, ids: ids, clock: c, p: newProgress(), at: map[string]point{}, used: 2_000,
		called: int(h.Head().Seq) * maxCalls,
	}
}

// begin returns a writer of a new session. id "" = a new one.
func (d *demo) begin(id string, o coppice.SessionOptions) (*writer, error) {
	st, ids, err := d.open(mara)
	if err != nil {
		return nil, err
	}
	o.Cwd, o.Snapshots = cwd, snapshots
	h, err := st.Create(id, &o)
	return writerOn(h, d.clock, ids), err
}

// join returns another writer of a session.
func (d *demo) join(ctx context.Context, name, id string) (*writer, error) {
	st, ids, err := d.open(name)
	if err != nil {
		return nil, err
	}
	h, err := st.Open(ctx, id, nil)
	return writerOn(h, d.clock, ids), err
}

// commit commits entries with the state that follows from them, at the clock's time.
func (w *writer) commit(ctx context.Context, t coppice.Turn) error {
	err := w.note(t.Entries...)
	if err != nil {
		return err
	}
	if t.State, err = w.p.json(); err != nil {
		return err
	}
	r, err := w.h.Commit(ctx, t)
	if err == nil {
		w.went(r)
	}
	return err
}

// note moves the state on by entries.
func (w *writer) note(drafts ...transcript.Draft) error {
	for _, d := range drafts {
		l, err := d.Parsed("0", "", w.clock.now())
		if err != nil {
			return err
		}
		e := l.Entry(0)
		if m, ok := e.Message(); ok {
			if err := w.p.note(m.Raw); err != nil {
				return fmt.Errorf("entry %s: %w", e.ID, err)
			}
		}
		if title, ok := e.Title(); ok {
			w.p.Goal = clip(title)
		}
	}
	return nil
}

// went notes where the head is after a commit.
func (w *writer) went(r coppice.Receipt) {
	w.last = r.Entry
	w.at[r.Entry] = point{r.Commit, w.p.clone()}
}

// back continues with the state of an entry that was the head.
func (w *writer) back(entry string) error {
	was, ok := w.at[entry]
	if !ok {
		return fmt.Errorf("entry %s was never the head", entry)
	}
	w.p, w.last = was.p.clone(), entry
	return nil
}

// spoken is what a writer of the demo says, in pi's form.
type spoken struct {
	Role       string `json:"role"`
	ToolCallID string `json:"toolCallId,omitempty"`
	ToolName   string `json:"toolName,omitempty"`
	Content    []any  `json:"content"`
	Details    any    `json:"details,omitempty"`
	IsError    *bool  `json:"isError,omitempty"`
	API        string `json:"api,omitempty"`
	Provider   string `json:"provider,omitempty"`
	Model      string `json:"model,omitempty"`
	Usage      *usage `json:"usage,omitempty"`
	StopReason string `json:"stopReason,omitempty"`
	Error      string `json:"errorMessage,omitempty"`
	Timestamp  int64  `json:"timestamp"`
}

type usage struct {
	Input       int64 `json:"input"`
	Output      int64 `json:"output"`
	CacheRead   int64 `json:"cacheRead"`
	CacheWrite  int64 `json:"cacheWrite"`
	TotalTokens int64 `json:"totalTokens"`
	Cost        cost  `json:"cost"`
}

type cost struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cacheRead"`
	CacheWrite float64 `json:"cacheWrite"`
	Total      float64 `json:"total"`
}

type thinking struct {
	Type     string `json:"type"`
	Thinking string `json:"thinking"`
}

// charge returns what an answer used. A token is taken as four bytes; prices are in dollars for a million tokens.
func (w *writer) charge(bytes int) *usage {
	const input, output, read, write, million = 3, 15, 0.3, 3.75, 1e6
	u := usage{Input: 4, Output: int64(bytes)/4 + 12, CacheRead: w.used, CacheWrite: 180}
	u.TotalTokens = u.Input + u.Output + u.CacheRead + u.CacheWrite
	w.used += u.Output + u.CacheWrite
	c := &u.Cost
	c.Input, c.Output = float64(u.Input)*input/million, float64(u.Output)*output/million
	c.CacheRead, c.CacheWrite = float64(u.CacheRead)*read/million, float64(u.CacheWrite)*write/million
	c.Total = c.Input + c.Output + c.CacheRead + c.CacheWrite
	return &u
}

// drafts makes entries of messages that are said now.
func (w *writer) drafts(messages ...spoken) ([]transcript.Draft, error) {
	drafts := make([]transcript.Draft, len(messages))
	for i, m := range messages {
		m.Timestamp = w.clock.now().UnixMilli()
		drafts[i] = entry.Message(m)
		var err error
		if drafts[i].ID, err = transcript.NewID(w.clock.now(), w.ids); err != nil {
			return nil, err
		}
	}
	return drafts, nil
}

// prompt is what a user says.
func prompt(text string) spoken {
	return spoken{Role: "user", Content: []any{entry.Block{Type: "text", Text: text}}}
}

// answer is what the model says. thought and text may be "".
func (w *writer) answer(thought, text string, calls ...entry.Block) spoken {
	m := w.byModel("stop", len(thought)+len(text))
	if thought != "" {
		m.Content = append(m.Content, thinking{"thinking", thought})
	}
	if text != "" {
		m.Content = append(m.Content, entry.Block{Type: "text", Text: text})
	}
	for _, c := range calls {
		m.Content, m.StopReason = append(m.Content, c), "toolUse"
	}
	return m
}

// byModel is a message of the model without content, and with what it used for so many bytes.
func (w *writer) byModel(stop string, bytes int) spoken {
	return spoken{
		Role: "assistant", API: "anthropic-messages", Provider: "anthropic", Model: "claude-sonnet-4-5",
		StopReason: stop, Usage: w.charge(bytes), Content: []any{},
	}
}

// say commits messages some time after what was before.
func (w *writer) say(ctx context.Context, wait time.Duration, reason string, messages ...spoken) {
	if w.err != nil {
		return
	}
	w.clock.wait(wait)
	w.err = w.turn(ctx, coppice.Turn{Reason: reason}, messages...)
}

// turn commits a turn of messages.
func (w *writer) turn(ctx context.Context, t coppice.Turn, messages ...spoken) (err error) {
	if t.Entries, err = w.drafts(messages...); err != nil {
		return err
	}
	return w.commit(ctx, t)
}

// asks commits a prompt of the user.
func (w *writer) asks(ctx context.Context, wait time.Duration, text string) {
	w.say(ctx, wait, reasonPrompt, prompt(text))
}

// calls commits a message of the model that calls tools.
func (w *writer) calls(ctx context.Context, wait time.Duration, thought, text string, calls ...entry.Block) {
	w.say(ctx, wait, reasonStep, w.answer(thought, text, calls...))
}

// answers commits a message of the model that ends its turn.
func (w *writer) answers(ctx context.Context, wait time.Duration, text string) {
	w.say(ctx, wait, reasonAnswer, w.answer("", text))
}

// fails commits a message of the model that ended with an error.
func (w *writer) fails(ctx context.Context, wait time.Duration, text string) {
	m := w.byModel("error", 0)
	m.Error = text
	w.say(ctx, wait, reasonAnswer, m)
}

// gets commits results of tools.
func (w *writer) gets(ctx context.Context, wait time.Duration, results ...spoken) {
	w.say(ctx, wait, reasonTools, results...)
}

// call is a call of a tool, with an id that follows from the session and the number of the call.
func (w *writer) call(tool string, args any) entry.Block {
	w.called++
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", w.h.ID(), w.called))
	return entry.Call("toolu_"+hex.EncodeToString(sum[:12]), tool, args)
}

// result is the result of a call. details may be nil.
func result(c entry.Block, text string, details any, images ...entry.Block) spoken {
	m := spoken{
		Role: "toolResult", ToolCallID: c.ID, ToolName: c.Name, Details: details, IsError: new(bool),
		Content: []any{entry.Block{Type: "text", Text: text}},
	}
	for _, image := range images {
		m.Content = append(m.Content, image)
	}
	return m
}

// args are arguments of a call, or details of a result.
type args map[string]any

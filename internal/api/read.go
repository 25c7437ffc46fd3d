package api

import (
	"encoding/json"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/provider"
	"github.com/coppice-go/coppice/searchindex"
	"github.com/coppice-go/coppice/transcript"
)

// Resume is what an agent needs to continue.
type Resume struct {
	Session string          `json:"session"`
	Seq     uint64          `json:"seq" doc:"number of the newest commit"`
	Missing uint64          `json:"missing,omitempty" doc:"number of the newest commit that was made and is lost"`
	Commit  string          `json:"commit" doc:"id of the newest commit"`
	Head    *string         `json:"head" doc:"the entry from which the next one grows; null: the next one is a root"`
	Branch  string          `json:"branch"`
	State   json.RawMessage `json:"state" doc:"the agent's state; null if it was never set"`
	Manager json.RawMessage `json:"manager,omitempty" doc:"what the context manager keeps"`

	Docs map[string]json.RawMessage `json:"docs,omitempty" doc:"documents by name"`

	Context []json.RawMessage `json:"context" doc:"the messages of the bounded working context"`
	Window  Window            `json:"window"`
	// OpenCalls are answered before the model is asked again: no provider takes a call without a result.
	OpenCalls []OpenCall `json:"openCalls" doc:"tool calls of the context without a result"`
	IO        backend.IO `json:"io" doc:"requests to the backend"`
}

// Window reports whether the working context is all of the context.
type Window struct {
	Complete       bool `json:"complete" doc:"false: older entries were omitted"`
	OmittedEntries int  `json:"omittedEntries"`
}

// Context is what the model receives next, or received at an earlier point.
type Context struct {
	Messages      []json.RawMessage `json:"messages" doc:"as they were stored, or those of the request to the provider"`
	ThinkingLevel string            `json:"thinkingLevel"`
	Model         *string           `json:"model"`
	Leaf          *string           `json:"leaf" doc:"the entry at which the context ends"`
	OpenCalls     []OpenCall        `json:"openCalls" doc:"tool calls without a result"`
	Diagnostics   []Diagnostic      `json:"diagnostics"`
	Provider      string            `json:"provider,omitempty" doc:"the API in whose form the messages are"`
	System        json.RawMessage   `json:"system,omitempty" doc:"value of the request's field for instructions"`
	Lost          []Loss            `json:"lost,omitzero" doc:"what the request does not have, or not as it was"`
	MoreLost      int               `json:"moreLost,omitempty" doc:"number of losses past 1,000"`
	Omitted       *Omitted          `json:"omitted,omitempty" doc:"what a resume does not get; absent: nothing"`
	Next          string            `json:"next,omitempty" doc:"over HTTP: after of the page that follows"`
	IO            backend.IO        `json:"io" doc:"requests to the backend"`
}

// OpenCall is a tool call without a result.
type OpenCall struct {
	Entry     string          `json:"entry"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments" doc:"null where the message has none"`
}

// Diagnostic is something unusual about an entry of a context.
type Diagnostic struct {
	Entry   string `json:"entry,omitempty"`
	Kind    string `json:"kind"`
	Detail  string `json:"detail,omitempty" doc:"one line for people"`
	Ordinal uint64 `json:"ordinal,omitempty" doc:"number of the entry in the session"`
}

// Loss is something of a context that the request to a provider does not have, or not as it was.
type Loss struct {
	Message int    `json:"message" doc:"index of the message in the context, from 0; -1: none"`
	Entry   string `json:"entry,omitempty"`
	Kind    string `json:"kind"`
	Detail  string `json:"detail,omitempty" doc:"one line for people"`
}

// Omitted are the messages of a context that an agent which resumes does not get: they are beyond its bound.
type Omitted struct {
	Count int    `json:"count" doc:"of the messages from index from up to to, as they are stored"`
	First string `json:"first" doc:"id of the entry of the first one"`
	Last  string `json:"last"`
	From  int    `json:"from" doc:"index of the first one in the context, from 0"`
	To    int    `json:"to" doc:"index after the last one"`
}

func omittedOf(con transcript.Context) *Omitted {
	b := con.Window.Beyond
	if b.Count == 0 {
		return nil
	}
	return &Omitted{b.Count, con.Messages[b.From].Entry, con.Messages[b.To-1].Entry, b.From, b.To}
}

// ContextOf returns the document of a context.
func ContextOf(con transcript.Context) Context {
	return Context{
		Omitted:  omittedOf(con),
		Messages: Messages(con), ThinkingLevel: con.Settings.ThinkingLevel, Model: null(con.Settings.Model),
		Leaf:      null(con.Leaf),
		OpenCalls: convert(con.OpenCalls, func(c transcript.ToolCall) OpenCall { return OpenCall(c) }),
		Diagnostics: convert(con.Diagnostics, func(d transcript.Diagnostic) Diagnostic {
			return Diagnostic{d.Entry, d.Kind, d.Detail, d.Ordinal}
		}),
	}
}

// Messages returns the messages of a context, not nil.
func Messages(con transcript.Context) []json.RawMessage {
	return convert(con.Messages, func(m transcript.Message) json.RawMessage { return m.Raw })
}

// SetRequest replaces the messages by those of the request to a provider.
func (c *Context) SetRequest(r provider.Request) {
	c.Provider, c.System, c.Messages, c.MoreLost = string(r.API), r.System, r.Messages, r.MoreLost
	c.Lost = convert(r.Lost, func(l provider.Loss) Loss { return Loss{l.Message, l.Entry, string(l.Kind), l.Detail} })
}

// Diff is what lies between two points of a session.
type Diff struct {
	Base     *string         `json:"base" doc:"the last entry on both paths; null: none"`
	Messages DiffEntries     `json:"messages"`
	State    json.RawMessage `json:"state" doc:"RFC 6902 patch from the state of A to that of B"`
}

// DiffEntries are the entries that only one of two paths has.
type DiffEntries struct {
	OnlyA []json.RawMessage `json:"onlyA" doc:"complete entries, root first"`
	OnlyB []json.RawMessage `json:"onlyB" doc:"complete entries, root first"`
	MoreA int               `json:"moreA,omitempty" doc:"entries after those of onlyA; only over HTTP, with a limit"`
	MoreB int               `json:"moreB,omitempty" doc:"entries after those of onlyB; only over HTTP, with a limit"`
}

// DiffOf returns the document of a difference.
func DiffOf(d checkpoint.Diff) Diff {
	return Diff{null(d.Base), DiffEntries{Lines(d.OnlyA), Lines(d.OnlyB), d.MoreA, d.MoreB}, d.State}
}

// Match is an entry that a search found.
type Match struct {
	Session  string    `json:"session"`
	Title    string    `json:"title" doc:"name of the session"`
	Entry    string    `json:"entry"`
	Ordinal  uint64    `json:"ordinal" doc:"number of the entry in the session"`
	Type     string    `json:"type"`
	Role     string    `json:"role"`
	Time     time.Time `json:"time"`
	Snippet  string    `json:"snippet" doc:"one line around the match"`
	Mark     [2]int    `json:"mark" doc:"range of the match in the snippet, in bytes of UTF-8"`
	Branches []string  `json:"branches" doc:"branches that contain the entry, at most 16"`
	OnHead   bool      `json:"onHead" doc:"the path to the head contains the entry"`
}

// MatchOf returns the document of a hit.
func MatchOf(h searchindex.Hit) Match {
	return Match{
		h.Session, h.Title, h.Entry, h.Ordinal, h.Type, h.Role, h.Time, h.Snippet, h.Mark, list(h.Branches), h.OnHead,
	}
}

// Prompt is a prompt that a user typed.
type Prompt struct {
	Text    string    `json:"text"`
	Session string    `json:"session"`
	Title   string    `json:"title"`
	Cwd     string    `json:"cwd"`
	Entry   string    `json:"entry"`
	Ordinal uint64    `json:"ordinal" doc:"number of the entry in the session"`
	Time    time.Time `json:"time"`
	Uses    int       `json:"uses" doc:"how often it was typed, in all sessions"`

	Branches []string `json:"branches" doc:"branches that contain the entry, at most 16"`
	OnHead   bool     `json:"onHead" doc:"the path to the head contains the entry"`
}

// PromptOf returns the document of a prompt.
func PromptOf(p searchindex.Prompt) Prompt {
	return Prompt{
		p.Text, p.Session, p.Title, p.Cwd, p.Entry, p.Ordinal, p.Time, p.Uses, list(p.Branches), p.OnHead,
	}
}

// Usage is what the answers of models in a session report. A response of a provider counts once, in one session of the
// store.
type Usage struct {
	Session   string       `json:"session"`
	Scope     string       `json:"scope" enum:"session,path" doc:"session: all branches; path: one path"`
	Entries   int          `json:"entries" doc:"number of entries that were read"`
	Failed    int          `json:"failed,omitempty" doc:"number of entries that failed: answers, results of calls"`
	Usage     Tokens       `json:"usage" doc:"of the answers that this session received"`
	Inherited Tokens       `json:"inherited,omitzero" doc:"of copies of answers that other sessions received"`
	Models    []ModelUsage `json:"models" doc:"of usage, by model, in the order of their names"`
	Days      []DayUsage   `json:"days" doc:"of usage, by day of the answer, oldest first, at most the newest 1,024"`
	Points    []CostAt     `json:"points,omitempty" doc:"how the cost grew, oldest first, at most 512; only on request"`
}

// DayUsage is the usage of one day.
type DayUsage struct {
	Day   string `json:"day" doc:"in UTC, as 2006-01-02"`
	Usage Tokens `json:"usage"`
}

// CostAt is what a session had cost at a commit.
type CostAt struct {
	Seq  uint64  `json:"seq" doc:"number of the commit"`
	Cost float64 `json:"cost" doc:"sum up to and with that commit, all branches"`
}

// ModelUsage is the usage of one model.
type ModelUsage struct {
	Model *string `json:"model" doc:"provider/id; null: answers without a model"`
	Usage Tokens  `json:"usage"`
}

// Tokens are numbers of tokens, and their cost.
type Tokens struct {
	Answers    int     `json:"answers" doc:"number of responses of providers"`
	Input      int64   `json:"input" doc:"without tokens read from or written to a cache"`
	Output     int64   `json:"output" doc:"including reasoning"`
	CacheRead  int64   `json:"cacheRead"`
	CacheWrite int64   `json:"cacheWrite"`
	Reasoning  int64   `json:"reasoning"`
	Total      int64   `json:"total"`
	Cost       float64 `json:"cost" doc:"in the currency of the program that wrote it; 0: none did"`
}

// Settings are the settings at a point of a session.
type Settings struct {
	Session       string            `json:"session"`
	Models        map[string]string `json:"models" doc:"by role, as provider/id"`
	ThinkingLevel string            `json:"thinkingLevel"`
	Configured    string            `json:"configuredThinkingLevel,omitempty" doc:"what the user chose, if another"`
	ServiceTier   string            `json:"serviceTier,omitempty"`
	Mode          string            `json:"mode"`
	ModeData      json.RawMessage   `json:"modeData,omitempty"`
	Tools         []string          `json:"tools,omitempty" doc:"the active tools, where an entry names them"`
	InjectedRules []string          `json:"injectedRules,omitempty"`
	Title         string            `json:"title,omitempty"`
}

// SettingsOf returns the document of the settings of a session.
func SettingsOf(session string, s manager.Settings) Settings {
	return Settings{
		session, s.Models, s.ThinkingLevel, s.Configured, s.ServiceTier, s.Mode, s.ModeData, s.Tools, s.InjectedRules,
		s.Title,
	}
}

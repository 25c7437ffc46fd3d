package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/secrets"
)

// tool is a tool that a model may call: a row of the table.
type tool struct {
	name, text string
	args       []arg
	long       bool // its results may be longer than MaxResult: they come in pieces
	write      bool

	path []string                                           // of one GET whose answer is the result; {session}, {entry}
	run  func(context.Context, *Server, given) (any, error) // in place of path
}

// arg is an argument of a tool.
type arg struct {
	name, text string
	kind       string // of JSON; "" = string
	needed     bool
	query      string // the parameter of the request that it becomes; "" = it has its name
	most       int    // of an integer; 0 = not bounded here
	fallback   string // "" = the service's
}

// given are the arguments of a call, checked, as text.
type given map[string]string

var (
	argSession = arg{name: "session", text: "id of the session", needed: true}
	argAfter   = arg{name: "after", text: "next of the page before"}
	argCwd     = arg{name: "cwd", text: "only sessions of this working directory"}
	argAt      = arg{name: "at", text: "a point in time; default head"}
	argOffset  = arg{name: "offset", kind: "integer", text: "where a long result continues, in bytes"}
)

// limit returns the argument that bounds the items of a page.
func limit(fallback, most int) arg {
	return arg{
		name: "limit", kind: "integer", most: most, fallback: strconv.Itoa(fallback),
		text: fmt.Sprintf("1 to %d, default %d", most, fallback),
	}
}

// table is the tools, in the order in which they are listed.
var table = []tool{
	{
		name: "search_history",
		text: "Find entries by their words, in every branch of every session, best first. indexing, if it is there, " +
			"is how much of the store is indexed: search again later.",
		args: []arg{
			{name: "query", query: "q", needed: true, text: "words, all of them, also parts of words; in quotes " +
				"adjacent; re: begins a regular expression"},
			{name: "session", text: "only this session"},
			argCwd, limit(10, 50), argAfter,
		},
		path: []string{"v1", "search"},
	},
	{
		name: "list_sessions", text: "Sessions, newest activity first.",
		args: []arg{
			{name: "query", query: "q", text: "words that title, first prompt, directory or id have"},
			argCwd,
			{name: "parent", text: "only sessions that this one started"},
			limit(20, 50), argAfter,
		},
		path: []string{"v1", "sessions"},
	},
	{
		name: "read_session",
		text: "Read the conversation of a session, oldest first: the newest part of the path to the head, or to " +
			"entry. Call it again with from = next for what is before that.",
		args: []arg{
			argSession,
			{name: "entry", text: "the end of the path, on any branch; default the head"},
			{name: "from", text: "next of the page before"},
			{name: "following", kind: "boolean", text: "read what follows entry instead; then next leads on"},
			limit(20, 100),
		},
		run: readSession,
	},
	{
		name: "read_entry", text: "An entry in full, as it is stored; large images as references.",
		args: []arg{argSession, {name: "entry", text: "id of the entry", needed: true}},
		path: []string{"v1", "sessions", "{session}", "entries", "{entry}"}, long: true,
	},
	{
		name: "list_branches", text: "Branches of a session with the entries at their ends, and labels of entries.",
		args: []arg{argSession}, run: listBranches, long: true,
	},
	{
		name: "list_commits", text: "Commits of a session, newest first: what changed when, and on which branch.",
		args: []arg{argSession, argAt, limit(20, 50), argAfter},
		path: []string{"v1", "sessions", "{session}", "commits"}, long: true,
	},
	{
		name: "get_state", text: "The agent's state at a point in time.", args: []arg{argSession, argAt},
		path: []string{"v1", "sessions", "{session}", "state"}, long: true,
	},
	{
		name: "what_changed",
		text: "What differs between two points of a session: entries that only one path has, and the JSON patch of " +
			"the state.",
		args: []arg{
			argSession,
			{name: "a", text: "the earlier point", needed: true},
			{name: "b", text: "default head"},
			limit(20, 100),
		},
		path: []string{"v1", "sessions", "{session}", "diff"}, long: true,
	},
	{
		name: "value_history", text: "Which commits changed a value of the state, newest first.",
		args: []arg{
			argSession,
			{name: "path", text: "JSON pointer, such as /plan/step; default the whole state"},
			argAt,
			limit(20, 50), argAfter,
		},
		path: []string{"v1", "sessions", "{session}", "blame"}, long: true,
	},
	{
		name: "label_entry", text: "Give an entry a label that people see, or remove it. The head stays.", write: true,
		args: []arg{
			argSession,
			{name: "entry", text: "id of the entry", needed: true},
			{name: "label", text: "empty removes it", needed: true},
		},
		run: labelEntry,
	},
	{
		name: "begin_branch", write: true,
		text: "Move the head of a session to an entry, so that what is appended next begins a branch there. What was " +
			"after it stays as a branch.",
		args: []arg{
			argSession,
			{name: "entry", text: "the entry after which to go on", needed: true},
			{name: "name", text: "of the new branch"},
			{name: "commit", text: "refuse it if this is not the newest commit any more"},
		},
		run: beginBranch,
	},
}

// listed is a tool as it is listed.
type listed struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	InputSchema map[string]any `json:"inputSchema"`
	Annotations map[string]any `json:"annotations"`
}

// list returns the tools that are offered.
func (s *Server) list() []listed {
	var all []listed
	for _, t := range table {
		if t.write && !s.Write {
			continue
		}
		properties, needed := map[string]any{}, []string{}
		for _, a := range t.arguments() {
			properties[a.name] = map[string]any{"type": a.kindOf(), "description": a.text}
			if a.needed {
				needed = append(needed, a.name)
			}
		}
		all = append(all, listed{t.name, t.text, map[string]any{
			"type": "object", "properties": properties, "required": needed, "additionalProperties": false,
		}, map[string]any{
			"readOnlyHint": !t.write, "destructiveHint": false, "openWorldHint": false,
			"idempotentHint": t.name != "begin_branch",
		}})
	}
	return all
}

func (t *tool) arguments() []arg {
	if t.long {
		return append(slices.Clone(t.args), argOffset)
	}
	return t.args
}

func (a *arg) kindOf() string {
	if a.kind == "" {
		return "string"
	}
	return a.kind
}

// check returns the arguments of a call as text.
func (t *tool) check(raw map[string]json.RawMessage) (given, error) {
	g := given{}
	for _, a := range t.arguments() {
		v, has := raw[a.name]
		delete(raw, a.name)
		text := a.fallback
		if has && string(v) != "null" {
			var err error
			if text, err = a.valueOf(v); err != nil {
				return nil, err
			}
		} else if a.needed {
			return nil, fmt.Errorf("argument %s is missing", a.name)
		}
		if text != "" || has {
			g[a.name] = text
		}
	}
	for name := range raw {
		return nil, fmt.Errorf("there is no argument %.80q", name)
	}
	return g, nil
}

// valueOf returns an argument of a call as text.
func (a *arg) valueOf(raw json.RawMessage) (string, error) {
	switch a.kindOf() {
	case "integer":
		n, err := strconv.Atoi(string(raw))
		if err != nil || n < 0 || a.most > 0 && (n < 1 || n > a.most) {
			return "", fmt.Errorf("argument %s: %.40s: want an integer: %s", a.name, raw, a.text)
		}
		return strconv.Itoa(n), nil
	case "boolean":
		on, err := strconv.ParseBool(string(raw))
		if err != nil {
			return "", fmt.Errorf("argument %s: %.40s: want true or false", a.name, raw)
		}
		return strconv.FormatBool(on), nil
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return "", fmt.Errorf("argument %s: %.40s: want a string", a.name, raw)
	}
	return text, nil
}

// content is a piece of a result.
type content struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// result is what a call of a tool returns.
type result struct {
	Content []content `json:"content"`
	IsError bool      `json:"isError,omitempty"`
}

func (s *Server) callTool(ctx context.Context, raw json.RawMessage) (any, error) {
	var p struct {
		Name      string                     `json:"name"`
		Arguments map[string]json.RawMessage `json:"arguments"`
	}
	if err := params(raw, &p); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(table, func(t tool) bool { return t.name == p.Name && (s.Write || !t.write) })
	if i < 0 {
		return nil, failure(codeParams, "there is no tool %.80q", p.Name)
	}
	r, err := s.useTool(ctx, &table[i], p.Arguments)
	if err != nil {
		//nolint:nilerr // the error is for the model
		return result{[]content{{"text", clip(err.Error(), MaxResult)}}, true}, nil
	}
	return r, nil
}

func (s *Server) useTool(ctx context.Context, t *tool, raw map[string]json.RawMessage) (result, error) {
	g, err := t.check(raw)
	if err != nil {
		return result{}, err
	}
	var doc json.RawMessage
	if t.run != nil {
		v, err := t.run(ctx, s, g)
		if err != nil {
			return result{}, err
		}
		if doc, err = api.Marshal(v); err != nil {
			return result{}, err
		}
	} else if doc, err = s.do(ctx, t.ask(g)); err != nil {
		return result{}, err
	}
	doc, _ = secrets.RedactJSON(doc) // before it is cut
	return t.pieces(string(doc), g)
}

// ask returns the request of a tool that is one.
func (t *tool) ask(g given) ask {
	a := ask{method: http.MethodGet, path: slices.Clone(t.path), query: url.Values{}}
	for _, one := range t.args {
		value, has := g[one.name]
		if i := slices.Index(a.path, "{"+one.name+"}"); i >= 0 {
			a.path[i] = value
			continue
		}
		if name := one.query; has && value != "" {
			if name == "" {
				name = one.name
			}
			a.query.Set(name, value)
		}
	}
	if t.name == "read_entry" {
		a.query.Set("images", "ref")
	}
	return a
}

// pieces returns the result of a text: all of it, or the piece at an offset and how it continues.
func (t *tool) pieces(text string, g given) (result, error) {
	offset, _ := strconv.Atoi(g[argOffset.name]) // it is checked; "" = 0
	switch {
	case !t.long && len(text) > MaxResult:
		return result{}, fmt.Errorf("the result has %d bytes, more than %d: ask for less, such as with a lower limit",
			len(text), MaxResult)
	case offset > len(text):
		return result{}, fmt.Errorf("argument offset: the result has %d bytes", len(text))
	}
	for offset < len(text) && !utf8.RuneStart(text[offset]) {
		offset++
	}
	piece := clip(text[offset:], MaxResult)
	r := result{Content: []content{{"text", piece}}}
	if end := offset + len(piece); end < len(text) || offset > 0 {
		note := fmt.Sprintf("bytes %d to %d of %d", offset, end, len(text))
		if end < len(text) {
			note += fmt.Sprintf("; offset %d continues", end)
		}
		r.Content = append(r.Content, content{"text", note})
	}
	return r, nil
}

// clip bounds a text, between runes.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/importer"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/formats"
	"github.com/coppice-go/coppice/transcript"
)

// linesType is the media type of lines of JSON.
const linesType = "application/x-ndjson"

// commitQuery is the parameters of a commit.
type commitQuery struct {
	request
	ID     string `path:"id" maxLength:"128" doc:"the session's id"`
	Format string `query:"format" enum:"claude-code,codex" doc:"the program whose lines the entries are"`
	Key    string `header:"Idempotency-Key" maxLength:"256" doc:"stored once however often sent; 1,024 are known"`
	Writer string `header:"Coppice-Writer" maxLength:"256" doc:"who writes; a claim fences the other writers"`
}

// readCommit reads the body of a commit: JSON, or, with a format, lines.
func readCommit(r *http.Request, format string) (b newCommit, err error) {
	b.Entries.asLines = format != ""
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); format == "" || kind != linesType {
		err = decode(r, &b)
	} else if err = b.Entries.readLines(r); err != nil {
		seenOf(r).skip(r)
	}
	return b, err
}

// lines are the lines of a program that a commit adds to a session.
type lines struct {
	format interop.Format
	list   []json.RawMessage
	known  string // the rule for what the session has; "" = it is passed over
	salt   string
}

// profile returns the rules for the contexts of a new session of the program; "" = the default.
func (l *lines) profile() transcript.Profile {
	row, err := formats.Of(l.format)
	if l.format == "" || err != nil {
		return ""
	}
	return row.Profile
}

// entries returns the entries of the lines, or those of a commit without lines. Equal lines with one Idempotency-Key
// are equal entries.
func (l *lines) entries(
	ctx context.Context, h *coppice.Session, own []transcript.Draft,
) ([]transcript.Draft, error) {
	if len(l.list) == 0 {
		return own, nil
	}
	if l.salt == "" {
		l.salt = rand.Text() //nolint:forbidigo // no other commit may make the same ids
	}
	list, err := importer.Lines(l.format, l.list, importer.LinesOptions{
		Salt:  l.salt,
		After: func(id string) (string, error) { return after(ctx, h, id) },
		Root:  func(id string) (bool, error) { return isRoot(ctx, h, id) },
		Tool:  func(call string) (string, error) { return toolOf(ctx, h, call) },
	})
	if errors.Is(err, importer.ErrLines) {
		return nil, badInput("entries", err)
	}
	if err != nil {
		return nil, err
	}
	rule := transcript.KnownIgnore
	if l.known != "" {
		if rule, err = api.KnownRule(l.known); err != nil {
			return nil, fmt.Errorf("entries: %w", err)
		}
	}
	for i := range list {
		list[i].OnKnownID = rule
	}
	return list, nil
}

// maxBack bounds the entries before the head among which one that a line names is looked for, to find its results.
const maxBack = 256

// after returns the entry that an entry which names another one grows from: the last of the results, and of the entries
// that are no messages, which follow that one on the path to the head, for lines do not name these; else that one. "" =
// the session does not have it.
func after(ctx context.Context, h *coppice.Session, id string) (string, error) {
	last, n := "", 0
	for e, err := range h.Path(ctx, "") {
		if n++; err != nil || n > maxBack {
			break
		}
		if e.ID == id {
			if last == "" {
				last = id
			}
			return last, nil
		}
		switch role := roleOf(e); {
		case role != "" && role != "toolResult":
			last = ""
		case last == "":
			last = e.ID
		}
	}
	e, err := entryOf(ctx, h, id)
	return e.ID, err
}

// entryOf returns an entry as it was appended, by its whole id; the zero value = the session does not have it.
func entryOf(ctx context.Context, h *coppice.Session, id string) (e transcript.Entry, err error) {
	for e, err := range h.Originals(ctx, id) {
		if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, coppice.ErrDeleted) || err == nil && e.ID != id {
			return transcript.Entry{}, nil
		}
		return e, err
	}
	return e, nil
}

// roleOf returns the role of a message; "" = the entry is none.
func roleOf(e transcript.Entry) string {
	return rawjson.Text(rawjson.Field(rawjson.Field(e.Raw, "message"), "role"))
}

// isRoot reports whether an entry that names none begins a conversation: one after messages does, and not one after
// what is no message. Of an entry that the session has it reports whether it did.
func isRoot(ctx context.Context, h *coppice.Session, id string) (bool, error) {
	e, err := entryOf(ctx, h, id)
	if err != nil || e.ID != "" {
		return e.ParentID == "", err
	}
	n := 0
	for e, err := range h.Path(ctx, "") {
		if n++; err != nil || n > maxBack || roleOf(e) != "" {
			return true, err
		}
	}
	return n == 0, nil
}

// toolOf returns the name of the tool of a call in the context; "" = it is not there.
func toolOf(ctx context.Context, h *coppice.Session, call string) (string, error) {
	con, err := h.Context(ctx)
	if err != nil {
		return "", err
	}
	for i := len(con.Messages) - 1; i >= 0; i-- {
		for m := rawjson.Walk(rawjson.Field(con.Messages[i].Raw, "content")); m.Closing == ']' && m.Next(); {
			isCall := rawjson.Text(rawjson.Field(m.Val, "type")) == "toolCall"
			if isCall && rawjson.Text(rawjson.Field(m.Val, "id")) == call {
				return rawjson.Text(rawjson.Field(m.Val, "name")), nil
			}
		}
	}
	return "", nil
}

// maxBeforeLines bounds the entries among which the first line of a program is looked for.
const maxBeforeLines = 1000

// writeLines writes the lines of a program that a session has, each with a line feed, in the order of their entries.
// done = false: there are none among the first entries, or the session was imported.
func writeLines(ctx context.Context, q *sessionPath, w io.Writer) (done bool, err error) {
	h, err := q.on.Store.Open(ctx, q.id, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	if h.Info().Source != nil {
		return false, nil
	}
	n := 0
	for e, err := range h.Originals(ctx) {
		if n++; err != nil || !done && n > maxBeforeLines {
			return done, err
		}
		for _, line := range importer.Originals(e.Raw) {
			done = true
			if _, err := w.Write(append(line, '\n')); err != nil {
				return done, err
			}
		}
	}
	return done, nil
}

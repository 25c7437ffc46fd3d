package damage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
)

// answer is the result of one question to a session: text, or an error.
type answer struct {
	text string
	err  error
}

// sight is everything that a user sees of a session.
type sight struct {
	openErr error
	head    checkpoint.Head
	state   answer
	context []string // its messages: the entry's id, and the message
	gaps    bool     // images are missing in it, and it reports so
	ctxErr  error
	entries []seen // until the first error
	readErr error
	log     map[uint64]checkpoint.Commit // until the first error
	logErr  error
	views   map[uint64]view // at commits
	file    []byte          // the output of Export
	fileErr error
	listed  *checkpoint.Summary // nil = the list does not have it
	listErr error
}

// seen is an entry as a program reads it.
type seen struct{ id, raw string }

// stored is a stored line.
type stored struct {
	seq    uint64 // of the commit that made it durable
	id     string // "" = a commit line
	raw    string
	commit bool
}

// scope is the commits at which a session is read.
type scope struct {
	at       []uint64 // these
	all      bool     // every one
	contexts bool     // with the context at each
}

// look reads everything in a session, and its state at some commits.
func look(st *coppice.Store, id string, where scope) *sight {
	s := &sight{log: map[uint64]checkpoint.Commit{}, views: map[uint64]view{}}
	for sum, err := range st.List(ctx, coppice.ListOptions{}) {
		if s.listErr = err; err == nil && sum.ID == id {
			s.listed = &sum
		}
	}
	var file bytes.Buffer
	s.fileErr = st.Export(ctx, id, &file)
	s.file = file.Bytes()
	h, err := st.Open(ctx, id, &coppice.SessionOptions{ReadOnly: true})
	if s.openErr = err; err != nil {
		return s
	}
	defer func() { _ = h.Close() }()
	s.head = h.Head()
	var state json.RawMessage
	err = h.State(&state)
	s.state = answer{string(state), err}
	c, err := h.Context(ctx)
	s.ctxErr = err
	for _, m := range c.Messages {
		s.context = append(s.context, m.Entry+" "+string(m.Raw))
	}
	s.gaps = len(c.Diagnostics) > 0
	for e, err := range h.Entries(ctx) {
		if s.readErr = err; err == nil {
			s.entries = append(s.entries, seen{e.ID, string(e.Raw)})
		}
	}
	for c, err := range h.Log(ctx, coppice.Target{}) {
		if s.logErr = err; err == nil {
			s.log[c.Seq] = c
		}
	}
	if where.all {
		for seq := range s.head.Seq + 1 {
			where.at = append(where.at, seq)
		}
	}
	for _, seq := range where.at {
		if seq <= s.head.Seq {
			s.views[seq] = viewAt(h, seq, where.contexts)
		}
	}
	return s
}

// view is the session at a commit.
type view struct {
	state   string
	context []string
	gaps    bool
	err     error
}

func viewAt(h *coppice.Session, seq uint64, context bool) (is view) {
	var at coppice.Target
	if is.err = at.UnmarshalText(fmt.Appendf(nil, "seq:%d", seq)); is.err != nil {
		return is
	}
	v, err := h.At(ctx, at)
	if is.err = err; err != nil {
		return is
	}
	var state json.RawMessage
	if is.err = v.State(&state); is.err != nil {
		return is
	}
	if is.state = string(state); !context {
		return is
	}
	c, err := v.Context(ctx)
	is.err = err
	for _, m := range c.Messages {
		is.context = append(is.context, m.Entry+" "+string(m.Raw))
	}
	is.gaps = len(c.Diagnostics) > 0
	return is
}

// linesOf returns the lines of an intact session as they are stored.
func linesOf(b backend.Backend, id string) (out []stored, err error) {
	j, err := journal.Open(ctx, config(b, id))
	if err != nil {
		return nil, err
	}
	seq := uint64(0)
	for l, err := range j.Lines(ctx, j.State(), nil) {
		if err != nil {
			return nil, err
		}
		line := stored{seq: seq, raw: string(l.Raw), commit: l.Commit}
		if l.Commit {
			seq++
		} else {
			line.id = idOf(l.Raw)
		}
		out = append(out, line)
	}
	return out, j.Close(ctx)
}

// config returns the configuration of a reading journal.
func config(b backend.Backend, id string) journal.Config {
	o := options("judge", 99)
	return journal.Config{Backend: b, Session: id, Writer: "judge", Now: o.Now, Rand: o.Rand, ReadOnly: true}
}

// typed reports whether an error has a type that a program can distinguish: damage, or nothing there.
func typed(err error) bool {
	return err == nil || errors.Is(err, coppice.ErrCorrupt) || errors.Is(err, fs.ErrNotExist)
}

// reference replaces a missing image in a message.
const reference = "coppice-blob:sha256:"

// sameMessages compares contexts; if missing images are reported, a message with a reference counts as the same.
func sameMessages(got, want []string, gaps bool) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d messages instead of %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] && (!gaps || !strings.Contains(got[i], reference)) {
			return fmt.Sprintf("message %d is %.200q instead of %.200q", i, got[i], want[i])
		}
	}
	return ""
}

package importer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"sync/atomic"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/transcript"
)

// Clock is the time of a store into which threads are imported: that of the step that is committed, so that the session
// can be read as of a time, and is listed by its last activity. Between threads it is the time of the machine.
type Clock struct {
	machine func() time.Time
	at      atomic.Int64 // nanoseconds since 1970; 0 = the machine's time
}

// NewClock returns a clock. now is the time of the machine.
func NewClock(now func() time.Time) *Clock { return &Clock{machine: now} }

// Now returns the time.
func (c *Clock) Now() time.Time {
	if at := c.at.Load(); at != 0 {
		return time.Unix(0, at).UTC()
	}
	return c.machine()
}

// set sets the time to that of a step, or to the machine's time if that is unknown. It is not before least, nor after
// the machine's time.
func (c *Clock) set(step, least time.Time) {
	c.at.Store(0)
	now := c.Now()
	if step.Before(least) {
		step = least
	}
	if !step.IsZero() && step.Year() >= 1970 && step.Before(now) {
		c.at.Store(step.UnixNano())
	}
}

// ThreadOptions describe a thread.
type ThreadOptions struct {
	File, Format string
	Session      coppice.SessionOptions // of a new session
	Clock        *Clock                 // of the store; nil = the store has a clock of its own
	Closed       func(error)            // as that of Options
}

// Thread is the session of a thread that a framework has stored. It is imported with commits, each of which has the
// state of a step: Store.Import takes entries alone. The names of entries depend on their content, so that an import
// that is repeated or interrupted continues where it was.
type Thread struct {
	o    ThreadOptions
	s    *coppice.Session // nil = it was deleted
	tree *transcript.Tree // of the session as it was; nil = it is new
	own  map[string]bool  // entries of this import
	last *lastStep        // of the import before; nil = there was none
	used bool             // the session has commits of others, so it stays as it is
	left int              // steps that were not stored for that reason
	res  Result

	found transcript.DiagnosticList
}

// lastStep is the document by which a later import recognizes that nothing else was committed.
type lastStep struct {
	Head  string `json:"head"`  // the entry at which the import left the session
	State string `json:"state"` // the beginning of the state's SHA-256, in hexadecimal digits
}

// importedDoc is the name of that document.
const importedDoc = "imported"

// Step is a commit of a thread.
type Step struct {
	Entries []transcript.Draft // each has an id
	State   json.RawMessage    // nil = unchanged
	From    *string            // as that of coppice.Turn
	Docs    map[string]any
	Reason  string
	Time    time.Time
}

// OpenThread opens the session of a thread, or prepares a new one. Close must be called.
func OpenThread(ctx context.Context, st *coppice.Store, id string, o ThreadOptions) (*Thread, error) {
	t := &Thread{o: o, own: map[string]bool{}}
	t.res = Result{File: o.File, Format: o.Format, Session: id, Diagnostics: []Diagnostic{}}
	meta := maps.Clone(o.Session.Meta)
	if meta == nil {
		meta = map[string]string{}
	}
	meta[ProgramMeta] = o.Format
	o.Session.Meta = meta
	s, err := st.OpenOrCreate(ctx, id, &o.Session)
	if failed, ok := errors.AsType[*coppice.Error](err); ok && failed.Gone != nil {
		t.res.Deleted = failed.Gone.Deleted
		return t, nil
	}
	if err != nil {
		return nil, err
	}
	t.s = s
	if s.Info().Commit == "" {
		return t, nil
	}
	if t.tree, err = s.Tree(ctx); err == nil {
		err = s.Doc(importedDoc, &t.last)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	t.used = t.last == nil || t.last.Head != s.Head().Entry
	return t, nil
}

// Deleted reports whether the session was deleted, after which it is not imported again.
func (t *Thread) Deleted() bool { return t.s == nil }

// Session returns the session, which has no commit if it is new.
func (t *Thread) Session() *coppice.Session { return t.s }

// Has reports whether the session has an entry.
func (t *Thread) Has(id string) bool {
	if t.own[id] {
		return true
	}
	if t.tree == nil {
		return false
	}
	_, has := t.tree.Node(id)
	return has
}

// Head returns the entry from which the next step grows without From.
func (t *Thread) Head() string { return t.s.Head().Entry }

// Commit stores a step, if it changes anything. Of a session that was used since the last import it stores none.
func (t *Thread) Commit(ctx context.Context, p Step) error {
	var now lastStep
	if t.last != nil {
		now = *t.last
	}
	if p.State != nil {
		sum := sha256.Sum256(p.State)
		now.State = hex.EncodeToString(sum[:8])
	}
	if n := len(p.Entries); n > 0 {
		now.Head = p.Entries[n-1].ID
	} else if p.From != nil {
		now.Head = *p.From
	}
	if len(p.Entries) == 0 && t.last != nil && now == *t.last {
		return nil
	}
	if t.used {
		t.left++
		return nil
	}
	docs := map[string]any{importedDoc: now}
	maps.Copy(docs, p.Docs)
	if t.o.Clock != nil {
		t.o.Clock.set(p.Time, t.s.Info().Updated)
	}
	_, err := t.s.Commit(ctx, coppice.Turn{
		Entries: p.Entries, State: p.State, From: p.From, Docs: docs, Reason: p.Reason,
	})
	if err != nil {
		return err
	}
	for _, d := range p.Entries {
		t.own[d.ID] = true
	}
	t.res.Added += len(p.Entries)
	t.res.Grew = t.tree != nil
	t.last = &now
	return nil
}

// Report adds a diagnostic.
func (t *Thread) Report(kind, detail string) { t.found.Add("", 0, kind, detail) }

// Bad reports a part that cannot be read, and counts it.
func (t *Thread) Bad(kind, detail string) {
	t.res.BadLines++
	t.Report(kind, detail)
}

// Close closes the session and returns the result.
func (t *Thread) Close(ctx context.Context) (res Result, err error) {
	if t.s == nil {
		return t.res, nil
	}
	if t.left > 0 {
		t.Report("in-use", "the session was continued here: what was added elsewhere is not imported")
	}
	for _, d := range t.found.All() {
		t.res.Diagnostics = append(t.res.Diagnostics, diagnosticOf(d))
	}
	defer func() {
		err = errors.Join(err, Options{Closed: t.o.Closed}.end(t.s))
		res = t.res
		if t.o.Clock != nil {
			t.o.Clock.at.Store(0)
		}
	}()
	if t.s.Info().Commit == "" {
		return t.res, nil
	}
	tree, err := t.s.Tree(ctx)
	if err != nil {
		return t.res, err
	}
	t.res.Entries, t.res.Unchanged = int(t.s.Info().Entries), t.tree != nil && !t.res.Grew
	if !t.res.Unchanged {
		t.res.count(tree)
	}
	return t.res, nil
}

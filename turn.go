package coppice

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// Turn is what a Commit stores in addition to the entries that were appended.
type Turn struct {
	// The agent's state, and the conversation manager's own. nil = unchanged, json.RawMessage("null") clears. Each is
	// at most 4 MiB long and checkpoint.MaxStateDepth levels deep, a document of Docs checkpoint.MaxDocDepth: else
	// backend.ErrTooLarge, a *codec.LimitError, and nothing was applied.
	State, Manager any
	Reason         string // default "turn"; own words: [a-z0-9.-]{1,32}

	// Docs are small documents in addition to the state, by name: what an adapter or an application keeps of the
	// session, such as a summary. A value is anything that encoding/json takes; nil, or a name that is absent =
	// unchanged, json.RawMessage("null") removes. They are stored and restored with the state, and conflict as it does.
	// A name is 1 to 128 of [A-Za-z0-9._:/-]. A document has at most 64 KiB, a session at most 64 documents and
	// 256 KiB with their names: else backend.ErrTooLarge, a *codec.LimitError, and nothing was applied.
	Docs map[string]any

	// Key makes the turn idempotent, at most 256 bytes. The session remembers the keys of its last 1,024 commits
	// that had one, across restarts and writers. A turn with a known key is not applied again: Commit returns the
	// receipt of the first time, with Repeated; what it would have stored of the buffer is dropped. Other content under
	// a known key is ErrKeyReused: content is Reason, State, Manager, Docs, Entries, From and the buffer, not Base,
	// Writer and KeepBoth. A turn with a key should carry its entries.
	Key string

	// Entries are stored after what was appended. The first grows from the head of the commit Base, or from the last
	// entry that was appended; each further one grows from the one before it, unless Draft.Parent names another entry.
	// If the turn is not stored, the handle drops them.
	Entries []transcript.Draft

	// Base is the id of the commit that the turn was made on. A turn with a Base does not store what was appended. If
	// branch, head or document of the session differ since, Commit returns ErrConflict, or with KeepBoth stores the
	// turn as a sibling branch (Receipt.Kept). Commits that moved none of them, such as labels, do not count. A Base
	// that is the end of a kept branch continues that branch. An id that is no commit's is fs.ErrNotExist, unless Key
	// is known. "" = the commit that the handle shows (Head().Commit); Newest = the newest one.
	Base string

	// From moves the head to an entry (its id or a unique prefix; "" = before the first entry) before the turn's own
	// entries, in the same commit; Branch and Commit need two. State, Manager and Docs change the document in force
	// at that entry. Without a Base it is ErrUncommitted if something was appended to the handle. nil = the turn grows
	// from the head.
	From *string

	// Writer is the name of the writer in the commit; "" = Options.Writer. If several callers share a handle, a Claim
	// of one of them (WithWriter) fences the turns of the others that were made on an earlier commit.
	Writer string

	// KeepBoth stores this turn as a branch where it meets a conflict or a fence (Receipt.Kept).
	// SessionOptions.KeepBoth does so for every turn of the handle in a conflict. The handle stays where it was: it
	// is behind the session, until Reload. A turn of unknown outcome that keeps both and has no key must not be sent
	// again: call Settle.
	KeepBoth bool
	// FailFenced makes a turn with KeepBoth fail at a fence, as it does without KeepBoth: ErrFenced.
	FailFenced bool
}

// Newest is the Base of a turn on the newest commit of the session, whichever that is. Such a turn is stored even if
// another writer has claimed the session. A handle that is behind does not show it before Reload.
const Newest = "*"

// reasonFork is the reason of the commit by which a fork takes the title and the directory of its options.
const reasonFork = "fork"

// Receipt is what a commit did.
type Receipt struct {
	checkpoint.Head     // Seq, Commit, Epoch, Entry, Branch
	Entries         int // how many it made durable
	// the branch on which a losing turn is kept (KeepBoth), or the entries that a Rollback left; "" = none
	Kept     string
	Snapshot string   // that the policy had taken of an earlier state, which this commit names; "" = none
	Warnings []string // soft limits passed, with value and limit
	Bytes    int      // size of the checkpoint or of the append
	IO       backend.IO

	IDs []string // of Turn.Entries, in order; with Repeated those of the first time
	// of IDs, those that the session had: none of these entries was stored again (transcript.KnownIgnore, KnownAmend)
	Known []string
	// Turn.Key was known: this is the receipt of the first time, and nothing was applied now. Or all entries were
	// known, and there was nothing else: see transcript.KnownIgnore
	Repeated bool
	// Something was committed since the Base: for an annotation any commit, for a kept turn, or where all entries were
	// known, one that changed branch, head or document. Commit is then no base for what its caller saw.
	Behind bool
}

// edit checks a turn, and returns what it changes in the document as JSON.
func (t *Turn) edit() (*docEdit, error) {
	e := &docEdit{}
	var err error
	if e.state, err = marshalState("state", t.State); err != nil {
		return nil, err
	}
	if e.manager, err = marshalState("manager", t.Manager); err != nil {
		return nil, err
	}
	if e.docs, err = marshalDocs(t.Docs); err != nil {
		return nil, err
	}
	if err := errors.Join(checkName("idempotency key", t.Key), checkName("writer", t.Writer)); err != nil {
		return nil, err
	}
	return e, checkReason(t.Reason)
}

// digest returns 16 hex digits of what a turn with an idempotency key holds: reason, state, manager, entries, documents
// and From, but not the commit that it was made on, nor what was appended. Without a key it is "".
func (t *Turn) digest(e *docEdit) string {
	if t.Key == "" {
		return ""
	}
	h := sha256.New()
	w := bufio.NewWriterSize(h, 2<<10) // most parts are short; a hash never fails
	write := func(kind byte, p []byte) {
		_, _ = w.Write(binary.BigEndian.AppendUint64(append(w.AvailableBuffer(), kind), uint64(len(p))))
		_, _ = w.Write(p)
	}
	part := func(present bool, p []byte) {
		if present {
			write(1, p)
		} else {
			write(0, p)
		}
	}
	part(true, []byte(t.Reason))
	part(e.state != nil, e.state)
	part(e.manager != nil, e.manager)
	for i := range t.Entries {
		d := &t.Entries[i]
		for _, text := range []string{d.Type, d.ID, d.Parent} {
			part(true, []byte(text))
		}
		part(d.Body != nil, d.Body)
		part(d.Raw != nil, d.Raw)
	}
	for _, name := range slices.Sorted(maps.Keys(e.docs)) {
		write(2, []byte(name))
		write(2, e.docs[name])
	}
	if t.From != nil {
		write(3, []byte(*t.From))
	}
	_ = w.Flush()
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// marshalDocs returns the documents that a turn changes as JSON.
func marshalDocs(docs map[string]any) (map[string][]byte, error) {
	if len(docs) == 0 {
		return nil, nil
	}
	change := make(map[string][]byte, min(len(docs), checkpoint.MaxDocs))
	for name, v := range docs {
		p, err := marshal(fmt.Sprintf("document %q", name), v)
		if err == nil {
			err = checkpoint.CheckDoc(name, p)
		}
		if err != nil {
			return nil, err
		}
		if p != nil {
			change[name] = p
		}
	}
	return change, nil
}

// marshalState returns a state, or a manager's, as JSON.
func marshalState(what string, v any) ([]byte, error) {
	p, err := marshal(what, v)
	if err == nil {
		err = checkpoint.CheckState(what, p)
	}
	return p, err
}

// marshal returns v as JSON; nil for nil and for no bytes.
func marshal(what string, v any) ([]byte, error) {
	if raw, ok := v.(json.RawMessage); v == nil || ok && len(raw) == 0 {
		return nil, nil
	}
	p, err := rawjson.Marshal(what, v) // raw JSON keeps its text
	if err != nil {
		return nil, fmt.Errorf("marshal %s: %w", what, err)
	}
	if len(p) > checkpoint.MaxState {
		return nil, layout.TooLarge(what, checkpoint.MaxState, len(p))
	}
	return p, nil
}

// ownReasons have a meaning in the log that a turn must not claim. "create" is one as well, except for
// the first commit of a session.
var ownReasons = []string{
	"amend", "branch", "claim", "conflict", "create", "delete", "fork", "hold", "import", "label", "names", "partial",
	"repair", "roll", "rollback",
}

func checkReason(reason string) error {
	bad := strings.ContainsFunc(reason, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '.' && r != '-'
	})
	if bad || len(reason) > 32 {
		return layout.BadInput("reason %.40q: want 1 to 32 of a-z, 0-9, '.' and '-'", reason)
	}
	if reason != "create" && slices.Contains(ownReasons, reason) {
		return layout.BadInput("reason %q is reserved", reason)
	}
	return nil
}

// checkName refuses a name, such as a key or that of a branch, that is too long or not valid UTF-8.
func checkName(what, name string) error {
	if len(name) > checkpoint.MaxName {
		return layout.TooLarge(what, checkpoint.MaxName, len(name))
	}
	return rawjson.CheckText(what, name)
}

// docEdit is a change of the document.
type docEdit struct {
	state, manager []byte            // nil = unchanged; "null" = cleared
	docs           map[string][]byte // by name, the same of each

	context    []transcript.Item
	own        []*journal.Entry // of the turn: those that are stored are added to context
	setContext bool
}

// then is the edit of doing e and then f; either may be nil.
func (e *docEdit) then(f *docEdit) *docEdit {
	switch {
	case e == nil:
		return f
	case f == nil:
		return e
	}
	sum := *e
	if f.state != nil {
		sum.state = f.state
	}
	if f.manager != nil {
		sum.manager = f.manager
	}
	if len(f.docs) > 0 {
		sum.docs = maps.Clone(f.docs)
		for name, p := range e.docs {
			if _, again := f.docs[name]; !again {
				sum.docs[name] = p
			}
		}
	}
	if f.setContext {
		sum.context, sum.own, sum.setContext = f.context, f.own, true
	}
	return &sum
}

// changes reports whether the edit can change a document.
func (e *docEdit) changes() bool {
	return e != nil && (e.state != nil || e.manager != nil || len(e.docs) > 0 || e.setContext)
}

// withDocs returns a copy of documents after a change of them; nil where none is left.
func withDocs(docs map[string]json.RawMessage, change map[string][]byte) map[string]json.RawMessage {
	after := make(map[string]json.RawMessage, len(docs)+len(change))
	maps.Copy(after, docs)
	for name, p := range change {
		if after[name] = p; string(p) == "null" {
			delete(after, name)
		}
	}
	if len(after) == 0 {
		return nil
	}
	return after
}

// apply makes the document after the edit.
func (e *docEdit) apply(d checkpoint.Document) checkpoint.Document {
	set := func(dst *[]byte, src []byte) {
		switch {
		case string(src) == "null":
			*dst = nil
		case src != nil:
			*dst = src
		}
	}
	set((*[]byte)(&d.State), e.state)
	set((*[]byte)(&d.Manager), e.manager)
	if len(e.docs) > 0 {
		d.Docs = withDocs(d.Docs, e.docs)
	}
	if e.setContext {
		d.Context = withOwn(e.context, e.own)
	}
	return d
}

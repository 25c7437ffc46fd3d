package coppice

import (
	"context"
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
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/internal/session"
	"github.com/coppice-go/coppice/transcript"
)

// Turn is what a Commit saves beside the entries that were appended.
type Turn struct {
	// The agent's state, and the conversation manager's own. nil = unchanged, json.RawMessage("null") clears. Each is
	// at most 4 MiB long and checkpoint.MaxStateDepth levels deep, a document of Docs checkpoint.MaxDocDepth: else
	// backend.ErrTooLarge, a *codec.LimitError, and nothing was applied.
	State, Manager any
	Reason         string // default "turn"; own words: [a-z0-9.-]{1,32}

	// Docs are small documents beside the state, by name: what an adapter or an application keeps of the session, such
	// as a summary. A value is anything that encoding/json takes; nil, or a name that is absent = unchanged,
	// json.RawMessage("null") removes. They are stored, restored and in conflict as the state is. A name is 1 to 128 of
	// [A-Za-z0-9._:/-]. A document has at most 64 KiB, a session at most 64, and 256 KiB together with their names:
	// else backend.ErrTooLarge, a *codec.LimitError, and nothing was applied.
	Docs map[string]any

	// Key makes the turn idempotent, at most 256 bytes. The session remembers the keys of its last 1,024 commits
	// that had one, across restarts and writers. A turn with a known key is not applied again: Commit returns the
	// receipt of the first time, with Repeated; what it would have stored of the buffer is dropped. Other content under
	// a known key is ErrKeyReused: content is Reason, State, Manager, Docs, Entries, From and the buffer, not Base,
	// Writer and KeepBoth. A turn with a key should carry its entries.
	Key string

	// Entries are stored after what was appended. The first grows from the head of the commit Base, or from the last
	// entry that was appended, each other from the one before it, unless Draft.Parent names another entry. If the turn
	// is not stored they are the caller's: the handle keeps nothing of them.
	Entries []transcript.Draft

	// Base is the id of the commit that the turn was made on. A turn with a Base leaves alone what was appended. If
	// branch, head or document of the session differ since, Commit returns ErrConflict, or with KeepBoth stores the
	// turn as a sibling branch (Receipt.Kept). Commits that moved none of them, labels say, do not count. A Base that
	// is the end of a kept branch continues that branch. An id that is no commit's is fs.ErrNotExist, unless Key is
	// known. "" = the commit that the handle shows (Head().Commit); Newest = the newest one.
	Base string

	// From moves the head to an entry (its id or a unique prefix; "" = before the first entry) before the turn's own
	// entries, in the same commit: what Branch and Commit do in two. State, Manager and Docs change the document in
	// force there. Without a Base, a handle to which something was appended refuses it: ErrUncommitted. nil = the turn
	// grows from the head.
	From *string

	// Writer is the name of who made the turn, in its commit; "" = Options.Writer. Where several callers share a
	// handle, a Claim of one of them (WithWriter) fences the turns of the others that were made on a commit before.
	Writer string

	// KeepBoth stores this turn as a branch where it meets a conflict or a fence (Receipt.Kept).
	// SessionOptions.KeepBoth does so for every turn of the handle in a conflict. The handle stays where it was: it
	// is behind the session, until Reload. A turn of unknown outcome that keeps both and has no key must not be sent
	// again: call Settle.
	KeepBoth bool
}

// Newest is the Base of a turn that is made on the newest commit of the session, whichever that is, also where another
// writer has claimed the session. A handle that is behind does not show such a turn before Reload.
const Newest = session.Newest

// Receipt says what a commit did.
type Receipt struct {
	checkpoint.Head     // Seq, Commit, Epoch, Entry, Branch
	Entries         int // how many it made durable
	// the branch on which a losing turn (KeepBoth) or an abandoned line (Rollback) is now; "" = none
	Kept     string
	Snapshot string   // that the policy had taken of an earlier state, which this commit names; "" = none
	Warnings []string // soft limits passed, with value and limit
	Bytes    int      // size of the checkpoint or of the append
	IO       backend.IO

	IDs []string // of Turn.Entries, in order; with Repeated those of the first time
	// Turn.Key was known: this is the receipt of the first time, and nothing was applied now. Or all entries were
	// known, and there was nothing else: see transcript.KnownIgnore
	Repeated bool
	// Branch, head or document of the session had changed since the Base of what was made: of an annotation, of a kept
	// turn, or where all entries were known. Commit is then no base for what its caller saw.
	Behind bool
}

// Change is one commit as Watch yields it, with the entries that it made durable, as they were appended: an amendment
// is an entry of its own (transcript.Entry.Amendment). Or it is partial output, as WatchPartial yields it between
// commits.
type Change struct {
	Commit  checkpoint.Commit // its Commit is "" in a change of partial output
	Entries []transcript.Entry
	Partial json.RawMessage // what is streamed now; nil = nothing any more. Of a commit always nil

	statePatch func(ctx context.Context) (json.RawMessage, error)
}

// StatePatch returns the RFC 6902 patch from the agent's state before the commit to the one after it. It is [] where
// the state is the same: a commit that keeps a losing turn on a branch changes nothing of the session's state. It
// computes from what Watch has read; only for the first commit of a Watch it may read one segment. Partial output has
// none: nil.
// Until the Change is dropped it keeps in memory what at most 64 commits said of the state.
func (c Change) StatePatch(ctx context.Context) (json.RawMessage, error) {
	if c.statePatch == nil {
		return nil, nil
	}
	return c.statePatch(ctx)
}

// BranchOptions of Session.Branch.
type BranchOptions struct {
	Name    string // names the new branch; "" = the head is on the branch that the entry is on
	Summary string // adds a branch_summary entry of the path that is left, in the same commit

	Details  json.RawMessage // of the summary: what its maker keeps beside the text; nil = none
	FromHook bool            // a hook made the summary, not the program itself
}

// Commit stores everything that was appended and the turn's own entries, with the turn's state: one PUT, or one append
// and one sync, and one PUT more for each new large image. Callers of one handle wait for each other, in order of
// arrival. A nil error means that all of it is stored, on whatever branch; if the receipt says Repeated, nothing was
// done. A turn with nothing to store and no Key commits nothing, and its receipt names the commit that the handle
// shows.
//
// On an error the handle is as it was before the call: State, and what was appended.
//
//   - ErrCommitUnknown: the turn may be stored. The handle keeps the request: Settle finds out whether it is, and so
//     does the next call with a Key or a Base, or the same turn again with its key. Reload and Discard forget it.
//   - ErrInDoubt: nothing was applied, because an earlier commit of the handle is in doubt. Call Settle first.
//   - ErrConflict, ErrFenced: nothing was applied. Commit it again with KeepBoth, or call Reload.
//   - ErrKeyReused: nothing was applied.
//   - Any other error: nothing was applied.
//
// If ctx ends before the request is sent, nothing was applied. Once it was sent, Commit returns when the store has
// answered.
func (s *Session) Commit(ctx context.Context, t Turn) (Receipt, error) {
	o, err := t.options()
	if err != nil {
		return Receipt{}, s.fail("commit", err)
	}
	if err := s.h.Writable(ctx); err != nil {
		return Receipt{}, s.fail("commit", err)
	}
	if t.Reason == "create" && s.h.State().Summary.Commit != "" {
		return Receipt{}, s.fail("commit", layout.BadInput("reason %q: the session has commits", t.Reason))
	}
	r, err := s.h.Commit(ctx, o)
	return s.receipt("commit", r, err)
}

// options checks a turn and marshals what it holds.
func (t Turn) options() (o session.Commit, err error) {
	o = session.Commit{
		Reason: t.Reason, Key: t.Key, Edit: &session.Edit{}, Turn: true, Entries: t.Entries,
		Base: t.Base, From: t.From, Writer: t.Writer, KeepBoth: t.KeepBoth,
	}
	if o.Edit.State, err = marshalState("state", t.State); err != nil {
		return o, err
	}
	if o.Edit.Manager, err = marshalState("manager", t.Manager); err != nil {
		return o, err
	}
	if o.Edit.Docs, err = marshalDocs(t.Docs); err != nil {
		return o, err
	}
	if err := errors.Join(
		session.CheckName("idempotency key", t.Key), session.CheckName("writer", t.Writer),
	); err != nil {
		return o, err
	}
	if t.Key != "" {
		o.Digest = t.digest(o.Edit)
	}
	return o, checkReason(t.Reason)
}

// digest returns 16 hex digits of what a turn with an idempotency key holds: reason, state, manager, entries, documents
// and From, but not the commit that it was made on, nor what was appended.
func (t Turn) digest(e *session.Edit) string {
	h := sha256.New()
	write := func(kind byte, p []byte) {
		size := [9]byte{kind}
		binary.BigEndian.PutUint64(size[1:], uint64(len(p)))
		h.Write(size[:])
		h.Write(p)
	}
	part := func(present bool, p []byte) {
		if present {
			write(1, p)
		} else {
			write(0, p)
		}
	}
	part(true, []byte(t.Reason))
	part(e.State != nil, e.State)
	part(e.Manager != nil, e.Manager)
	for i := range t.Entries {
		d := &t.Entries[i]
		for _, text := range []string{d.Type, d.ID, d.Parent} {
			part(true, []byte(text))
		}
		part(d.Body != nil, d.Body)
		part(d.Raw != nil, d.Raw)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Docs)) {
		write(2, []byte(name))
		write(2, e.Docs[name])
	}
	if t.From != nil {
		write(3, []byte(*t.From))
	}
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
		return nil, session.LimitError(what, checkpoint.MaxState, len(p))
	}
	return p, nil
}

// ownReasons have a meaning in the log that a turn must not claim. "create" is one as well, except for
// the first commit of a session.
var ownReasons = []string{
	"amend", "branch", "claim", "conflict", "create", "delete", "fork", "import", "label", "names", "partial", "repair",
	"roll", "rollback",
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

// Claim takes over the session: commits of every older writer return ErrFenced from then on, and this handle is no
// longer fenced. Head and document stay the session's newest, and the handle stays where it is: Reload takes the
// newest.
func (s *Session) Claim(ctx context.Context, opts ...MoveOption) (Receipt, error) {
	r, err := s.h.Claim(ctx, optionsOf(opts))
	return s.receipt("claim", r, err)
}

// Settle finds out whether a commit of unknown outcome is stored (Error.Commit; "" = the handle's newest one), and
// returns its receipt. If nobody else committed it sends the same request again. A commit that is lost was not stored:
// ErrConflict or ErrFenced where another writer was first, else backend.ErrBusy; what was appended is in the buffer
// again. While it cannot be found out the error is ErrCommitUnknown.
func (s *Session) Settle(ctx context.Context, commit string) (Receipt, error) {
	r, err := s.h.Settle(ctx, commit)
	return s.receipt("settle", r, err)
}

// Discard drops what was appended, and a commit in doubt, without I/O. The handle stays where it is. A request that was
// in doubt may still be stored: it is another writer's then.
func (s *Session) Discard(ctx context.Context) error { return s.fail("discard", s.h.Discard(ctx)) }

// Reload drops what was appended, and a commit in doubt, takes the newest head, and lifts a fence. A request that was
// in doubt may still be stored: it is another writer's then.
func (s *Session) Reload(ctx context.Context) error { return s.fail("reload", s.h.Reload(ctx)) }

// MoveOption is an option of a move (Branch, Switch, Edit, Rollback), of an annotation (Label, SetInfo, Amend, Hide,
// RenameBranch) or of Claim.
type MoveOption func(*session.MoveOptions)

// WithKey makes a move or an annotation one, however often and through whichever handle it is made, as Turn.Key does
// for a turn: the session remembers the key, at most 256 bytes, and a repeat does nothing and returns the receipt of
// the first time, with Repeated. The same key for another move, or for a turn, is ErrKeyReused.
func WithKey(key string) MoveOption { return func(o *session.MoveOptions) { o.Key = key } }

// WithBase names the commit that a move was made on, as Turn.Base does for a turn: it leaves alone what was appended,
// and is ErrConflict if branch, head or document differ since. An annotation is in conflict with a Claim since only.
func WithBase(commit string) MoveOption { return func(o *session.MoveOptions) { o.Base = commit } }

// WithWriter names who makes a move, an annotation or a claim, as Turn.Writer does for a turn.
func WithWriter(name string) MoveOption { return func(o *session.MoveOptions) { o.Writer = name } }

func optionsOf(opts []MoveOption) (k session.MoveOptions) {
	for _, o := range opts {
		o(&k)
	}
	return k
}

// Branch moves the head to an entry (its id or a unique prefix; "" = before the first entry, so that the
// next one becomes a root), and restores the state in force there. Without a name the head is on the branch
// that the entry is on. It returns fs.ErrExist if another branch has the name.
func (s *Session) Branch(
	ctx context.Context, entry string, o *BranchOptions, opts ...MoveOption,
) (Receipt, error) {
	if o == nil {
		o = &BranchOptions{}
	}
	summary := session.Summary{Text: o.Summary, Details: o.Details, FromHook: o.FromHook}
	r, err := s.h.Branch(ctx, optionsOf(opts), entry, o.Name, summary)
	return s.receipt("branch", r, err)
}

// Switch moves the head to a branch by name, or to the newest leaf below an entry (its id or a unique
// prefix), and restores the state in force there. If the head is there already nothing is committed, and the receipt
// names the newest commit of the handle.
func (s *Session) Switch(ctx context.Context, entryOrBranch string, opts ...MoveOption) (Receipt, error) {
	r, err := s.h.Switch(ctx, optionsOf(opts), entryOrBranch)
	return s.receipt("switch", r, err)
}

// Edit appends d as a sibling of an entry and moves the head to it, with the state in force before that
// entry. Draft.Parent is ignored.
func (s *Session) Edit(
	ctx context.Context, entry string, d transcript.Draft, opts ...MoveOption,
) (Receipt, error) {
	r, err := s.h.Edit(ctx, optionsOf(opts), entry, d)
	return s.receipt("edit", r, err)
}

// RenameBranch changes the name of a branch; "" removes it: its entries stay, and the tree shows them. The head stays,
// and is on the branch by its new name. It returns fs.ErrNotExist if no branch has the name, fs.ErrExist if another one
// has the new name; the branch that the session is on keeps one. A session has at most 1,024 names; at that limit the
// oldest that Rollback, or a turn that was kept, made by itself makes room for a new one.
func (s *Session) RenameBranch(ctx context.Context, name, to string, opts ...MoveOption) (Receipt, error) {
	r, err := s.h.RenameBranch(ctx, optionsOf(opts), name, to)
	return s.receipt("rename branch", r, err)
}

// Label names an entry for people; "" clears. It is an annotation: it is made on the newest state, whoever committed
// last, and moves nothing. An entry that is not committed is ErrUncommitted.
func (s *Session) Label(ctx context.Context, entry, label string, opts ...MoveOption) (Receipt, error) {
	r, err := s.h.Label(ctx, optionsOf(opts), entry, label)
	return s.receipt("label", r, err)
}

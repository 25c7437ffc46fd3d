package coppice

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
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
	// receipt of the first time, with Repeated. Other content under a known key is ErrKeyReused: content is Reason,
	// State, Manager, Docs and Entries, not Base, not KeepBoth and not what was appended. A turn whose key is still on
	// its way, or has failed with an unknown outcome or a conflict, gets that turn's answer: its error, or its receipt
	// with Repeated. A turn with a key should carry its entries: of one that is repeated, entries from Append stay
	// pending.
	Key string

	// Entries belong to this turn: they are stored with it or withdrawn with it, and stay pending only when
	// their own outcome is unknown. Several callers of one handle commit this way; Append is for a single one.
	// The first grows from the head of the commit Base, each other from the one before it, unless Draft.Parent
	// names another entry.
	Entries []transcript.Draft

	// Base is the id of the commit that the turn was made on. If head or document moved since, or other entries
	// are pending that move the head, Commit returns ErrConflict and withdraws the turn, or with KeepBoth stores
	// it as a sibling branch (Receipt.Kept). Commits that moved neither, labels say, do not count. An id that is
	// no commit's is fs.ErrNotExist, unless Key is known. "" = where the handle is when Commit is called, pending
	// entries included.
	Base string

	// KeepBoth keeps this turn as a branch, at once, where it meets a conflict (Receipt.Kept), as
	// SessionOptions.KeepBoth does for every turn of the handle: either is enough. Of turns that share a request each
	// is treated as it asks, if all of them have Entries or a Base and nothing from Append is pending. Else one that
	// does not ask for it makes the conflict that of all. A handle that already refuses commits refuses this turn too.
	KeepBoth bool

	// OnKnownID says what becomes of Entries with an id of their own (Draft.ID, Draft.Raw) that the session has, on any
	// branch, or that are pending. It is decided for the very commit that is made, also where others commit meanwhile.
	OnKnownID KnownID
}

// KnownID says what becomes of a draft with an id of its own that the session has. An id of a commit is fs.ErrExist in
// any case.
type KnownID int

// The values of Turn.OnKnownID.
const (
	// KnownError: the turn is fs.ErrExist, and nothing of it is applied.
	KnownError KnownID = iota

	// KnownIgnore: the draft is not stored again, and Receipt.IDs names it. The next draft grows from the entry that is
	// known, unless it names another parent. So a batch may be sent again, from whichever host. A turn of which all
	// entries are known, that has no Key and leaves the document as it is, commits nothing, whatever it was made on.
	// Its receipt is Repeated, and names the newest commit of the handle.
	KnownIgnore

	// KnownAmend: an amendment of the entry is stored in the draft's place, as Session.Amend does it; where the entry
	// says what the draft says, nothing is. Else as KnownIgnore. An entry that cannot be amended is
	// transcript.ErrNotAmendable, and an id that is pending in the handle fs.ErrExist: nothing of the turn is applied.
	KnownAmend
)

// Receipt says what a commit did. Of Rebase and Claim it is the receipt of the last commit that they made, with the
// entries of all of them.
type Receipt struct {
	checkpoint.Head     // Seq, Commit, Epoch, Entry, Branch
	Entries         int // how many it made durable
	// the branch on which a losing turn (KeepBoth, Rebase), what was appended before a repeated turn that met a
	// conflict (KeepBoth), or an abandoned line (Rollback) now lives; "" = none
	Kept     string
	Snapshot string   // that the policy had taken of an earlier state, which this commit names; "" = none
	Warnings []string // soft limits passed, with value and limit
	Bytes    int      // size of the checkpoint or of the append
	IO       backend.IO

	IDs []string // of Turn.Entries, in order; with Repeated those of the first time
	// Turn.Key was known: this is the receipt of the first time, and nothing was applied now. Or all entries were
	// known, and there was nothing else: see KnownIgnore
	Repeated bool
	Pending  int // with Repeated: entries appended before the call that are still pending; else 0
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

// Commit makes everything that was appended before the call durable, with the turn's state and its own
// entries: one PUT, or one append and one sync, and one PUT more for each new large image. Commits that meet
// share it, each with a seq of its own. A nil error means that all of it is stored, on whatever branch; if
// the receipt says Repeated, nothing was done. State is marshalled before anything else.
//
// On an error State is as it was, and the turn's own entries are withdrawn unless their outcome is unknown:
//
//   - ErrConflict, ErrFenced: nothing was applied. The turn is kept in the handle, which refuses commits until
//     Rebase stores it or Reload drops it. A turn with Entries or a Base is withdrawn instead, and the handle
//     works on.
//   - ErrCommitUnknown: the turn may have been applied. It is kept, entries included, until Rebase or Reload.
//   - ErrInDoubt: nothing was applied, because an earlier commit of the handle is in doubt. Call Rebase first.
//   - ErrKeyReused: nothing was applied.
//   - Any other error: nothing was applied. State and key of the turn are dropped, what was appended is pending,
//     and the next commit stores it.
//
// If ctx ends while the turn waits for others, it is taken back. Once it was sent, Commit waits for the outcome;
// the request is given up when the contexts of all who share it have ended.
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
		Base: t.Base, KeepBoth: t.KeepBoth, OnKnown: session.OnKnown(t.OnKnownID),
	}
	if t.OnKnownID < KnownError || t.OnKnownID > KnownAmend {
		return o, fmt.Errorf("OnKnownID is %d: want KnownError, KnownIgnore or KnownAmend", t.OnKnownID)
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
	if err := session.CheckName("idempotency key", t.Key); err != nil {
		return o, err
	}
	if t.Key != "" {
		o.Digest = t.digest(o.Edit)
	}
	return o, checkReason(t.Reason)
}

// digest says in 16 hex digits what a turn with an idempotency key holds: reason, state, manager, its entries and its
// documents, but not the commit that it was made on, nor what was appended.
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
// longer fenced. It first stores what Rebase would store, in the same request: as plain commits, or as branches
// (Receipt.Kept). Head and document stay the session's newest. A Claim whose outcome is unknown is not
// repeated by Rebase.
func (s *Session) Claim(ctx context.Context) (Receipt, error) {
	r, err := s.h.Claim(ctx)
	return s.receipt("claim", r, err)
}

// Rebase stores the turns of failed commits, and what is pending or waits to be committed, each turn as a separate
// commit. It reads the history first: a turn in doubt that is there is not repeated. If neither head nor document
// moved since, these are plain commits. Otherwise they become separate branches with their own documents
// (Receipt.Kept), head and document stay the winner's, and Switch goes there. If nothing has failed and nothing
// is pending, Rebase commits nothing and takes the newest head.
//
// A handle that was fenced stays fenced: Rebase keeps its turns as branches, and later commits return ErrFenced
// until Claim or Reload. If Rebase fails, the turns stay in the handle, and it may be called again. With ErrKeyReused
// nothing was stored, and the turn whose key another writer used for other content is dropped: call Rebase again for
// the others.
func (s *Session) Rebase(ctx context.Context) (Receipt, error) {
	r, err := s.h.Rebase(ctx)
	return s.receipt("rebase", r, err)
}

// Reload drops what is pending and the turns of failed commits, refuses commits that wait, takes the newest head, and
// lifts a fence. A turn whose outcome was unknown may still be applied later: a request that is delayed cannot be
// called back.
func (s *Session) Reload(ctx context.Context) error { return s.fail("reload", s.h.Reload(ctx)) }

// MoveOption is an option of a Branch, Switch, Edit or Rollback.
type MoveOption struct{ key string }

// WithKey makes a move one, however often and through whichever handle it is made, as Turn.Key does for a turn: the
// session remembers the key, at most 256 bytes, and a repeat does nothing and returns the receipt of the first time,
// with Repeated. Through a handle that has not seen the first one it is ErrConflict, until Reload. The same key for
// another move, or for a turn, is ErrKeyReused.
func WithKey(key string) MoveOption { return MoveOption{key} }

// keyOf returns the key that options give.
func keyOf(opts []MoveOption) (k session.MoveKey) {
	for _, o := range opts {
		k.Key = o.key
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
	r, err := s.h.Branch(ctx, keyOf(opts), entry, o.Name, summary)
	return s.receipt("branch", r, err)
}

// Switch moves the head to a branch by name, or to the newest leaf below an entry (its id or a unique
// prefix), and restores the state in force there. If the head is there already nothing is committed, and the receipt
// names the newest commit of the handle.
func (s *Session) Switch(ctx context.Context, entryOrBranch string, opts ...MoveOption) (Receipt, error) {
	r, err := s.h.Switch(ctx, keyOf(opts), entryOrBranch)
	return s.receipt("switch", r, err)
}

// Edit appends d as a sibling of an entry and moves the head to it, with the state in force before that
// entry. Draft.Parent is ignored.
func (s *Session) Edit(
	ctx context.Context, entry string, d transcript.Draft, opts ...MoveOption,
) (Receipt, error) {
	r, err := s.h.Edit(ctx, keyOf(opts), entry, d)
	return s.receipt("edit", r, err)
}

// RenameBranch changes the name of a branch; "" removes it: its entries stay, and the tree shows them. The head stays,
// and is on the branch by its new name. It returns fs.ErrNotExist if no branch has the name, fs.ErrExist if another one
// has the new name; the branch that the session is on keeps one. A session has at most 1,024 names; at that limit the
// oldest that Rollback, or a turn that was kept, made by itself makes room for a new one.
func (s *Session) RenameBranch(ctx context.Context, name, to string) (Receipt, error) {
	r, err := s.h.RenameBranch(ctx, name, to)
	return s.receipt("rename branch", r, err)
}

// Label names an entry for people; "" clears. The head stays.
func (s *Session) Label(ctx context.Context, entry, label string) (Receipt, error) {
	r, err := s.h.Label(ctx, entry, label)
	return s.receipt("label", r, err)
}

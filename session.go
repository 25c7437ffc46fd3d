package coppice

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/internal/session"
	"github.com/coppice-go/coppice/internal/trace"
	"github.com/coppice-go/coppice/transcript"
)

// A Session is a handle on one conversation tree and its state: one writer. Safe for concurrent use.
type Session struct {
	store *Store
	id    string
	o     SessionOptions
	b     trace.Backend
	h     *session.Handle

	claimed atomic.Bool // by Run
}

// fail makes the error of an operation on this session.
func (s *Session) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return fail(op, s.id, err)
}

// receipt is what an operation returns.
func (s *Session) receipt(op string, r journal.Result, err error) (Receipt, error) {
	return receiptOf(r), s.fail(op, err)
}

func receiptOf(r journal.Result) Receipt {
	return Receipt{
		Head: r.Commit.Head, Entries: r.Commit.Entries, Kept: r.Kept, Snapshot: r.Snapshot, Warnings: r.Warnings,
		Bytes: r.Bytes, IO: r.IO, IDs: r.IDs, Repeated: r.Repeated, Behind: r.Behind,
	}
}

// ID returns the session's id.
func (s *Session) ID() string { return s.id }

// Info returns the summary of the newest commit that the handle knows.
func (s *Session) Info() checkpoint.Summary {
	st := s.h.Journal().Tip()
	sum := readableInfo(st.Summary)
	sum.Source = st.Source
	if id := rawjson.Text(rawjson.Field(st.Header, "id")); sum.Source == nil && id != s.id {
		sum.Source = &checkpoint.Source{Session: id}
	}
	return sum
}

// Head returns seq, commit and epoch of the last acknowledged commit, and entry and branch with what is
// pending.
func (s *Session) Head() checkpoint.Head {
	h := s.h.State().Head()
	h.Entry = s.h.Head()
	return h
}

// Missing returns the number of the newest commit that was made and cannot be found: the log on a disk ends before it,
// and checkpoint_latest has it. What is left can be read; writes are ErrCorrupt until Store.Repair. 0: none is missing.
func (s *Session) Missing() uint64 {
	if st := s.h.State(); st.Missing > st.Summary.Seq {
		return st.Missing
	}
	return 0
}

// Profile returns the rules by which the session's contexts are built.
func (s *Session) Profile() transcript.Profile {
	if s.o.Profile == "" {
		return s.h.State().Rules().Profile
	}
	return s.o.Profile
}

// State decodes the agent's state, as of the last acknowledged commit, into v. A session without state
// leaves v unchanged.
func (s *Session) State(v any) error {
	if err := s.h.Ready(context.Background()); err != nil {
		return s.fail("state", err)
	}
	return s.fail("state", decode(s.h.Document().State, v))
}

// Doc decodes a document (Turn.Docs), as of the last acknowledged commit, into v. If there is none of this name, v is
// unchanged.
func (s *Session) Doc(name string, v any) error {
	if err := s.h.Ready(context.Background()); err != nil {
		return s.fail("document", err)
	}
	return s.fail("document", decode(s.h.Document().Docs[name], v))
}

// Docs yields the names and the JSON of all documents (Turn.Docs), as of the last acknowledged commit, in ascending
// order of their names. The JSON must not be changed. After Close they are those of before.
func (s *Session) Docs() iter.Seq2[string, json.RawMessage] { return inOrder(s.h.Document().Docs) }

// inOrder yields documents in ascending order of their names.
func inOrder(docs map[string]json.RawMessage) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		for _, name := range slices.Sorted(maps.Keys(docs)) {
			if !yield(name, rawjson.ValidText(docs[name])) {
				return
			}
		}
	}
}

func decode(state json.RawMessage, v any) error {
	if len(state) == 0 {
		return nil
	}
	if err := json.Unmarshal(rawjson.ValidText(state), v); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	return nil
}

// IO returns the counts of all requests of this handle to the backend: after Open, the cost of the resume.
func (s *Session) IO() backend.IO { return s.h.IO() }

// Context returns the messages that the model sees next, what is pending included: derived from the path
// to the head by the session's profile, unless SetContext made it explicit. It is bounded by ContextBytes
// (Window reports what was omitted; View.Context of the head returns all) and it is a copy. Only images that
// it refers to are read, in parallel; a missing one becomes a diagnostic, and its reference stays.
func (s *Session) Context(ctx context.Context) (transcript.Context, error) {
	if err := s.h.Ready(ctx); err != nil {
		return transcript.Context{}, s.fail("context", err)
	}
	c, err := s.h.Context(ctx)
	return c, s.fail("context", err)
}

// Append adds entries after the head, all or none, to the buffer of the handle: in memory only. The head moves to the
// last. It returns their ids in order. The next Commit without a Base, of any caller of the handle, stores them:
// where several callers share one, use Turn.Entries. A draft with an id of its own, or with Raw, is looked for in the
// index of all ids, which the first such call reads (at most four reads): fs.ErrExist if the session has it.
// Draft.Parent may name any entry; a whole id is found in that index, a prefix of one in the tree.
//
// Append waits while another call of the handle writes. If ctx ends meanwhile, nothing was appended. A handle that
// knows that the session has left its line returns ErrConflict or ErrFenced, one in doubt ErrInDoubt: so the caller
// learns it before it pays for another model call.
func (s *Session) Append(ctx context.Context, d ...transcript.Draft) ([]string, error) {
	ids, err := s.h.Append(ctx, d)
	return ids, s.fail("append", err)
}

// SetContext makes the context explicit: these items, and what is appended from here on. None makes it
// derived again. The next commit saves it. Together the items are at most ContextBytes long
// (backend.ErrTooLarge): an explicit context is never cut. Entries that are not in memory are read. Inline
// messages pass Hooks.BeforeAppend as drafts of messages do.
func (s *Session) SetContext(ctx context.Context, items ...transcript.Item) error {
	if err := s.h.Writable(ctx); err != nil {
		return s.fail("set context", err)
	}
	items, err := s.h.ScreenItems(ctx, items)
	if err != nil {
		return s.fail("set context", err)
	}
	return s.fail("set context", s.h.SetContext(ctx, items))
}

// Tree returns the tree of this moment, pending entries included: immutable, skeletons only. The first
// call reads them; afterwards the tree grows by itself.
func (s *Session) Tree(ctx context.Context) (*transcript.Tree, error) {
	if err := s.h.Ready(ctx); err != nil {
		return nil, s.fail("tree", err)
	}
	m, err := s.h.Moment(ctx)
	if err != nil {
		return nil, s.fail("tree", err)
	}
	return m.Tree, nil
}

// Entry returns one entry by its id, or a unique prefix of it, with what amendments say of it.
func (s *Session) Entry(ctx context.Context, id string) (transcript.Entry, error) {
	for e, err := range s.Entries(ctx, id) {
		return e, err
	}
	return transcript.Entry{}, s.fail("entry", session.Missing("entry", id))
}

// ImageRefs returns a context for reads of entries (Page, Path, Entries, Originals, Entry, Find) that leave the images
// which are stored apart as they are stored: the base64 text is coppice-blob:sha256:HEX:BYTES, of which Blob has the
// bytes; other text that begins so has =: after the colon. Nothing of the images is read, and one that is gone does no
// harm.
func ImageRefs(ctx context.Context) context.Context { return session.KeepRefs(ctx) }

// Blob returns the bytes of an image of an entry by their SHA-256, 64 lower-case hex digits: one request, or none if
// the checkpoint or the handle holds it. Images are stored apart from their entries if their base64 has more than 32
// KiB. One that is not stored is fs.ErrNotExist; one that is not intact is ErrCorrupt.
func (s *Session) Blob(ctx context.Context, sum string) ([]byte, error) {
	if raw, err := hex.DecodeString(sum); err != nil || len(raw) != sha256.Size || sum != strings.ToLower(sum) {
		return nil, s.fail("blob", session.Missing("image", sum))
	}
	if err := s.h.Ready(ctx); err != nil {
		return nil, s.fail("blob", err)
	}
	data, err := s.h.Images().Get(ctx, s.h.State(), sum)
	return bytes.Clone(data), s.fail("blob", err)
}

// Entries returns the entries with these ids in their order; none = all, in append order. Neighbours share
// a range read. An image that is gone is fs.ErrNotExist; where a repair recorded its loss, its reference stays in the
// entry. Of an entry that is hidden the head comes alone, with Hidden set.
func (s *Session) Entries(ctx context.Context, ids ...string) iter.Seq2[transcript.Entry, error] {
	return iterate(ctx, s, "entries", func(yield func(transcript.Entry, error) bool) error {
		if len(ids) == 0 {
			return s.h.All(ctx, false, yield)
		}
		return s.h.ReadIDs(ctx, ids, false, yield)
	})
}

// Originals is Entries without amendments: every entry as it was appended, the hidden ones too.
func (s *Session) Originals(ctx context.Context, ids ...string) iter.Seq2[transcript.Entry, error] {
	return iterate(ctx, s, "originals", func(yield func(transcript.Entry, error) bool) error {
		if len(ids) == 0 {
			return s.h.All(ctx, true, yield)
		}
		return s.h.ReadIDs(ctx, ids, true, yield)
	})
}

// Path returns the entries from one (its id or a unique prefix; "" = the head) towards the root. It leaves out those
// that are hidden, and reads ahead at most 512 entries or 4 MiB. Page reads in both directions.
func (s *Session) Path(ctx context.Context, from string) iter.Seq2[transcript.Entry, error] {
	return iterate(ctx, s, "path", func(yield func(transcript.Entry, error) bool) error {
		return s.h.ReadPath(ctx, from, yield)
	})
}

// iterate makes an iterator whose error comes last and once, as the error of an operation.
func iterate[T any](
	ctx context.Context, s *Session, op string, f func(yield func(T, error) bool) error,
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		err := s.h.Ready(ctx)
		if err == nil {
			err = f(yield)
		}
		if err != nil && !stopped(err) {
			var zero T
			yield(zero, s.fail(op, err))
		}
	}
}

// forward yields what an iterator of a lower layer yields.
func forward[T any](seq iter.Seq2[T, error], yield func(T, error) bool) error {
	for v, err := range seq {
		if err != nil {
			return err
		}
		if !yield(v, nil) {
			return session.ErrStop
		}
	}
	return nil
}

// Close refuses new calls and those that wait, waits for the request that was sent, and joins background work, for at
// most 10 s together. If this handle committed, on disk it then confirms the log and writes the checkpoint; a handle
// that committed nothing writes nothing. Its error is ErrUncommitted if entries were appended and not stored, and
// ErrCommitUnknown for a commit in doubt. After it every method that can fail returns fs.ErrClosed. Idempotent.
func (s *Session) Close() error {
	s.store.forget(s)
	return s.fail("close", s.h.Close())
}

// acknowledged passes a commit to other handles of the store on which Watch is running.
func (s *Session) acknowledged(now *state.State) {
	if w := s.store.watched; w.Calls.Load() > 0 {
		w.Tell(s.id, now)
	}
}

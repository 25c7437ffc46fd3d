package checkpoint

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-go/coppice/checkpoint/internal/canon"
	"github.com/coppice-go/coppice/codec"
)

// Record is a commit line: the entry of type custom that makes the lines since the previous commit line durable as one
// step. docs/format/commit-line.md has the table of its fields.
type Record struct {
	ID       string // of the commit, which is also the id of the line
	ParentID string // id of the head at that time; "" = null
	Time     time.Time
	Seq      uint64
	Parent   string // id of the parent commit; "" for the first
	Epoch    uint64
	Writer   string
	Reason   string // [a-z0-9.-]{1,32}
	Head     string // parent of the next entry; "" = null
	HeadOrd  int64  // its ordinal; -1 = none
	Branch   string
	Entries  int           // entries that this commit makes durable, without itself
	Parents  []ParentDelta // parents other than the default

	Key      string   // idempotency key of the turn; this and the next seven are absent when empty
	Digest   string   // of the turn with Key, as 16 hex digits: the same key with other content is another turn
	Kept     string   // branch of the losing turn or the abandoned path
	Snapshot string   // id of a snapshot of the previous state
	Torn     string   // object with the torn bytes that were cut off before this commit
	Next     string   // reason roll or repair: name of the next segment
	Original string   // object with the imported bytes
	Claim    bool     // takes the session: earlier writers are fenced from here on
	Erase    bool     // entries were erased: a state that was read before is not written again
	Source   *Source  // of the last commit of an import, and of the first; nil = unchanged
	Base     *Base    // on the first commit of a segment
	Outline  *Outline // if the head moves to a place that the entries of the commit do not describe
	Names    []Rename // of branches, applied in order before Kept and Branch are set

	// The document: Doc whole (a keyframe), or a Patch against the parent commit's document, or neither (it equals the
	// parent's). Compact JSON, the output of Encode and MakePatch.
	Doc    json.RawMessage
	Patch  json.RawMessage
	Sorted bool   // of the patch: see ApplyPatch
	DocCRC uint32 // CRC-32C of the encoded document, in any of the three forms

	Len    int64  // bytes since the previous commit line, without its newline
	Synced int64  // offset in the segment known durable when the line was written
	CRC    uint32 // over the previous self and those bytes
	Self   uint32 // over the key and the line up to it
}

// ParentDelta is the parent of one entry of a commit if it is not the default: the previous entry of the commit, or for
// the first one the head before the commit.
type ParentDelta struct {
	Index int   // of the entry within the commit, from 0
	Delta int64 // the entry's ordinal minus its parent's; negative = a later entry; 0 = a root
}

// Base is the additional data for rebuilding a lost checkpoint from the log: the session as it was before the commit
// that contains it.
type Base struct {
	Branches           []BranchRef
	Title, Cwd, Parent string // Parent: the session from which this one was created
	Created            time.Time
	Entries            uint64 // entries, without commits
	Bytes              int64  // of the transcript, raw
	HeadOrd            int64  // ordinal of the head; -1 = none
	// of the previous commit line; for the first commit: CRC-32C of the session header line and its newline
	Self     uint32
	Original string // hex SHA-256 of the imported bytes; "" = the lines are the original
	Claimed  uint64 // seq of the newest claim
	First    string // one line of the first prompt
	Outline  Outline
	// The rules of the working context. Profile "" = coppice's; MaxBytes is its bound in bytes, 0 = 1 MiB, -1 = none.
	Profile  string
	MaxBytes int64
	Meta     MetaChange // of the metadata since the header line; never empty, nil = none
	Source   *Source    // the newest one; nil = none
	Since    uint64     // first epoch of the session; 0 = no session with its id was deleted before it
}

// Outline is the part of a summary about the conversation at a head: one line of the newest message with text on the
// path to it, and the state of the conversation (see Summary.Preview and Summary.Status).
type Outline struct{ Preview, Status string }

// BranchRef is a named head.
type BranchRef struct {
	Name string `msgpack:"name"`
	Head string `msgpack:"head,omitempty"` // "" = the next entry is a new root
	Ord  int64  `msgpack:"ord"`            // of Head; -1 = none
}

// Rename renames a branch without changing its place in the table; To "" = the name is removed, and the entries stay.
// If no branch has the name From, or one has To, nothing changes.
type Rename struct{ From, To string }

const (
	sourceField = `,"source":`
	sinceField  = `,"since":`
	namesField  = `,"names":[`
	eraseField  = `,"erase":true`
)

const (
	linePrefix = `{"type":"custom","id":`
	selfField  = `,"self":"`
	selfBytes  = len(selfField) + 8 + len(`"}}`) // from the comma to the end of the line
)

// Commit returns r in the form of logs.
func (r Record) Commit() Commit {
	return Commit{
		Head:   Head{Seq: r.Seq, Epoch: r.Epoch, Commit: r.ID, Entry: r.Head, Branch: r.Branch},
		Parent: r.Parent, Reason: r.Reason, Writer: r.Writer, Snapshot: r.Snapshot, Time: r.Time,
		Entries: r.Entries, Keyframe: r.Doc != nil, Key: r.Key, Kept: r.Kept, HeadOrd: r.HeadOrd,
		StateLost: bytes.HasPrefix(r.Doc, []byte(`{"state":`+lostState)),
	}
}

// Covers reports whether since, the bytes between the previous commit line and this one, are those that were committed
// after a line whose Self was prevSelf. The first commit line of a segment is chained to the last one of the previous
// segment (Prelude.PrevSelf), a session's first one to its header line.
func (r Record) Covers(prevSelf uint32, since []byte) bool {
	return r.Len == int64(len(since)) && r.CRC == chain(prevSelf, since)
}

func chain(prevSelf uint32, since []byte) uint32 {
	var p [4]byte
	binary.LittleEndian.PutUint32(p[:], prevSelf)
	return codec.CRC(p[:], since)
}

func keyed(key uint64, line []byte) uint32 {
	var p [8]byte
	binary.LittleEndian.PutUint64(p[:], key)
	return codec.CRC(p[:], line)
}

// AppendLine appends the line of r to dst, without a newline, and returns dst and the Self of the line. since are the
// bytes after the newline of the previous commit line (or of the prelude), whose Self is prevSelf (see Covers); it may
// be a part of dst. Len, CRC and Self of r are computed, not read. Errors wrap codec.ErrFormat or are a
// *codec.LimitError; dst is then returned unchanged.
func (r Record) AppendLine(
	dst []byte, key uint64, prevSelf uint32, since []byte,
) (line []byte, self uint32, err error) {
	if err := errors.Join(r.check(), wholeOrNil(r.Doc), wholeOrNil(r.Patch)); err != nil {
		return dst, 0, err
	}
	crc, length, start := chain(prevSelf, since), len(since), len(dst)
	b := append(dst, linePrefix...) //nolint:gocritic // dst is returned as it was where this fails
	b = canon.AppendString(b, r.ID)
	b = canon.AppendID(append(b, `,"parentId":`...), r.ParentID)
	if b, err = canon.AppendTime(append(b, `,"timestamp":"`...), r.Time); err != nil {
		return dst, 0, err
	}
	b = append(b, `","customType":"coppice.commit","data":{"seq":`...)
	b = strconv.AppendUint(b, r.Seq, 10)
	b = canon.AppendID(append(b, `,"parent":`...), r.Parent)
	b = strconv.AppendUint(append(b, `,"epoch":`...), r.Epoch, 10)
	b = canon.AppendString(append(b, `,"writer":`...), r.Writer)
	b = canon.AppendString(append(b, `,"reason":`...), r.Reason)
	b = canon.AppendID(append(b, `,"head":`...), r.Head)
	b = strconv.AppendInt(append(b, `,"headOrd":`...), r.HeadOrd, 10)
	b = canon.AppendString(append(b, `,"branch":`...), r.Branch)
	b = strconv.AppendInt(append(b, `,"entries":`...), int64(r.Entries), 10)
	if b, err = r.appendOptional(b); err != nil {
		return dst, 0, err
	}
	switch {
	case r.Doc != nil:
		b = append(append(b, `,"doc":`...), r.Doc...)
	case r.Patch != nil:
		b = append(append(b, `,"patch":`...), r.Patch...)
		if r.Sorted {
			b = append(b, `,"sorted":true`...)
		}
	}
	b = canon.AppendHex(append(b, `,"docCRC":"`...), uint64(r.DocCRC), 8)
	b = strconv.AppendInt(append(b, `","len":`...), int64(length), 10)
	b = strconv.AppendInt(append(b, `,"synced":`...), r.Synced, 10)
	b = canon.AppendHex(append(b, `,"crc":"`...), uint64(crc), 8)
	b = append(b, '"')
	self = keyed(key, b[start:])
	b = canon.AppendHex(append(b, selfField...), uint64(self), 8)
	return append(b, `"}}`...), self, nil
}

func (r Record) appendOptional(b []byte) ([]byte, error) {
	if len(r.Parents) > 0 {
		b = append(b, `,"parents":[`...)
		for _, p := range r.Parents {
			b = strconv.AppendInt(append(canon.Comma(b), '['), int64(p.Index), 10)
			b = append(strconv.AppendInt(append(b, ','), p.Delta, 10), ']')
		}
		b = append(b, ']')
	}
	for _, f := range optionalTexts(&r) {
		if *f.Value != "" {
			b = canon.AppendString(append(b, f.Name...), *f.Value)
		}
	}
	if r.Claim {
		b = append(b, `,"claim":true`...)
	}
	if r.Erase {
		b = append(b, eraseField...)
	}
	if r.Outline != nil {
		b = r.Outline.append(b)
	}
	if r.Source != nil {
		b = r.Source.append(append(b, sourceField...))
	}
	if len(r.Names) > 0 {
		b = append(b, namesField...)
		for _, n := range r.Names {
			b = canon.AppendString(append(canon.Comma(b), '['), n.From)
			b = append(canon.AppendID(append(b, ','), n.To), ']')
		}
		b = append(b, ']')
	}
	if r.Base == nil {
		return b, nil
	}
	return r.Base.append(b)
}

func (k *Base) append(b []byte) ([]byte, error) {
	b = append(b, `,"base":{"branches":[`...)
	for _, br := range k.Branches {
		b = canon.AppendString(append(canon.Comma(b), '['), br.Name)
		b = canon.AppendID(append(b, ','), br.Head)
		b = append(strconv.AppendInt(append(b, ','), br.Ord, 10), ']')
	}
	b = canon.AppendString(append(b, `],"title":`...), k.Title)
	b = canon.AppendString(append(b, `,"cwd":`...), k.Cwd)
	b = canon.AppendString(append(b, `,"parent":`...), k.Parent)
	b, err := canon.AppendTime(append(b, `,"created":"`...), k.Created)
	b = strconv.AppendUint(append(b, `","entries":`...), k.Entries, 10)
	b = strconv.AppendInt(append(b, `,"bytes":`...), k.Bytes, 10)
	b = strconv.AppendInt(append(b, `,"headOrd":`...), k.HeadOrd, 10)
	b = canon.AppendHex(append(b, `,"self":"`...), uint64(k.Self), 8)
	b = canon.AppendString(append(b, `","original":`...), k.Original)
	b = strconv.AppendUint(append(b, `,"claimed":`...), k.Claimed, 10)
	if k.First != "" {
		b = canon.AppendString(append(b, `,"first":`...), k.First)
	}
	if k.Outline != (Outline{}) {
		b = k.Outline.append(b)
	}
	if k.Profile != "" {
		b = canon.AppendString(append(b, `,"profile":`...), k.Profile)
	}
	if k.MaxBytes != 0 {
		b = strconv.AppendInt(append(b, `,"contextBytes":`...), k.MaxBytes, 10)
	}
	if len(k.Meta) > 0 {
		b = k.Meta.append(append(b, `,"meta":`...))
	}
	if k.Source != nil {
		b = k.Source.append(append(b, sourceField...))
	}
	if k.Since != 0 {
		b = strconv.AppendUint(append(b, sinceField...), k.Since, 10)
	}
	return append(b, '}'), err
}

func (o Outline) append(b []byte) []byte {
	b = canon.AppendString(append(b, `,"outline":{"preview":`...), o.Preview)
	b = canon.AppendString(append(b, `,"status":`...), o.Status)
	return append(b, '}')
}

func optionalTexts(r *Record) [7]canon.Field {
	return [...]canon.Field{
		{Name: `,"key":`, Value: &r.Key},
		{Name: `,"digest":`, Value: &r.Digest},
		{Name: `,"kept":`, Value: &r.Kept},
		{Name: `,"snapshot":`, Value: &r.Snapshot},
		{Name: `,"torn":`, Value: &r.Torn},
		{Name: `,"next":`, Value: &r.Next},
		{Name: `,"original":`, Value: &r.Original},
	}
}

// check refuses a record that ParseRecord would not accept: a line that cannot be read is a lost commit.
func (r Record) check() error {
	if r.ID == "" || r.Entries < 0 || r.Synced < 0 || r.HeadOrd < -1 {
		return canon.Malformed("commit %q: id, entries, synced or head ordinal", r.ID)
	}
	if !validReason(r.Reason) {
		return canon.Malformed("commit %s: reason %q is not [a-z0-9.-]{1,32}", r.ID, r.Reason)
	}
	if err := checkNames(r.Branch, r.Kept, r.Writer, r.Key); err != nil {
		return err
	}
	if err := checkRenames(r.Names); err != nil {
		return err
	}
	for i, p := range r.Parents {
		if p.Index < 0 || p.Index >= r.Entries || i > 0 && p.Index <= r.Parents[i-1].Index {
			return canon.Malformed("commit %s: parents are not in order within %d entries", r.ID, r.Entries)
		}
	}
	if r.Source != nil && !r.Source.valid() || r.Base != nil && r.Base.Source != nil && !r.Base.Source.valid() {
		return canon.Malformed("commit %s: source of an import", r.ID)
	}
	if r.Base != nil {
		if r.Base.Bytes < 0 || r.Base.HeadOrd < -1 || !r.Base.Meta.Valid() {
			return canon.Malformed("commit %s: bytes or head ordinal below zero, or metadata", r.ID)
		}
		if err := checkBranches(r.Base.Branches); err != nil {
			return err
		}
	}
	if r.Doc != nil && r.Patch != nil || r.Sorted && r.Patch == nil {
		return canon.Malformed("commit %s: document and patch together, or sorted without a patch", r.ID)
	}
	return nil
}

// wholeOrNil refuses a document or patch that would break the line, or make it too deep for readers.
func wholeOrNil(raw []byte) error {
	if raw == nil {
		return nil
	}
	return canon.Whole(raw, "document or patch", canon.BodyDepth)
}

func validReason(s string) bool {
	return len(s) >= 1 && len(s) <= 32 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789.-") == ""
}

func checkNames(branch, kept, writer, key string) error {
	for _, f := range [...]struct{ what, value string }{
		{"branch name", branch},
		{"branch name", kept},
		{"writer", writer},
		{"idempotency key", key},
	} {
		if err := canon.AtMost(f.what, len(f.value), MaxName); err != nil {
			return err
		}
	}
	return nil
}

func checkRenames(names []Rename) error {
	if err := canon.AtMost("branch names that change", len(names), MaxBranches); err != nil {
		return err
	}
	for _, n := range names {
		if n.From == "" {
			return canon.Malformed("a branch without a name is renamed to %.40q", n.To)
		}
		if err := checkNames(n.From, n.To, "", ""); err != nil {
			return err
		}
	}
	return nil
}

func checkBranches(branches []BranchRef) error {
	if err := canon.AtMost("branches", len(branches), MaxBranches); err != nil {
		return err
	}
	for _, b := range branches {
		if b.Name == "" || b.Ord < -1 {
			return canon.Malformed("branch %q with ordinal %d", b.Name, b.Ord)
		}
		if err := canon.AtMost("branch name", len(b.Name), MaxName); err != nil {
			return err
		}
	}
	return nil
}

// isLine reports whether line may be a commit line, judging by its first and last bytes.
func isLine(line []byte) bool {
	return bytes.HasPrefix(line, []byte(linePrefix)) && len(line) > len(linePrefix)+selfBytes &&
		string(line[len(line)-selfBytes:][:len(selfField)]) == selfField
}

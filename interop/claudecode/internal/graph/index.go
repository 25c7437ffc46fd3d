// Package graph finds the conversation in a file of Claude Code's: an index of its lines, and how they hang
// together.
package graph

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-go/coppice/internal/diag"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/claudecode/jsonl"
)

// Kind is what becomes of a line.
type Kind uint8

// The kinds.
const (
	KindNone      Kind = iota // custom entry: no part of the file's tree
	KindTitle                 // likewise, and a name of the session
	KindOther                 // custom entry: part of the file's tree, but nothing is said
	KindUser                  // user message, tool results, or both
	KindMeta                  // what the program says in the user's name
	KindAssistant             // a piece of a message of the model
	KindBoundary              // compaction: where
	KindSummary               // compaction: what is left
)

// Speaks tells what is part of the conversation.
func (k Kind) Speaks() bool { return k >= KindUser }

// Key is an id: a UUID, or the beginning of the SHA-256 of any other text.
type Key [16]byte

// RootID is the entry on which a session begins.
const RootID = "cc-session"

// None stands for no row.
const None = int32(-1)

// Row is one line of the file in the index: what is kept of it between the two readings.
type Row struct {
	Key    Key
	Offset int64 // of its line in the file
	Line   int32 // its number, from 1
	At     int32 // where the object starts in its line
	Size   int32 // of the object
	Unit   int32 // the last row of what becomes one entry with it
	Up     int32 // the row on whose last entry it hangs
	Child  int32 // 0 = the session itself
	Model  int32 // the one in force, numbered in Models; 0 = none
	Held   int32 // results that it holds
	Kind   Kind
	Flags  uint8

	parent Key // the one it names
	sum    uint64
	msg    int32 // number of the provider's message, from 1; 0 = none
	call   int32 // the last row whose call it answers
	link   int32 // the row that speaks before it; for one that does not speak, what climbing through it gives
	head   int32 // the first row of what becomes one entry with it
	end    int32 // of a message with calls: the last row that answers one
	tail   int32 // the last line hung on it that does not speak
}

// What is to be known of a row beside its kind.
const (
	FlagSide   uint8 = 1 << iota // of a sidechain
	FlagNamed                    // names a parent
	FlagPart                     // only its beginning is there
	FlagModel                    // the model changes here
	FlagSystem                   // a line of type system that says nothing
	FlagText                     // a user's line with text beside results
	FlagLate                     // something hangs on it that came before it
)

// Bounds of the index: rows, and what is kept of names.
const (
	maxRows   = 1 << 23
	maxName   = 256
	maxNames  = 1 << 16
	maxTitle  = 1 << 10
	maxID     = 64
	maxAgents = 10_000
	maxTitles = 64 // that name the ends of branches
	// maxRefused lines without any of Claude Code's, and the file is given up.
	maxRefused = 1000
)

// Call is where a tool was called, and the tool, numbered in Tools.
type Call struct{ Row, Tool int32 }

// Names numbers texts that occur again and again, from 1; 0 stands for None and for those over the bounds.
type Names struct {
	list []string
	by   map[string]int32
}

func (n *Names) of(text string) int32 {
	if text == "" || len(text) > maxName {
		return 0
	}
	if i, ok := n.by[text]; ok {
		return i
	}
	if len(n.list) >= maxNames {
		return 0
	}
	if n.by == nil {
		n.by = map[string]int32{}
	}
	n.list = append(n.list, text)
	n.by[text] = int32(len(n.list))
	return int32(len(n.list))
}

// Text gives the text of a number.
func (n *Names) Text(i int32) string {
	if i == 0 {
		return ""
	}
	return n.list[i-1]
}

// Index is what the first reading of a file leaves: some 200 bytes a line, ids and calls included.
type Index struct {
	Rows   []Row
	Calls  map[Key]Call // by the call's id
	Agents []string     // subagents that the file speaks of
	Models Names
	Tools  Names
	Env    Envelope

	Session, Cwd string
	AgentID      string // of a subagent's transcript; "" = the file is a session's
	Created      time.Time
	Bad          int       // lines of which bytes were passed over
	Children     int32     // sidechains in the file, numbered from 1
	Tips         []int32   // by child: the row with which it ends
	Done         []uint64  // rows whose entries were given, for who reads
	Diag         diag.List // what was found

	byKey    map[Key]int32
	odd      map[Key]string  // ids that are no UUIDs
	unmet    map[int32][]Key // by row: calls that are answered and were not met before
	msgs     map[Key]int32   // numbers of the provider's messages
	kept     map[Key]segment // by the id of a compaction's boundary
	replaced map[int32]int32 // by the end of what a compaction keeps: the compaction
	agent    map[string]bool
	titles   []title
	order    []int32 // the rows by child, in the order of the file
	from     []int32 // by child: where its rows start in order
	seed     maphash.Seed
	genuine  int
	refused  int
	flat     bool // assistants without parents: the links mean nothing
}

// segment is what a compaction keeps, from its first message to the last.
type segment struct{ head, tail Key }

type title struct {
	row  int32
	rank int // 4 custom, 3 agent, 2 made by the model, 1 summary
	leaf Key
	text string
}

// Note reports something about a line; 0 = about the file.
func (x *Index) Note(line int32, kind, detail string) {
	x.Diag.Add("", uint64(line), kind, detail)
}

// Scan is the first reading.
func Scan(src interop.Source) (x *Index, err error) {
	in, err := src.Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	x = &Index{byKey: map[Key]int32{}, Calls: map[Key]Call{}, msgs: map[Key]int32{}, agent: map[string]bool{}, kept: map[Key]segment{}, replaced: map[int32]int32{}, seed: maphash.MakeSeed()}
	s := jsonl.NewScanner(in)
	var h head
	s.Member = h.take
	s.Accepts = func([]byte) bool { return h.known() }
	s.Note = func(number int, kind, detail string, bad int) {
		x.Bad += bad
		x.refused += bad
		x.Note(int32(number), kind, detail)
	}
	for {
		o, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			if o.Part {
				h = readHead(o.Raw)
			}
			err = x.add(o, &h)
		}
		if err != nil {
			return nil, err
		}
		if x.genuine == 0 && x.refused >= maxRefused {
			break
		}
	}
	if x.genuine == 0 {
		return nil, fmt.Errorf("%w: None of its %d lines is one of Claude Code's", interop.ErrNotSession, s.Number())
	}
	x.resolve()
	return x, nil
}

// add takes one object in.
func (x *Index) add(o jsonl.Object, h *head) error {
	if len(x.Rows) >= maxRows {
		return fmt.Errorf("line %d: more than %d lines", o.Number, maxRows)
	}
	if h.typ == nil {
		x.Bad++
		x.refused++
		x.Note(int32(o.Number), diag.BadLine, "an object without a type")
		return nil
	}
	i := int32(len(x.Rows))
	r := Row{
		Offset: o.Offset, Line: int32(o.Number), At: int32(o.At), Size: int32(len(o.Raw)),
		call: None, link: None, head: i, Unit: i, Up: None, end: None, tail: None,
	}
	if o.Part {
		r.Flags |= FlagPart
		r.Size = int32(min(o.Size, math.MaxInt32))
		x.Note(r.Line, diag.Oversize, fmt.Sprintf("%d bytes, over the limit of %d: a stub stands in its place, the bytes are in the original file", o.Size, jsonl.MaxLine))
	}
	if h.known() {
		x.genuine++
	} else {
		x.refused++
	}
	if rawjson.IsTrue(h.side) {
		r.Flags |= FlagSide
	}
	parent := h.parent
	if !rawjson.IsString(parent) {
		parent = h.logical
	}
	if id := rawjson.Text(parent); id != "" {
		r.parent = x.keyOf(id)
		r.Flags |= FlagNamed
	}
	if id := rawjson.Text(h.uuid); id == "" || x.identify(&r, id, o.Raw, i) {
		x.sort(&r, h, i)
	}
	if r.Kind >= KindOther {
		x.about(h)
	}
	if x.Env == nil && r.Kind.Speaks() {
		x.Env = envelopeOf(o.Raw)
	}
	x.Rows = append(x.Rows, r)
	return nil
}

// identify enters a row under its id. The same line again says nothing new (false); another line of the same
// id answers to it from then on.
func (x *Index) identify(r *Row, id string, raw []byte, i int32) bool {
	r.Key = x.keyOf(id)
	r.sum = maphash.Bytes(x.seed, raw)
	if before, ok := x.byKey[r.Key]; ok {
		if x.Rows[before].sum == r.sum {
			x.Note(r.Line, diag.DuplicateID, fmt.Sprintf("line %d again", x.Rows[before].Line))
			return false
		}
		x.Note(r.Line, diag.DuplicateID, fmt.Sprintf("line %d has the same id: this one answers to it", x.Rows[before].Line))
	}
	x.byKey[r.Key] = i
	return true
}

// keyOf gives the key of an id, and remembers those that are no UUIDs.
func (x *Index) keyOf(id string) Key {
	k, isUUID := MakeKey(id)
	if !isUUID {
		if _, ok := x.odd[k]; !ok {
			if x.odd == nil {
				x.odd = map[Key]string{}
			}
			if len(id) > maxID {
				id = "cc-" + hex.EncodeToString(k[:])
			}
			x.odd[k] = id
		}
	}
	return k
}

// MakeKey gives the key of an id.
func MakeKey(id string) (k Key, isUUID bool) {
	if len(id) == 36 {
		if u, err := uuid.Parse(id); err == nil && u.String() == id {
			return Key(u), true
		}
	}
	sum := sha256.Sum256([]byte(id))
	copy(k[:], sum[:])
	return k, false
}

// ID gives the id of a row's last entry.
func (x *Index) ID(i int32) string {
	r := &x.Rows[i]
	if r.Key == (Key{}) || r.Kind == KindNone {
		if r.At > 0 {
			return fmt.Sprintf("cc-%d.%d", r.Line, r.At)
		}
		return fmt.Sprintf("cc-%d", r.Line)
	}
	id, ok := x.odd[r.Key]
	if !ok {
		id = uuid.UUID(r.Key).String()
	}
	if x.byKey[r.Key] != i {
		id = fmt.Sprintf("%s.line%d", id, r.Line)
	}
	return id
}

// about takes from a line what is to be known of the session.
func (x *Index) about(h *head) {
	if x.Created.IsZero() {
		if t, ok := jsonl.Stamp(h.stamp); ok {
			x.Created = t
		}
	}
	if x.Cwd == "" {
		x.Cwd = rawjson.Text(h.cwd)
	}
	if id := rawjson.Text(h.session); id != "" && len(id) <= maxName && (x.Session == "" || !rawjson.IsTrue(h.side)) {
		x.Session = id
	}
	if x.AgentID == "" && rawjson.IsTrue(h.side) {
		x.AgentID = AgentName(rawjson.Text(h.agent))
	}
}

// Kept gives the row with which begins what the compaction of a boundary keeps.
func (x *Index) Kept(boundary *Row) (row int32, ok bool) {
	k, ok := x.byKey[x.kept[boundary.Key].head]
	if !ok || !x.Rows[k].Kind.Speaks() {
		return None, false
	}
	return x.Rows[k].Unit, true
}

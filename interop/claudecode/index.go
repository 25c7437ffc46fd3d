package claudecode

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// lineKind is what becomes of a line.
type lineKind uint8

// The kinds.
const (
	kindNone      lineKind = iota // custom entry: no part of the file's tree
	kindTitle                     // likewise, and names the session from there on
	kindAgain                     // likewise: an earlier line once more
	kindNewer                     // amendment: an earlier line once more, with other fields
	kindOther                     // custom entry: part of the file's tree, but nothing is said
	kindPlace                     // likewise, at the place that it names: it is damaged, or the user went back
	kindUser                      // user message, tool results, or both
	kindQueued                    // what the user typed while the model worked
	kindMeta                      // what the program says in the user's name
	kindAssistant                 // a piece of a message of the model
	kindBoundary                  // compaction: where
	kindSummary                   // compaction: what is left
)

// Speaks reports whether a line is part of the conversation.
func (k lineKind) Speaks() bool { return k >= kindUser }

// lineKey is an id: a UUID, or the beginning of the SHA-256 of any other text.
type lineKey [16]byte

// rootID is the entry on which a session begins.
const rootID = "cc-session"

// noRow means that there is no row.
const noRow = int32(-1)

// lineRow is one line of the file in the index: what is kept of it between the two readings.
type lineRow struct {
	Key    lineKey
	Offset int64 // of its line in the file
	Time   int64 // in milliseconds since 1970, if FlagTimed
	Line   int32 // its number, from 1
	At     int32 // where the object starts in its line
	Size   int32 // of the object
	Unit   int32 // the last row of what becomes one entry with it
	Up     int32 // the row on whose last entry it hangs
	Child  int32 // 0 = the session itself
	Model  int32 // the one in force, numbered in Models; 0 = none
	Held   int32 // results that it holds
	parent int32 // the one that it names, or of which it is a repetition; noRow = it is not there
	Kind   lineKind
	Flags  uint8
	names  lineKey // the key of the one that it names
	sum    uint64
	msg    int32 // number of the provider's message, from 1; 0 = none
	call   int32 // the last row whose call it answers
	link   int32 // the row that speaks before it; for one that does not speak, the row that it continues from
	head   int32 // the first row of what becomes one entry with it
	end    int32 // of a message with calls: the last row that answers one
	tail   int32 // the last line hung on it that does not speak
}

// What is to be known of a row beside its kind.
const (
	flagSide   uint8 = 1 << iota // of a sidechain
	flagNamed                    // names a parent
	flagPart                     // only its beginning is there
	flagModel                    // the model changes here
	flagSystem                   // a line of type system that says nothing
	flagText                     // a user's line with text beside results
	flagTimed                    // says when it was written
	flagPast                     // a later row has its id, and answers to it
)

// Bounds of the index: rows, and what is kept of names.
const (
	maxRows     = 1 << 23
	maxNameSize = 256
	maxNames    = 1 << 16
	maxID       = 64
	maxAgents   = 10_000
	maxTitles   = 64 // summaries of what ends at a row
	// maxRefused lines without any of Claude Code's, and the file is given up.
	maxRefused = 1000
)

// toolCall is where a tool was called, and the tool, numbered in Tools.
type toolCall struct{ Row, Tool int32 }

// index is what the first reading of a file leaves: some 200 bytes a line, ids and calls included.
type index struct {
	Rows   []lineRow
	Calls  map[lineKey]toolCall // by the call's id
	Agents []string             // agents that the file speaks of,
	Runs   []string             // and runs of workflows
	Models nameTable
	Tools  nameTable
	Env    envelope

	Session, Cwd string
	Begun        string // session of the first line: another one in the file of a session that was resumed from it
	AgentID      string // of an agent's transcript; "" = the file is a session's
	Created      time.Time
	Bad          int                       // lines of which bytes were passed over
	Children     int32                     // sidechains in the file, numbered from 1
	Tips         []int32                   // by child: the row with which it ends
	Done         []bool                    // by row: its entries were given, for who reads
	Diag         transcript.DiagnosticList // what was found

	pieces   [][]lineRow // the rows while they are entered,
	entered  int32       // and how many were
	byKey    map[lineKey]int32
	odd      map[lineKey]string    // ids that are no UUIDs
	unmet    map[int32][]lineKey   // by row: calls that are answered and were not met before
	newer    map[int32]int32       // by row: the last later line that amends it
	ended    int32                 // the last boundary of a compaction so far
	msgs     map[lineKey]int32     // numbers of the provider's messages
	kept     map[int32]keptSegment // by a compaction's boundary: what it keeps of the rows before it
	goesOn   map[int32]int32       // by the message that is the end of what a compaction keeps: the compaction
	listed   []int32               // by child: the last boundary with a list of what it keeps
	forked   lineKey               // the row of another file after which this one begins,
	explicit lineKey               // and the one at which it continues, because it says so outright
	agent    map[string]bool
	titles   []foundTitle // summaries of what ends at a row
	named    foundTitle   // by what names the session outright,
	names    []int32      // and the rows at which that changed
	order    []int32      // the rows by child, in the order of the file
	from     []int32      // by child: where its rows start in order
	genuine  int
	refused  int
	flat     bool // assistants without parents: the links mean nothing

	resumed  *resumeState      // the lines before the first one; nil = there are none
	open     map[lineKey]int32 // calls without a result so far
	lost     []lineKey         // calls that are answered and are not in the file, at most one more than maxMissing
	sessions int               // lines at which the session became another one
	noted    int               // the last line that something was found in
	namings  []foundTitle      // what named, where that changed
	mark     int32             // the row with which a reader can begin; noRow = none
	markLast int64             // time of the line before it, in milliseconds
	first    string            // the first entry from there on
}

type foundTitle struct {
	row  int32
	rank int // 4 custom, 3 agent, 2 made by the model, 1 summary
	leaf lineKey
	text string
}

// Note reports something about a line; 0 = about the file.
func (x *index) Note(line int32, kind, detail string) {
	x.noted = max(x.noted, int(line))
	x.Diag.Add("", uint64(line), kind, detail)
}

// keyOf returns the key of an id as it is in a line.
func keyOf(val []byte) lineKey {
	k, _ := makeKey(stringBytes(val))
	return k
}

func makeKey(id []byte) (k lineKey, isUUID bool) {
	if k, isUUID = parseUUID(id); !isUUID {
		sum := sha256.Sum256(id)
		copy(k[:], sum[:])
	}
	return k, isUUID
}

// isUUID reports whether an id is a UUID as it is usually written.
func isUUID(id string) bool {
	_, ok := parseUUID([]byte(id))
	return ok
}

// parseUUID reads a UUID as it is usually written: 36 bytes, in lower case.
func parseUUID(id []byte) (k lineKey, ok bool) {
	if len(id) != 36 {
		return lineKey{}, false
	}
	n := 0
	for i := range 36 {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if id[i] != '-' {
				return lineKey{}, false
			}
			continue
		}
		c := id[i] - '0'
		if c > 9 {
			if c = id[i] - 'a' + 10; c < 10 || c > 15 {
				return lineKey{}, false
			}
		}
		k[n/2] = k[n/2]<<4 | c
		n++
	}
	return k, true
}

// ID returns the id of a row's last entry.
func (x *index) ID(i int32) string { return rawjson.Text(x.AppendID(nil, i)) }

// AppendID appends the same as a JSON string.
func (x *index) AppendID(dst []byte, i int32) []byte {
	r := &x.Rows[i]
	if r.Key == (lineKey{}) || r.Kind == kindNone || r.Kind == kindAgain || r.Kind == kindNewer {
		dst = strconv.AppendInt(append(dst, `"cc-`...), int64(r.Line), 10)
		if r.At > 0 {
			dst = strconv.AppendInt(append(dst, '.'), int64(r.At), 10)
		}
		return append(dst, '"')
	}
	if id, ok := x.odd[r.Key]; ok {
		dst = rawjson.AppendString(dst, id)
	} else {
		dst = appendUUID(dst, r.Key)
	}
	if r.Flags&flagPast != 0 {
		dst = strconv.AppendInt(append(dst[:len(dst)-1], ".line"...), int64(r.Line), 10)
		if r.At > 0 {
			dst = strconv.AppendInt(append(dst, '.'), int64(r.At), 10)
		}
		dst = append(dst, '"')
	}
	return dst
}

func appendUUID(dst []byte, k lineKey) []byte {
	dst = hex.AppendEncode(append(dst, '"'), k[:4])
	for i := 4; i < 10; i += 2 {
		dst = hex.AppendEncode(append(dst, '-'), k[i:i+2])
	}
	return append(hex.AppendEncode(append(dst, '-'), k[10:]), '"')
}

package claudecode

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// lineKind determines the entry that is made of a line.
type lineKind uint8

// The kinds.
const (
	kindNone      lineKind = iota // custom entry, not part of the file's tree
	kindTitle                     // likewise; names the session from there on
	kindAgain                     // likewise; repeats an earlier line
	kindNewer                     // amendment: an earlier line with other fields
	kindOther                     // custom entry without content, part of the file's tree
	kindPlace                     // likewise, below the line it names: a damaged line, or the user went back
	kindUser                      // user message, tool results, or both
	kindQueued                    // message typed while the model worked
	kindMeta                      // message of the program with role user
	kindAssistant                 // piece of a message of the model
	kindBoundary                  // boundary of a compaction
	kindSummary                   // summary of a compaction
)

// Speaks reports whether a line is part of the conversation.
func (k lineKind) Speaks() bool { return k >= kindUser }

// lineKey is a UUID, or the beginning of the SHA-256 of any other ID.
type lineKey [16]byte

// rootID is the ID of a session's root entry.
const rootID = "cc-session"

// noRow means that there is no row.
const noRow = int32(-1)

// lineRow is the index's record of one line, kept between the two passes.
type lineRow struct {
	Key    lineKey
	Offset int64 // of the line in the file
	Time   int64 // in milliseconds since 1970, if flagTimed
	Line   int32 // line number, from 1
	At     int32 // offset of the object in the line
	Size   int32 // size of the object
	Unit   int32 // last row of the entry to which this line belongs
	Up     int32 // row whose last entry is the parent
	Child  int32 // sidechain; 0 = the session itself
	Model  int32 // number in Models of the model in force; 0 = none
	Held   int32 // number of tool results
	parent int32 // row that it names, or that it repeats; noRow = not in the file
	Kind   lineKind
	Flags  uint8
	names  lineKey // key of the row that it names
	sum    uint64
	msg    int32 // number of the provider's message, from 1; 0 = none
	call   int32 // last row whose call it answers
	link   int32 // the preceding row of the conversation, or, without content, the row from which it continues
	head   int32 // first row of the entry to which this line belongs
	end    int32 // of a message with calls: the last row that answers one
	tail   int32 // last line without content attached to it
}

// Flags of a row.
const (
	flagSide   uint8 = 1 << iota // part of a sidechain
	flagNamed                    // names a parent
	flagPart                     // truncated
	flagModel                    // the model changes here
	flagSystem                   // line of type system without content
	flagText                     // user line with text and results
	flagTimed                    // has a time
	flagPast                     // a later row has its ID and replaces it
)

// Bounds of the index: rows and names.
const (
	maxRows     = 1 << 23
	maxNameSize = 256
	maxNames    = 1 << 16
	maxID       = 64
	maxAgents   = 10_000
	maxTitles   = 64 // summaries that name the row at which a session ends
	// maxRefused is the number of lines without any of Claude Code's after which a file is rejected.
	maxRefused = 1000
)

// toolCall is the row of a tool call, and the number of the tool in Tools.
type toolCall struct{ Row, Tool int32 }

// index is the result of the first pass over a file: about 200 bytes per line, with IDs and calls.
type index struct {
	Rows   []lineRow
	Calls  map[lineKey]toolCall // by call ID
	Agents []string             // agents that the file names
	Runs   []string             // workflow runs that the file names
	Models nameTable
	Tools  nameTable
	Env    envelope

	Session, Cwd string
	Begun        string // session of the first line; the file of a resumed session begins with lines of another one
	AgentID      string // of an agent's transcript; "" = the file is a session
	Created      time.Time
	Bad          int                       // lines of which bytes were skipped
	Children     int32                     // number of sidechains in the file; their numbers begin with 1
	Tips         []int32                   // by child: the last row of the conversation
	Done         []bool                    // by row: its entries were returned
	Diag         transcript.DiagnosticList // findings

	pieces   [][]lineRow // the rows while they are added
	entered  int32       // number of rows added
	byKey    map[lineKey]int32
	odd      map[lineKey]string    // IDs that are not UUIDs
	unmet    map[int32][]lineKey   // by row: calls that it answers and that no earlier line has
	newer    map[int32]int32       // by row: the last later line that amends it
	ended    int32                 // the last boundary of a compaction so far
	msgs     map[lineKey]int32     // numbers of the provider's messages
	kept     map[int32]keptSegment // by boundary of a compaction: the rows that it keeps
	goesOn   map[int32]int32       // the compaction that keeps rows up to a message, by that message
	listed   []int32               // by child: the last boundary with a list of kept rows
	forked   lineKey               // row of another file after which this one begins
	explicit lineKey               // row at which the session continues, if a line names it explicitly
	agent    map[string]bool
	titles   []foundTitle // summaries that name the row at which a session ends
	named    foundTitle   // the line that names the session explicitly
	names    []int32      // rows at which named changed
	order    []int32      // the rows by child, in file order
	from     []int32      // by child: its first index in order
	genuine  int
	refused  int
	flat     bool // assistant lines have no parents: the links mean nothing

	resumed  *resumeState      // the lines before the first one; nil = none
	open     map[lineKey]int32 // calls without a result so far
	lost     []lineKey         // answered calls that are not in the file, at most maxMissing+1
	sessions int               // number of lines at which the session ID changed
	noted    int               // last line with a finding
	namings  []foundTitle      // values of named over time
	mark     int32             // row where a reader can resume; noRow = none
	markLast int64             // time of the line before mark, in milliseconds
	first    string            // ID of the first entry from mark on
}

type foundTitle struct {
	row  int32
	rank int // 4 custom, 3 agent, 2 made by the model, 1 summary
	leaf lineKey
	text string
}

// Note adds a diagnostic for a line; 0 = for the file.
func (x *index) Note(line int32, kind, detail string) {
	x.noted = max(x.noted, int(line))
	x.Diag.Add("", uint64(line), kind, detail)
}

// keyOf returns the key of an ID. val is JSON.
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

// isUUID reports whether an ID is a UUID in canonical form.
func isUUID(id string) bool {
	_, ok := parseUUID([]byte(id))
	return ok
}

// parseUUID parses a UUID in canonical form: 36 bytes, lower case.
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

// ID returns the ID of a row's last entry.
func (x *index) ID(i int32) string { return rawjson.Text(x.AppendID(nil, i)) }

// AppendID appends that ID as a JSON string.
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

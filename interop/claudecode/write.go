package claudecode

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
	"github.com/coppice-go/coppice/transcript"
)

// sidechainLinesField is the field of a session's first entry that counts the lines of its file that belong to
// sidechains.
const sidechainLinesField = "sidechainLines"

const lostSidechains = "lines of sidechains: they are in sessions of their own"

// fileVersion is the default version of lines: it supports every kind of line that the writer makes.
const fileVersion = "2.1.0"

// Write writes a session as a file of Claude Code, with all branches; Claude Code continues from the last entry. The
// name of the file must be SessionID(header) + ".jsonl". entries are lines of pi's format version 3 in order, without
// the header; messages may have the shape of any provider. The losses are what the format cannot express.
//
// Bounds (I15): one entry and its lines; about 200 bytes per entry, and the IDs of its calls.
func Write(
	w io.Writer, header interop.Header, entries iter.Seq2[transcript.Draft, error],
) (interop.Losses, error) {
	return writeEntries(w, header, 0, entries, nil)
}

// Append writes the entries added to an imported session as lines to be appended to its original file. entries are all
// of the session's entries in order. The reader returned the first known of them, which are only read, to find the
// places of the new ones. If Claude Code would not continue at the entry head, two further lines move it there. A head
// of "", before the first entry, is a loss.
func Append(
	w io.Writer, header interop.Header, known int, entries iter.Seq2[transcript.Draft, error], head string,
) (interop.Losses, error) {
	return writeEntries(w, header, known, entries, &head)
}

// writeEntries writes the lines of all entries except the first known ones. head is the entry at which Claude Code
// continues; nil = the last.
func writeEntries(
	w io.Writer, header interop.Header, known int, entries iter.Seq2[transcript.Draft, error], head *string,
) (interop.Losses, error) {
	out := &writer{
		w: bufio.NewWriter(w), losses: interop.Losses{}, session: SessionID(header),
		places: map[string]string{}, firsts: map[string]string{}, ids: piwriter.CallIDs{},
		ways: map[string]*pathStep{}, asides: map[string]string{},
		calls: map[[8]byte]bool{}, results: map[[8]byte]bool{}, sent: map[[8]byte]bool{},
	}
	if header.CwdWas != header.Cwd {
		out.cwd = [2]string{header.CwdWas, header.Cwd}
	}
	out.env = envelope{
		{Key: []byte("userType"), Val: []byte(`"external"`)},
		{Key: []byte("cwd"), Val: rawjson.AppendString(nil, header.Cwd)},
		{Key: []byte("version"), Val: []byte(`"` + fileVersion + `"`)},
		{Key: []byte("gitBranch"), Val: []byte(`""`)},
	}
	n := 0
	for d, err := range entries {
		if err != nil {
			return out.losses, fmt.Errorf("entry %d: %w", n, err)
		}
		if err := out.draft(d, n < known); err != nil {
			return out.losses, fmt.Errorf("entry %d: %w", n, err)
		}
		n++
	}
	if head != nil {
		out.head = out.place(*head)
	}
	out.pointAtHead(n)
	if err := out.w.Flush(); err != nil {
		return out.losses, fmt.Errorf("write: %w", err)
	}
	return out.losses, nil
}

// SessionID returns the ID under which Claude Code finds a session: its own if it is a UUID, else a UUID derived from
// it.
func SessionID(header interop.Header) string { return asUUID("session", header.ID) }

func asUUID(kind, id string) string {
	if isUUID(id) {
		return id
	}
	return derivedUUID(kind, id)
}

// derivedUUID returns an ID that is the same for equal arguments.
func derivedUUID(kind, of string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("coppice:claude-code:"+kind+":"+of)).String()
}

// writer turns entries into lines.
type writer struct {
	w       *bufio.Writer
	losses  interop.Losses
	session string
	agent   string               // of an agent's transcript
	env     envelope             // fields of every line
	cwd     [2]string            // old and new working directory: lines in or below the old one are moved
	ours    bool                 // the session came from Claude Code
	old     bool                 // the current entry is in the original file
	added   bool                 // lines of the tree were written
	places  map[string]string    // by entry: its line, if that is not derived from its ID
	firsts  map[string]string    // by entry with several lines: the first line
	ids     piwriter.CallIDs     // for calls without an ID
	ways    map[string]*pathStep // by entry: the path to it; none = empty
	way     *pathStep            // of the current entry
	calls   map[[8]byte]bool     // IDs of calls that were written
	results map[[8]byte]bool     // IDs of calls with a result
	sent    map[[8]byte]bool     // IDs of the provider's messages
	asides  map[string]string    // by line without content: the line with content before it
	spoke   string               // the last line with content
	opens   string               // the line at which the file continues: the last one of the tree
	named   string               // the line that the file names explicitly instead; "" = none
	// line at which the file must continue: that of the last entry, or of the requested head
	head string
	last time.Time
	err  error
}

func (w *writer) lose(what string) { w.losses[what]++ }

// place returns the line of an entry; "" = none.
func (w *writer) place(id string) string {
	if id == "" {
		return ""
	}
	if p, ok := w.places[id]; ok {
		return p
	}
	return asUUID(w.session, id)
}

// sourceEntry is an entry to write.
type sourceEntry struct {
	transcript.Line
	message []byte
	more    []byte // its field claudeCode
	at      []byte // its time, a JSON string
}

func (w *writer) draft(d transcript.Draft, old bool) error {
	raw, err := d.Line(d.ID, d.Parent, d.Time)
	if err != nil {
		return err
	}
	l, err := transcript.ParseLine(raw)
	if err != nil {
		return err
	}
	it := sourceEntry{
		Line: l, message: w.ids.Message(l.ID, l.ParentID, rawjson.Field(raw, "message")),
		more: rawjson.Field(raw, "claudeCode"),
	}
	if y := l.Time.Year(); !l.Time.IsZero() && y >= 1970 && y <= 9999 {
		w.last = l.Time
	}
	it.at = jsonl.AppendTime(nil, w.last)
	w.way = w.ways[l.ParentID]
	if w.old = old; old {
		w.known(it)
	} else {
		w.entry(it)
	}
	if w.way != nil {
		w.ways[l.ID] = w.way
	}
	if w.head = w.place(l.ID); old {
		w.opens = w.head // the last entry that the reader returned is where the file continues
	}
	return w.err
}

// known records the place of an entry in the original file.
func (w *writer) known(it sourceEntry) {
	switch {
	case it.Type == "message" || it.Type == "custom_message" || it.Type == "compaction":
		at := it.ID
		if head, tail, ok := cutLast(at); ok && (strings.HasPrefix(tail, "line") ||
			rawjson.Text(rawjson.Field(it.message, "role")) == "toolResult") {
			at = head
		}
		if at != w.place(it.ID) {
			w.places[it.ID] = at
		}
		w.note(it.message)
	case it.ID == rootID:
		w.origin(it)
		w.places[it.ID] = ""
	default:
		w.places[it.ID] = w.place(it.ParentID)
		w.changed(it)
		w.pointed(it)
	}
}

// changed records the model in force from an entry on.
func (w *writer) changed(it sourceEntry) {
	if it.Type != "model_change" {
		return
	}
	if model := rawjson.Field(it.Raw, "modelId"); rawjson.IsString(model) && len(model) > 2 {
		w.pass(pathStep{model: model})
	}
}

func cutLast(id string) (head, tail string, ok bool) {
	i := strings.LastIndexByte(id, '.')
	if i < 0 {
		return id, "", false
	}
	return id[:i], id[i+1:], true
}

// origin reads the session's envelope from the root entry of the reader.
func (w *writer) origin(it sourceEntry) {
	data := rawjson.Field(it.Raw, "data")
	env := rawjson.Field(data, "envelope")
	if len(env) == 0 || env[0] != '{' {
		return
	}
	if n, err := strconv.Atoi(string(rawjson.Field(data, sidechainLinesField))); err == nil && n > 0 && !w.old {
		w.losses[lostSidechains] += n
	}
	w.ours = true
	w.agent = rawjson.Text(rawjson.Field(data, "agentId"))
	if id := rawjson.Text(rawjson.Field(data, "sessionId")); id != "" && w.old {
		w.session = id
	}
	w.env = w.env[:0:0]
	for m := rawjson.Walk(env); m.Closing == '}' && m.Next(); {
		if name := string(m.Key); name != "sessionId" && name != "agentId" {
			w.env = append(w.env, member{Key: m.Key, Val: w.moved(name, m.Val)})
		}
	}
}

// entry writes one entry.
func (w *writer) entry(it sourceEntry) {
	if piwriter.IsStub(it.Line) {
		w.lose(piwriter.LostStub)
	}
	switch it.Type {
	case "message":
		w.message(it)
	case "custom_message":
		kind := rawjson.Text(rawjson.Field(it.Raw, "customType"))
		if kind != typeMeta && kind != typeInserted {
			w.lose("messages of programs: written as the program's own, without their kind")
		}
		w.put(it, w.program(rawjson.Field(it.Raw, "content"), kind != typeInserted))
	case "compaction":
		w.compaction(it)
	case "branch_summary":
		w.lose("branch summaries: written as the program's own messages")
		w.put(it, w.said(rawjson.Field(it.Raw, "summary"), true))
	case "custom":
		w.custom(it)
	case "session_info":
		w.places[it.ID] = w.place(it.ParentID)
		name := rawjson.Field(it.Raw, "name")
		if !rawjson.IsString(name) {
			name = []byte(`""`)
		}
		w.line(rawjson.Object("type", []byte(`"custom-title"`), "customTitle", name,
			"sessionId", rawjson.AppendString(nil, w.session)))
	case "model_change":
		w.places[it.ID] = w.place(it.ParentID) // every message names its model
		w.changed(it)
	default:
		w.skip(it, "entries of type "+printable(it.Type))
	}
}

func (w *writer) skip(it sourceEntry, loss string) {
	if loss != "" {
		w.lose(loss)
	}
	w.places[it.ID] = w.place(it.ParentID)
}

func printable(s string) string {
	const most = 40
	return fmt.Sprintf("%.*q", most, s)
}

// custom writes the lines that the reader kept. Claude Code does not know entries of other programs.
func (w *writer) custom(it sourceEntry) {
	kind := rawjson.Text(rawjson.Field(it.Raw, "customType"))
	data := rawjson.Field(it.Raw, "data")
	own := strings.HasPrefix(kind, "claude-code.") && len(data) > 0 && data[0] == '{'
	switch {
	case it.ID == rootID:
		w.origin(it)
		w.places[it.ID] = ""
	case kind == "claude-code.head", strings.HasPrefix(kind, "coppice."):
		w.skip(it, "")
	case kind == toolOutputType:
		w.skip(it, "outputs of tools that lie in files of their own, beside the session")
	case piwriter.IsStub(it.Line):
		w.skip(it, "") // already counted
	case !own:
		w.skip(it, "entries of programs (custom)")
	case rawjson.Field(data, "uuid") == nil:
		w.skip(it, "")
		w.line(data)
	case strings.HasPrefix(it.ID, "cc-"):
		w.skip(it, "") // a repeated line
	default:
		id, up, opens := w.place(it.ID), w.place(it.ParentID), w.opens
		data = rawjson.WithField(data, "parentUuid", piwriter.OrNull(up))
		w.tree(id, rawjson.WithField(data, "uuid", rawjson.AppendString(nil, id)))
		said, aside := w.asides[up]
		if !aside {
			said = up
		}
		if w.asides[id] = said; said != w.spoke {
			w.opens = opens // such a line is not part of the tree
		}
	}
}

// compaction writes a boundary and the summary after it.
func (w *writer) compaction(it sourceEntry) {
	boundary := derivedUUID("boundary", w.place(it.ID))
	meta := rawjson.Field(rawjson.Field(it.Raw, "details"), "compactMetadata")
	if len(meta) == 0 || meta[0] != '{' {
		tokens := rawjson.Field(it.Raw, "tokensBefore")
		if !rawjson.IsNumber(tokens) {
			tokens = []byte("0")
		}
		meta = rawjson.Object("trigger", []byte(`"manual"`), "preTokens", tokens)
	}
	for _, name := range []string{"preservedMessages", "preservedSegment"} {
		meta = rawjson.WithField(meta, name, nil) // rows of the original file
	}
	if kept := rawjson.Text(rawjson.Field(it.Raw, "firstKeptEntryId")); kept != "" && kept != it.ID {
		w.lose("compactions that keep messages: only Claude Code 2.1 and later reads them so")
		first := w.place(kept)
		if id, ok := w.firsts[kept]; ok {
			first = id
		}
		meta = rawjson.WithField(meta, "preservedSegment", rawjson.Object("headUuid", piwriter.OrNull(first),
			"anchorUuid", piwriter.OrNull(w.place(it.ID)), "tailUuid", piwriter.OrNull(w.place(it.ParentID))))
	}
	parent := w.upFrom(w.place(it.ParentID))
	w.speak(boundary, w.envelope(it, boundary, "", `"system"`, "logicalParentUuid", piwriter.OrNull(parent),
		"subtype", []byte(`"compact_boundary"`),
		"content", []byte(`"Conversation compacted"`), "isMeta", []byte("false"), "level", []byte(`"info"`),
		"compactMetadata", meta))
	summary := rawjson.Field(it.Raw, "summary")
	if !rawjson.IsString(summary) {
		summary = []byte(`""`)
	}
	w.speak(w.place(it.ID), w.envelope(it, w.place(it.ID), boundary, `"user"`,
		"message", rawjson.Object("role", []byte(`"user"`), "content", summary),
		"isVisibleInTranscriptOnly", []byte("true"), "isCompactSummary", []byte("true")))
}

// envelope makes a line of the tree.
func (w *writer) envelope(it sourceEntry, id, parent, typ string, fields ...any) []byte {
	out := append([]byte(`{"parentUuid":`), piwriter.OrNull(w.upFrom(parent))...)
	if w.agent != "" {
		out = rawjson.AppendString(append(out, `,"isSidechain":true,"agentId":`...), w.agent)
	} else {
		out = append(out, `,"isSidechain":false`...)
	}
	for _, m := range w.env {
		if rawjson.Field(it.more, string(m.Key)) == nil {
			out = appendMember(out, string(m.Key), m.Val)
		}
	}
	out = appendMember(out, "sessionId", rawjson.AppendString(nil, w.session))
	out = appendMember(out, "type", []byte(typ))
	for i := 0; i+1 < len(fields); i += 2 {
		name, _ := fields[i].(string)
		if val, _ := fields[i+1].([]byte); val != nil {
			out = appendMember(out, name, val)
		}
	}
	out = appendMember(appendMember(out, "uuid", rawjson.AppendString(nil, id)), "timestamp", it.at)
	for m := rawjson.Walk(it.more); m.Closing == '}' && m.Next(); {
		switch string(m.Key) {
		case "message", "sessionId", "isSidechain", "agentId", "logicalParentUuid", "subtype", "compactMetadata",
			"isVisibleInTranscriptOnly", "sourceToolAssistantUUID":
		default:
			out = appendMember(out, string(m.Key), w.moved(string(m.Key), m.Val))
		}
	}
	return append(out, '}')
}

// moved returns the value of a line's field. A working directory is moved to the session's new one.
func (w *writer) moved(name string, val []byte) []byte {
	if name != "cwd" || w.cwd[0] == "" {
		return val
	}
	below, ok := strings.CutPrefix(rawjson.Text(val), w.cwd[0])
	if !ok || below != "" && below[0] != '/' && below[0] != '\\' {
		return val
	}
	return rawjson.AppendString(nil, w.cwd[1]+below)
}

// upFrom returns the line to name as the parent. For a line without content that is the line with content before it,
// unless the file continues there.
func (w *writer) upFrom(parent string) string {
	if said, aside := w.asides[parent]; aside && said != w.spoke {
		return said
	}
	return parent
}

// speak writes a line of the tree with content.
func (w *writer) speak(id string, line []byte) {
	w.spoke = id
	w.tree(id, line)
}

func (w *writer) tree(id string, line []byte) {
	w.opens, w.added = id, true
	w.line(line)
}

func (w *writer) line(line []byte) {
	if w.err == nil {
		// The line may be a part of the caller's entry, so nothing is appended to it.
		_, w.err = w.w.Write(line)
	}
	if w.err == nil {
		w.err = w.w.WriteByte('\n')
	}
}

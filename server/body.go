package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"reflect"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// maxDepth bounds how deep the JSON of a body is nested: below the 512 of a line in the log, in which what the body
// holds is a few levels deeper.
const maxDepth = 500

// It does not compile where the engine takes less.
const _ = uint(checkpoint.MaxItemDepth - maxDepth)

// errBodies is the error of a body that would be one too many.
var errBodies = errors.New("too many bytes are under way; nothing was stored")

// decode reads the body of a request, a JSON object, into a struct, member by member as it comes: what is not wanted is
// refused before the rest is read. It is the one door for bodies that are JSON: they are UTF-8, nested at most maxDepth
// deep, and have the members of the struct, each at most once and by its exact name. encoding/json would replace bad
// bytes silently, and take Entries for entries and the last of two members.
func decode(r *http.Request, into any) error {
	err, seen := decodeBody(r, into), seenOf(r)
	if err != nil {
		seen.skip(r)
		return err
	}
	seen.tidy()
	return nil
}

// tidy frees the memory of what was dropped of a large body. Else the heap grows to twice what is in use before it is
// collected, and the process keeps the pages: peaks of bodies that come one after the other would add up.
func (o *observed) tidy() {
	if o.large {
		debug.FreeOSMemory()
	}
}

// skip reads and drops what comes of a body that is refused: a client that is sending it would not see the answer.
func (o *observed) skip(r *http.Request) {
	if o.give != nil {
		o.give()
	}
	_, _ = io.Copy(io.Discard, r.Body) // the answer is the refusal
}

func decodeBody(r *http.Request, into any) error {
	if t := r.Header.Get("Content-Type"); t != "" {
		if kind, _, err := mime.ParseMediaType(t); err != nil || kind != "application/json" {
			return newProblem(http.StatusUnsupportedMediaType, "usage", "send application/json",
				fmt.Errorf("a body of the type %.80q; nothing was stored", t))
		}
	}
	in := &textReader{in: r.Body}
	d := json.NewDecoder(in)
	in.used = d.InputOffset
	err := members(d, reflect.ValueOf(into).Elem())
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		err = fmt.Errorf("offset %d: more than one JSON value", d.InputOffset())
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return bodyError("the body", err)
}

// bodyError is the error of a body that could not be read, or is not as it should be.
func bodyError(what string, err error) error {
	_, large := errors.AsType[*http.MaxBytesError](err)
	switch {
	case large, errors.Is(err, errSlow), errors.Is(err, errBodies):
		return err
	case errors.Is(err, errValue):
		return newProblem(http.StatusRequestEntityTooLarge, "too-large", "", err)
	}
	return badInput(what, err)
}

// text returns an error unless a text is UTF-8.
func text(s []byte) error {
	if at := badByte(s); at >= 0 {
		return fmt.Errorf("byte %d is not UTF-8", at)
	}
	return nil
}

// badByte returns the offset of the first byte of a text that is not UTF-8; -1 = there is none.
func badByte(s []byte) int {
	if utf8.Valid(s) {
		return -1
	}
	at := 0
	for {
		r, size := utf8.DecodeRune(s[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
}

// maxValue bounds one value of a body: an entry with its images, which the store bounds, or a state.
const maxValue = 32 << 20

// errValue is the error of a value that no store takes.
var errValue = fmt.Errorf("a value is longer than %d bytes; nothing was stored", maxValue)

// textReader passes on text, and fails where it is not UTF-8, or where a value is too long.
type textReader struct {
	in   io.Reader
	used func() int64 // how many bytes are in values that were read to their end
	at   int          // bytes before rest
	rest []byte       // of the last character, which is not whole yet: at most 3 bytes
}

func (t *textReader) Read(p []byte) (int, error) {
	if int64(t.at)-t.used() > maxValue {
		return 0, errValue
	}
	n, err := t.in.Read(p)
	seen := p[:n]
	if len(t.rest) > 0 {
		seen = append(t.rest, seen...)
	}
	whole := len(seen)
	for i := 1; i < utf8.UTFMax && i <= len(seen); i++ {
		if last := seen[len(seen)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) && !errors.Is(err, io.EOF) {
				whole -= i
			}
			break
		}
	}
	if bad := badByte(seen[:whole]); bad >= 0 {
		return 0, fmt.Errorf("byte %d is not UTF-8", t.at+bad)
	}
	t.at += whole
	t.rest = append(t.rest[:0:0], seen[whole:]...)
	return n, err
}

// members decodes the members of a JSON object into the fields of a struct. A field without omitempty or omitzero is
// required, and not empty if it has minLength: what is missing would be taken for what is empty on purpose.
func members(d *json.Decoder, into reflect.Value) error {
	switch begin, err := d.Token(); {
	case err != nil:
		return err
	case begin != json.Delim('{'):
		return errors.New("not a JSON object")
	}
	seen := make([]bool, into.NumField())
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		name := key.(string) // a decoder takes no other key
		i := fieldOf(into.Type(), name)
		if i < 0 {
			return fmt.Errorf("%.80q is no member of this body", name)
		}
		if seen[i] {
			return fmt.Errorf("the member %q occurs twice", name)
		}
		seen[i] = true
		if err := member(d, into.Field(i)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if _, err := d.Token(); err != nil { // the end of the object
		return err
	}
	for i := range seen {
		f := into.Type().Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !strings.HasPrefix(options, "omit") && (!seen[i] || f.Tag.Get("minLength") != "" && into.Field(i).IsZero()) {
			return fmt.Errorf("want %q", name)
		}
	}
	return nil
}

// member decodes the value of a member into a field. Of a list each element is read by itself.
func member(d *json.Decoder, into reflect.Value) error {
	list, ok := reflect.TypeAssert[*sentEntries](into.Addr())
	if !ok && into.Kind() == reflect.Pointer && into.Type().Elem().Kind() == reflect.Struct {
		return object(d, into)
	}
	if !ok {
		raw, err := value(d, maxDepth-1)
		if err == nil {
			err = once(raw, into.Kind())
		}
		if own, ok := reflect.TypeAssert[*json.RawMessage](into.Addr()); ok || err != nil {
			if ok {
				*own = raw
			}
			return err
		}
		return json.Unmarshal(raw, into.Addr().Interface())
	}
	switch begin, err := d.Token(); {
	case err != nil || begin == nil: // null
		return err
	case begin != json.Delim('['):
		return errors.New("not a JSON array")
	}
	for n := 0; d.More(); n++ {
		if err := list.decode(d); err != nil {
			return fmt.Errorf("[%d]: %w", n, err)
		}
	}
	_, err := d.Token()
	return err
}

// object decodes a member that is an object with members of its own, or null.
func object(d *json.Decoder, into reflect.Value) error {
	raw, err := value(d, maxDepth-1)
	if err != nil || string(raw) == "null" {
		return err
	}
	into.Set(reflect.New(into.Type().Elem()))
	return members(json.NewDecoder(bytes.NewReader(raw)), into.Elem())
}

// sentEntries is the entries of a body: as such, or, if that is set before it is read, as the lines of a program.
type sentEntries struct {
	drafts  []draft
	asLines bool
	lines   []json.RawMessage
}

// decode reads one entry.
func (l *sentEntries) decode(d *json.Decoder) error {
	if l.asLines {
		line, err := value(d, maxDepth-2)
		if err == nil {
			err = l.add(line)
		}
		return err
	}
	var e draft
	if err := d.Decode(&e); err != nil {
		return err
	}
	l.drafts = append(l.drafts, e)
	return nil
}

// add adds a line of a program.
func (l *sentEntries) add(line json.RawMessage) error {
	if len(line) == 0 || line[0] != '{' {
		return api.ErrEntry
	}
	l.lines = append(l.lines, line)
	return nil
}

// readLines reads a body of lines, each a JSON object; empty ones are passed over.
func (l *sentEntries) readLines(r *http.Request) error {
	in := &textReader{in: r.Body}
	all := bufio.NewReader(in)
	in.used = func() int64 { return int64(in.at - all.Buffered()) } // a line is bounded by the body
	for n := 1; ; n++ {
		line, err := all.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return bodyError(fmt.Sprintf("the body: line %d", n), err)
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			end, verr := rawjson.ValueEnd(line, 0, maxDepth-2)
			if verr == nil && end < len(line) {
				verr = errors.New("more than one JSON value")
			}
			if verr == nil {
				verr = l.add(line)
			}
			if verr != nil {
				return bodyError(fmt.Sprintf("the body: line %d", n), verr)
			}
		}
		if err != nil {
			return nil
		}
	}
}

// value reads a value that is nested at most depth deep.
func value(d *json.Decoder, depth int) (raw json.RawMessage, err error) {
	if err := d.Decode(&raw); err != nil {
		return nil, err
	}
	return raw, nested(raw, depth)
}

// nested returns an error if a value is nested more than depth deep.
func nested(raw []byte, depth int) error {
	_, err := rawjson.ValueEnd(raw, 0, depth)
	if errors.Is(err, rawjson.ErrDepth) {
		err = fmt.Errorf("JSON that is nested more than %d deep", maxDepth)
	}
	return err
}

// draft is an entry of a body. It is made while the body is read, and is the only copy of its bytes.
type draft struct {
	transcript.Draft
	own *transcript.KnownID // its rule for an id that the session has; nil = that of the body
}

// UnmarshalJSON makes the entry.
func (e *draft) UnmarshalJSON(p []byte) error {
	if err := nested(p, maxDepth-2); err != nil {
		return err
	}
	var err error
	e.Draft, e.own, err = api.Envelope(p)
	return err
}

// fieldOf returns the index of the field that a member is decoded into; -1 = there is none.
func fieldOf(body reflect.Type, member string) int {
	for i := range body.NumField() {
		if name, _, _ := strings.Cut(body.Field(i).Tag.Get("json"), ","); name == member {
			return i
		}
	}
	return -1
}

// once returns an error if a member is to be a map, and a key of it occurs twice: one of two values would be lost.
func once(val []byte, kind reflect.Kind) error {
	if kind != reflect.Map {
		return nil
	}
	seen := map[string]bool{}
	for m := rawjson.Walk(val); m.Next(); {
		if seen[string(m.Key)] {
			return fmt.Errorf("the member %.80q occurs twice", m.Key)
		}
		seen[string(m.Key)] = true
	}
	return nil
}

// growing is a body whose length is not known. It takes its part of a budget as it comes, each time as much as it has.
type growing struct {
	io.ReadCloser
	r    *http.Request
	seen *observed
	from *budget

	limit, large int64 // of the body; above which it is a large one, 0 = none is
	taken, room  int64 // of the budget; how many bytes may come before it takes more
	given        bool  // what still comes is dropped
}

func (g *growing) Read(p []byte) (int, error) {
	if g.room == 0 && g.taken < g.limit && !g.given {
		more := min(max(g.taken, maxNote), g.limit-g.taken)
		if _, err := g.from.take(g.r.Context(), g.seen.on.Tenant, more); err != nil { // back returns it
			return 0, err
		}
		g.taken, g.room = g.taken+more, more
		g.seen.large = g.large > 0 && g.taken > g.large
	}
	if g.room > 0 {
		p = p[:min(int64(len(p)), g.room)]
	}
	n, err := g.ReadCloser.Read(p)
	g.room -= min(g.room, int64(n))
	return n, err
}

// back returns the part.
func (g *growing) back() {
	g.given, g.room = true, 0
	g.seen.tidy()
	g.from.giveBack(g.seen.on.Tenant, g.taken)
}

// bodyRate is how many bytes of a body have to come in a second, once Options.ReadTimeout is used up.
const bodyRate = 64 << 10

// errSlow is the error of a body that takes too long.
var errSlow = errors.New("the body came too slowly; nothing was stored")

// timedBody is the body of a request, for which its client has a limited time.
type timedBody struct {
	io.ReadCloser
	conn *http.ResponseController
	due  time.Time
	seen *observed
}

// timed bounds how long the body of a request may take. That holds from the beginning, for bodies too that no operation
// reads: the connection waits for their rest before the answer is sent. Without a body nothing is bounded, for what is
// read then is whether the client is still there.
func (s *Server) timed(seen *observed, r *http.Request) io.ReadCloser {
	if r.Body == nil || r.Body == http.NoBody {
		return r.Body
	}
	now := time.Now() //nolint:forbidigo // connections go by the machine's clock
	b := &timedBody{r.Body, http.NewResponseController(seen), now.Add(s.o.ReadTimeout), seen}
	_ = b.conn.SetReadDeadline(b.due) // a recorder has none
	return b
}

// Read moves the deadline by what came, and ends it with the body.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.seen.brought += int64(n)
	switch {
	case errors.Is(err, io.EOF):
		_ = b.conn.SetReadDeadline(time.Time{})
	case err == nil:
		b.due = b.due.Add(time.Duration(n) * (time.Second / bodyRate))
		_ = b.conn.SetReadDeadline(b.due)
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = errSlow
	}
	return n, err
}

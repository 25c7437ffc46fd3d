package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// maxDepth bounds how deep the JSON of a body is nested: below the 512 of a line in the log, in which what the body
// holds is a few levels deeper.
const maxDepth = 500

// It does not compile where the engine takes less.
const _ = uint(checkpoint.MaxItemDepth - maxDepth)

// body reads the body of a request, JSON of at most Options.MaxBody bytes.
func body(r *http.Request) ([]byte, error) {
	if t := r.Header.Get("Content-Type"); t != "" {
		if kind, _, err := mime.ParseMediaType(t); err != nil || kind != "application/json" {
			return nil, newProblem(http.StatusUnsupportedMediaType, "usage", "send application/json",
				fmt.Errorf("a body of the type %.80q; nothing was stored", t))
		}
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			return nil, err
		}
		if errors.Is(err, errSlow) {
			return nil, err
		}
		return nil, badInput("the body", err)
	}
	return raw, nil
}

// decode reads the body of a request, a JSON object, into a struct. It is the one door for bodies that are JSON: they
// are UTF-8, nested at most maxDepth deep, and have the members of the struct, each at most once and by its exact name.
// encoding/json would replace bad bytes silently, and take Entries for entries and the last of two members.
func decode(r *http.Request, into any) error {
	raw, err := body(r)
	if err != nil {
		return err
	}
	if err := text(raw); err != nil {
		return badInput("the body", err)
	}
	end, err := rawjson.ValueEnd(raw, 0, maxDepth)
	if errors.Is(err, rawjson.ErrDepth) {
		err = fmt.Errorf("JSON that is nested more than %d deep", maxDepth)
	}
	if err != nil {
		return badInput("the body", err)
	}
	if after := rawjson.Space(raw, end); after < len(raw) {
		return badInput("the body", fmt.Errorf("offset %d: more than one JSON value", after))
	}
	if err := members(raw, reflect.ValueOf(into).Elem()); err != nil {
		return badInput("the body", err)
	}
	return nil
}

// text returns an error unless a text is UTF-8.
func text(s []byte) error {
	if utf8.Valid(s) {
		return nil
	}
	at := 0
	for at < len(s) {
		r, size := utf8.DecodeRune(s[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return fmt.Errorf("byte %d is not UTF-8", at)
}

// members decodes the members of a JSON object, which is valid, into the fields of a struct. A field without omitempty
// is required, and not empty if it has minLength: what is missing would be taken for what is empty on purpose.
func members(raw []byte, into reflect.Value) error {
	m := rawjson.Walk(raw)
	if m.Closing != '}' {
		return errors.New("not a JSON object")
	}
	seen := make([]bool, into.NumField())
	for m.Next() {
		i := fieldOf(into.Type(), m.Key)
		if i < 0 {
			return fmt.Errorf("%.80q is no member of this body", m.Key)
		}
		if seen[i] {
			return fmt.Errorf("the member %q occurs twice", m.Key)
		}
		seen[i] = true
		if err := once(m.Val, into.Field(i).Kind()); err != nil {
			return fmt.Errorf("%s: %w", m.Key, err)
		}
		if err := json.Unmarshal(m.Val, into.Field(i).Addr().Interface()); err != nil {
			return fmt.Errorf("%s: %w", m.Key, err)
		}
	}
	for i := range seen {
		f := into.Type().Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if options != "omitempty" && (!seen[i] || f.Tag.Get("minLength") != "" && into.Field(i).IsZero()) {
			return fmt.Errorf("want %q", name)
		}
	}
	return nil
}

// fieldOf returns the index of the field that a member is decoded into; -1 = there is none.
func fieldOf(body reflect.Type, member []byte) int {
	for i := range body.NumField() {
		if name, _, _ := strings.Cut(body.Field(i).Tag.Get("json"), ","); name == string(member) {
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

// bodyRate is how many bytes of a body have to come in a second, once Options.ReadTimeout is used up.
const bodyRate = 64 << 10

// errSlow is the error of a body that takes too long.
var errSlow = errors.New("the body came too slowly; nothing was stored")

// timedBody is the body of a request, for which its client has a limited time.
type timedBody struct {
	io.ReadCloser
	conn *http.ResponseController
	due  time.Time
}

// timed bounds how long the body of a request may take. That holds from the beginning, for bodies too that no operation
// reads: the connection waits for their rest before the answer is sent. Without a body nothing is bounded, for what is
// read then is whether the client is still there.
func (s *Server) timed(w http.ResponseWriter, r *http.Request) io.ReadCloser {
	if r.Body == nil || r.Body == http.NoBody {
		return r.Body
	}
	now := time.Now() //nolint:forbidigo // connections go by the machine's clock
	b := &timedBody{r.Body, http.NewResponseController(w), now.Add(s.o.ReadTimeout)}
	_ = b.conn.SetReadDeadline(b.due) // a recorder has none
	return b
}

// Read moves the deadline by what came, and ends it with the body.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
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

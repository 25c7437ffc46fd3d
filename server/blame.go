package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
)

// Bounds of what one request for the history of a value looks at, and of what it answers: the next one continues.
const (
	maxBlamed      = 10_000    // commits
	maxBlamedBytes = 256 << 20 // of states
	maxBlamedSize  = 8 << 20   // of values in the answer, one more of any size
)

// blameQuery is the parameters of the history of a value.
type blameQuery struct {
	request
	ID    string `path:"id" maxLength:"128" doc:"the session's id"`
	Path  string `query:"path" doc:"a JSON pointer into the state (RFC 6901); empty = the whole state"`
	At    string `query:"at" doc:"a target: only changes up to the commit in force there; default head"`
	After string `query:"after" doc:"next of the page before"`
	Limit int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"of changes"`
}

// blameList is the history of a value.
type blameList struct {
	Changes []change `json:"changes" doc:"newest first"`
	Next    string   `json:"next,omitempty" doc:"after of the older ones, also of an empty page; absent at the end"`
}

// change is a commit that gave a value another value.
type change struct {
	api.Commit
	Value json.RawMessage `json:"value" doc:"from this commit on; absent = there was none"`
}

func (s *Server) describeBlame() {
	handle[blameQuery, blameList](s, operation{
		method: "GET", path: "/v1/sessions/{id}/blame", id: "blame", names: true, whole: true,
		statuses: []int{304},
		summary:  "Which commits changed a value of the state",
		text: "Newest first. A request looks at no more than 10,000 commits and 256 MiB of states, so a page may be " +
			"empty and have next. Losing turns that were kept on a branch do not count, but for one that at names.",
	}, s.blame)
}

// from returns the target at which a page begins.
func (q *blameQuery) from() (t coppice.Target, err error) {
	switch {
	case q.At != "" && q.After != "":
		return t, badInput("at", errors.New("use only one of at and after"))
	case q.At != "":
		return target("at", q.At)
	case q.After == "":
		return t, nil
	}
	text, err := place("after", q.After)
	if err != nil {
		return t, err
	}
	seq, err := seqOf("after", text)
	if err != nil {
		return t, err
	}
	return targetSeq(seq)
}

func (s *Server) blame(ctx context.Context, q *blameQuery) (answer, error) {
	path, err := pointer(q.Path)
	if err != nil {
		return answer{}, err
	}
	from, err := q.from()
	if err != nil {
		return answer{}, err
	}
	return read(ctx, &q.request, func(h *coppice.Session) (answer, error) {
		b := blamed{path: path, limit: q.Limit, most: s.blamed, named: q.At != "", doc: blameList{Changes: []change{}}}
		for at, err := range h.States(ctx, from) {
			if err != nil {
				return answer{}, err
			}
			if !b.look(at) {
				break
			}
		}
		return answer{etag: h.Head().Commit, doc: b.end()}, nil
	})
}

// blamed is a page of the history of a value, on its way from new to old.
type blamed struct {
	path  []string
	limit int  // of changes
	most  int  // of commits
	named bool // the first commit is the one that was asked for
	doc   blameList

	last    *change         // the oldest commit so far; nil = none, or it is for the next page
	state   json.RawMessage // after it
	commits int
	bytes   int // of states
	size    int // of values in doc
}

// look compares a commit with the one after it; false = the page ends.
func (b *blamed) look(at coppice.StateAt) bool {
	if at.Commit.Kept != "" && at.Commit.Kept == at.Commit.Branch && !(b.named && b.commits == 0) {
		return true // it never was the session's state
	}
	now := &change{Commit: api.CommitOf(at.Commit)}
	state := at.Document.State
	if b.last != nil && bytes.Equal(state, b.state) {
		now.Value = b.last.Value
	} else {
		now.Value = valueAt(state, b.path)
	}
	changed := b.last != nil && !bytes.Equal(now.Value, b.last.Value)
	if changed {
		b.doc.Changes = append(b.doc.Changes, *b.last)
		b.size += len(b.last.Value)
	}
	b.last, b.state = now, state
	b.commits++
	b.bytes += len(state)
	full := changed && (len(b.doc.Changes) == b.limit || b.size >= maxBlamedSize)
	// The commit at which a page ends is the first of the next one, so two are progress.
	if full || b.commits > 1 && (b.commits >= b.most || b.bytes >= maxBlamedBytes) {
		b.doc.Next = cursor(strconv.FormatUint(now.Seq, 10))
		b.last = nil
		return false
	}
	return true
}

// end returns the page. Before the oldest commit there was no value.
func (b *blamed) end() blameList {
	if b.last != nil && b.last.Value != nil {
		b.doc.Changes = append(b.doc.Changes, *b.last)
	}
	return b.doc
}

// pointer returns the steps of a JSON pointer.
func pointer(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	if text[0] != '/' {
		return nil, badInput("path", fmt.Errorf("%.40q does not begin with /", text))
	}
	steps := strings.Split(text[1:], "/")
	for i, s := range steps {
		steps[i] = strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")
	}
	return steps, nil
}

// valueAt returns the value to which the steps of a JSON pointer lead, as it is stored; nil = none.
func valueAt(doc json.RawMessage, steps []string) json.RawMessage {
	for _, step := range steps {
		var object map[string]json.RawMessage
		var array []json.RawMessage
		switch {
		case len(doc) == 0:
			return nil
		case json.Unmarshal(doc, &object) == nil && object != nil:
			doc = object[step]
		case json.Unmarshal(doc, &array) == nil:
			i, err := strconv.Atoi(step)
			if err != nil || step != strconv.Itoa(i) || i < 0 || i >= len(array) {
				return nil
			}
			doc = array[i]
		default:
			return nil
		}
	}
	return doc
}

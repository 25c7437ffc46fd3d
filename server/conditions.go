package server

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	coppice "github.com/coppice-go/coppice"
)

// errNoCondition is the error of a write that does not name what it was made on.
var errNoCondition = errors.New("the request has no If-Match")

// condition is the header that a write has to have, without which it is 428.
type condition int

const (
	always       condition = iota // none
	ifMatch                       // the commit that the write was made on, or * = the newest
	ifMatchOrKey                  // or Idempotency-Key alone: a repeat gets its receipt all the same
	ifMatchMay                    // or nothing: an annotation conflicts with none
	ifNew                         // If-None-Match: *
)

// header returns the name of the header, and what it is for.
func (c condition) header() (name, doc string) {
	switch c {
	case ifNew:
		return "If-None-Match", "must be *"
	case ifMatchMay:
		return "If-Match", "the commit that this was made on; default * = the newest"
	case always, ifMatch, ifMatchOrKey:
	}
	return "If-Match", "the commit that this was made on, or * = the newest; without it 428"
}

// made returns the commit that a write was made on; noCommit = there is a key alone.
func (c condition) made(r *http.Request) (string, error) {
	switch c {
	case always:
		return "", nil
	case ifNew:
		if !matches(r.Header.Values("If-None-Match"), "*") {
			return "", newProblem(http.StatusPreconditionRequired, "no-condition", "send If-None-Match: *",
				errors.New("the request has no If-None-Match"))
		}
		return "", nil
	case ifMatch, ifMatchOrKey, ifMatchMay:
	}
	made, err := base(r)
	switch {
	case !errors.Is(err, errNoCondition):
	case c == ifMatchMay:
		return coppice.Newest, nil
	case c == ifMatchOrKey && r.Header.Get(keyHeader) != "":
		return noCommit, nil
	}
	return made, err
}

// quoteTag returns a strong ETag. It is the same in every encoding: it names what is stored.
func quoteTag(tag string) string { return `"` + tag + `"` }

// matches reports whether one of the tags of If-Match or If-None-Match is this one, or "*".
func matches(header []string, tag string) bool {
	for tag2 := range tags(header) {
		if tag2 == "*" || tag2 == tag {
			return true
		}
	}
	return false
}

// tags yields the tags of a header, without quotes and without the mark of a weak one.
func tags(header []string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, line := range header {
			for part := range strings.SplitSeq(line, ",") {
				tag := strings.TrimSpace(part)
				if tag != "*" {
					tag = strings.Trim(strings.TrimPrefix(tag, "W/"), `"`)
					if tag == "*" { // a tag of that name, which no commit has
						tag = `"*"`
					}
				}
				if tag != "" && !yield(tag) {
					return
				}
			}
		}
	}
}

// base returns the commit that a write was made on: the one tag of If-Match, "*" = whatever the newest is.
func base(r *http.Request) (string, error) {
	var all []string
	for tag := range tags(r.Header.Values("If-Match")) {
		all = append(all, tag)
	}
	switch len(all) {
	case 0:
		return "", errNoCondition
	case 1:
		return all[0], nil
	}
	return "", badInput("If-Match", fmt.Errorf("%d tags: want that of the commit that the write was made on", len(all)))
}

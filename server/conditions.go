package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/transcript"
)

// errNoCondition is the error of a write that does not say what it was made on.
var errNoCondition = errors.New("the request has no If-Match")

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

// newest returns an error unless the commit on which a write was made is the newest one: ErrConflict, or that of fenced
// if the session was claimed since. A write
// that is not a turn has no other guard: two titles on one commit would both be stored, and a deletion would take
// with it what its client never saw. A write that is stored under its key is no conflict: it returns the first answer.
func newest(ctx context.Context, h *coppice.Session, made, key string) error {
	if made == "*" || made == h.Head().Commit {
		return nil
	}
	_, err := h.At(ctx, coppice.Target{Commit: made})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, transcript.ErrNotFound) {
		return fmt.Errorf("%w: If-Match names no commit of this session", coppice.ErrConflict)
	}
	if err != nil {
		return err
	}
	if stored, err := fenced(ctx, h, made, key); stored || err != nil {
		return err
	}
	return fmt.Errorf("%w: the session moved since the commit in If-Match", coppice.ErrConflict)
}

package server

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
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

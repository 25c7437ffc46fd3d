package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// matchPrefix begins the names of parameters that choose entries by a member of their lines.
const matchPrefix = "match."

// maxMatch bounds the members that are compared, as Store.Query does.
const maxMatch = 32

// textOfMatches describes what the parameters of a list of entries cannot.
const textOfMatches = "match.PATH=JSON, for any dotted path of members (match.data.source=\"loop\"): only entries " +
	"with this value there, members of objects in any order, numbers as they are written."

// all is the limit of a list without one.
const all = "all"

// mostOf returns how many items a limit allows; 0 = all.
func mostOf(limit string) (int, error) {
	if limit == all {
		return 0, nil
	}
	n, err := strconv.Atoi(limit)
	if err != nil || n < 1 || n > maxPage {
		return 0, badInput("limit", fmt.Errorf("%.40q: want 1 to %d, or all", limit, maxPage))
	}
	return n, nil
}

// orAll describes the limit of an operation, which is a number or a word: huma knows parameters of one type.
func (s *Server) orAll(op operation) {
	least, most := 1.0, float64(maxPage)
	for _, p := range s.described(op).Parameters {
		if p.Name == "limit" {
			p.Description = "of the page; all: every item in one answer, which has no next"
			p.Schema = &huma.Schema{Default: 50, AnyOf: []*huma.Schema{
				{Type: huma.TypeInteger, Minimum: &least, Maximum: &most}, {Type: huma.TypeString, Enum: []any{all}},
			}}
		}
	}
}

// filter chooses entries; the zero filter chooses all.
type filter struct {
	typ, custom string
	match       map[string]json.RawMessage // JSON by dotted path
}

// filterOf returns the filter of a query.
func filterOf(r *http.Request, typ, custom string) (filter, error) {
	f := filter{typ: typ, custom: custom, match: map[string]json.RawMessage{}}
	for name, values := range r.URL.Query() {
		path, is := strings.CutPrefix(name, matchPrefix)
		switch {
		case !is:
			continue
		case path == "" || len(values) > 1:
			return f, badInput(name, errors.New("want one value of one path"))
		case !json.Valid([]byte(values[0])):
			return f, badInput(name, fmt.Errorf("%.40q is not JSON: a text is in quotes", values[0]))
		}
		f.match[path] = json.RawMessage(values[0])
	}
	if len(f.match) > maxMatch {
		return f, badInput("match", fmt.Errorf("%d members, the limit is %d", len(f.match), maxMatch))
	}
	return f, nil
}

// none reports whether a filter chooses all entries.
func (f filter) none() bool { return f.typ == "" && f.custom == "" && len(f.match) == 0 }

// of yields the entries that a filter chooses.
func (f filter) of(entries iter.Seq2[transcript.Entry, error]) iter.Seq2[transcript.Entry, error] {
	if f.none() {
		return entries
	}
	return func(yield func(transcript.Entry, error) bool) {
		for e, err := range entries {
			if (err != nil || f.chooses(e)) && !yield(e, err) {
				return
			}
		}
	}
}

func (f filter) chooses(e transcript.Entry) bool {
	return (f.typ == "" || f.typ == e.Type) &&
		(f.custom == "" || f.custom == rawjson.Text(rawjson.Field(e.Raw, "customType"))) &&
		rawjson.Matches(e.Raw, f.match)
}

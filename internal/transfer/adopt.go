package transfer

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal/state"
)

// adopt begins a session with a foreign header line: what g does not say already it says. A beginning that is still
// to come counts for nothing.
func adopt(g state.Genesis, header []byte, now time.Time) state.Genesis {
	var h struct {
		Title  string `json:"title"`
		Cwd    string `json:"cwd"`
		Parent string `json:"parentSession"`
		Time   any    `json:"timestamp"`
	}
	if err := json.Unmarshal(header, &h); err != nil {
		h.Title, h.Cwd, h.Parent = "", "", "" // fields of other types say nothing
	} else if len(h.Parent) > checkpoint.MaxName {
		h.Parent = "" // a path, as pi has it: the header keeps it
	}
	if len(g.Meta) > 0 { // in place of the header's
		_, theirs := checkpoint.About(header)
		for key := range theirs {
			if _, ok := g.Meta[key]; !ok {
				g.Meta[key] = nil
			}
		}
		if !g.Meta.Valid() { // a header of too many keys: those of g are beside them
			maps.DeleteFunc(g.Meta, func(_ string, value *string) bool { return value == nil })
		}
	}
	g.Header = header
	for _, f := range []struct {
		to   *string
		from string
	}{{&g.Title, h.Title}, {&g.Cwd, h.Cwd}, {&g.Parent, h.Parent}} {
		if *f.to == "" {
			*f.to = f.from
		}
	}
	stamp, _ := h.Time.(string)
	if t, err := time.Parse(time.RFC3339, stamp); err == nil && t.Before(now) {
		g.Created = t.UTC()
	}
	return g
}

package transfer

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal/state"
)

// adopt sets the fields of g that are empty from a foreign header line. A start time in the future is ignored.
func adopt(g state.Genesis, header []byte, now time.Time) state.Genesis {
	var h struct {
		Title  string `json:"title"`
		Cwd    string `json:"cwd"`
		Parent string `json:"parentSession"`
		Time   any    `json:"timestamp"`
	}
	if err := json.Unmarshal(header, &h); err != nil {
		h.Title, h.Cwd, h.Parent = "", "", "" // fields of other types are ignored
	} else if len(h.Parent) > checkpoint.MaxName {
		h.Parent = "" // a path, as pi has it: the header keeps it
	}
	if len(g.Meta) > 0 { // instead of the header's
		_, theirs := checkpoint.HeaderRelation(header)
		for key := range theirs {
			if _, ok := g.Meta[key]; !ok {
				g.Meta[key] = nil
			}
		}
		if !g.Meta.Valid() { // a header with too many keys: its keys stay
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

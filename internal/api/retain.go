package api

import (
	"time"

	"github.com/coppice-go/coppice/internal/retain"
)

// Retained is what a run of the retention policy does.
type Retained struct {
	Removals []Removal `json:"removals" doc:"what the policy does not keep, in the order in which it is removed"`
	Sessions int       `json:"sessions" doc:"that the store has"`
	Bytes    int64     `json:"bytes" doc:"of all objects of them"`
	Left     int64     `json:"left" doc:"bytes of those that the policy leaves"`
	Thinned  []Thinned `json:"thinned" doc:"of sessions that stay"`
	Stayed   []Stay    `json:"stayed" doc:"removals that were not done"`
	DryRun   bool      `json:"dryRun"`
	Requests int       `json:"requests" doc:"to the backend"`
	More     bool      `json:"more,omitempty" doc:"it met its bound: another run continues"`
}

// Removal is a session that the policy does not keep.
type Removal struct {
	Session string          `json:"session"`
	Commit  string          `json:"commit"`
	Name    string          `json:"name"`
	Updated time.Time       `json:"updated"`
	Bytes   int64           `json:"bytes"`
	Because []retain.Reason `json:"because"`
}

// Thinned is what the policy removes of a session that stays.
type Thinned struct {
	Session   string     `json:"session"`
	Snapshots []Snapshot `json:"snapshots"`
}

// Stay is a session that stayed, though the policy does not keep it.
type Stay struct {
	Session string `json:"session"`
	Reason  string `json:"reason" doc:"conflict (it was changed) or held; also of what it belongs with"`
}

// RetainedOf returns the document of a run.
func RetainedOf(r retain.Result, dry bool) Retained {
	d := r.Decision
	return Retained{
		Removals: convert(d.Removals, func(r retain.Removal) Removal {
			return Removal{r.ID, r.Commit, r.Name, r.Updated, r.Bytes, r.Because}
		}),
		Thinned: convert(r.Thinned, func(t retain.Thinned) Thinned {
			return Thinned{t.Session, SnapshotsOf(t.Snapshots)}
		}),
		Stayed:   convert(r.Stayed, func(s retain.Stay) Stay { return Stay{s.Session, Describe(s.Err).Code} }),
		Sessions: d.Sessions, Bytes: d.Bytes, Left: d.Left, DryRun: dry, Requests: r.Requests, More: r.More,
	}
}

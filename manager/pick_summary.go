package manager

import (
	"context"
	"encoding/json"
	"errors"

	coppice "github.com/coppice-go/coppice"
)

// summaryReach is how many entries after the head a summary is looked for in: they are in memory with the one read
// that opens the session, unless they are large.
const summaryReach = 64

// NewestSummary returns the newest summary of its session that an agent left on the way to the head, as atomic's
// session_summary entries are; "" = none among the last 64 entries. A listing does not know it: it costs one read, and
// what large entries need.
func NewestSummary(ctx context.Context, st *coppice.Store, id string) (text string, err error) {
	s, err := st.Open(ctx, id, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if s.Head().Entry == "" {
		return "", nil
	}
	n := 0
	for e, err := range s.Path(ctx, "") {
		if err != nil {
			return "", err
		}
		var f struct {
			Summary string `json:"summary"`
		}
		if e.Type == "session_summary" && json.Unmarshal(e.Raw, &f) == nil && f.Summary != "" {
			return f.Summary, nil
		}
		if n++; n == summaryReach {
			break
		}
	}
	return "", nil
}

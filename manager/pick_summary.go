package manager

import (
	"context"
	"encoding/json"
	"errors"

	coppice "github.com/coppice-go/coppice"
)

// summaryReach is the number of entries before the head in which a summary is searched: they are in memory after the
// one read that opens the session, unless they are large.
const summaryReach = 64

// NewestSummary returns the newest summary that an agent stored among the last 64 entries of the path to the head, such
// as a session_summary of atomic; "" = none. A listing does not contain it: it costs one read, and further ones for
// large entries.
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

package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	coppice "github.com/coppice-go/coppice"
)

// recount is how long a count of what a tenant stores is used, with what was written since added to it. Writes through
// other servers are seen after it.
const recount = time.Minute

// errQuota is the error of a write above a quota.
var errQuota = errors.New("the tenant has stored as much as it may; nothing was stored")

// stored is what a store has.
type stored struct {
	Sessions int   `json:"sessions"`
	Bytes    int64 `json:"bytes" doc:"of their transcripts"`

	MaxSessions int   `json:"maxSessions,omitempty" doc:"the quota of the tenant; absent: none"`
	MaxBytes    int64 `json:"maxBytes,omitempty"`
}

// count returns what a store has.
func count(ctx context.Context, st *coppice.Store) (is stored, err error) {
	for sum, err := range st.List(ctx, coppice.ListOptions{}) {
		if err != nil {
			return is, err
		}
		is.Sessions++
		is.Bytes += sum.Bytes
	}
	return is, nil
}

// counted is what a tenant has stored, as far as it is known.
type counted struct {
	mu sync.Mutex
	at time.Time
	is stored
}

// room refuses a write of a tenant that has stored as much as it may. What is deleted gives room when it is counted.
func (s *Server) room(r *http.Request, op *operation, seen *observed) error {
	t := seen.tenant
	if t == nil || s.o.Quota == nil || op.needs != rightWrite || op.fleeting || r.Method == http.MethodDelete {
		return nil
	}
	q := s.o.Quota(t.name)
	if q == (Quota{}) {
		return nil
	}
	t.counted.mu.Lock()
	defer t.counted.mu.Unlock()
	if now := s.o.Now(); t.counted.at.IsZero() || now.Sub(t.counted.at) > recount {
		is, err := count(r.Context(), t.st)
		if err != nil {
			return err
		}
		t.counted.at, t.counted.is = now, is
	}
	is := &t.counted.is
	if q.Bytes > 0 && is.Bytes >= q.Bytes || q.Sessions > 0 && op.creates && is.Sessions >= q.Sessions {
		return newProblem(http.StatusInsufficientStorage, "quota", "delete sessions, or ask for a larger quota",
			fmt.Errorf("tenant %s has %d sessions and %d bytes: %w", t.name, is.Sessions, is.Bytes, errQuota))
	}
	return nil
}

// wrote adds a write that succeeded to what is counted.
func (t *tenant) wrote(r *http.Request, op *operation) {
	t.kept.Store(true)
	t.counted.mu.Lock()
	defer t.counted.mu.Unlock()
	if r.Method == http.MethodDelete {
		t.counted.at = time.Time{} // it is counted again
		return
	}
	t.counted.is.Bytes += max(r.ContentLength, 0)
	if op.creates {
		t.counted.is.Sessions++
	}
}

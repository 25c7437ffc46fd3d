package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/seam"
	"github.com/coppice-go/coppice/manager"
)

// recount is how long a count of what a tenant stores is used, with what was written since added to it. Writes through
// other servers are seen after it.
const recount = time.Minute

// errQuota is the error of a write above a quota.
var errQuota = errors.New("the tenant has stored as much as it may; nothing was stored")

// stored is what a store has.
type stored struct {
	Sessions int   `json:"sessions"`
	Bytes    int64 `json:"bytes" doc:"of transcripts as lines; of images, snapshots, originals and trash as stored"`

	MaxSessions int   `json:"maxSessions,omitempty" doc:"the quota of the tenant; absent: none"`
	MaxBytes    int64 `json:"maxBytes,omitempty"`
}

// count returns what a store has, and the trash of its tenant.
func (s *Server) count(ctx context.Context, st *coppice.Store, tenant string) (is stored, err error) {
	for sum, err := range st.List(ctx, coppice.ListOptions{Exact: true}) {
		if err != nil {
			return is, err
		}
		is.Sessions++
		is.Bytes += sum.Bytes
	}
	for info, err := range seam.Config(st).Backend.List(ctx, backend.ListOptions{Prefix: layout.Sessions}) {
		if err != nil {
			return is, err
		}
		parts := strings.Split(info.Key, "/") // sessions, the id, the folder and the name
		switch parts[min(2, len(parts)-1)] + "/" {
		case layout.Blobs, layout.Snapshots, layout.Originals:
			is.Bytes += info.Size
		}
	}
	if s.o.Trash == "" {
		return is, nil
	}
	trash := manager.Trash{Path: filepath.Join(s.o.Trash, tenant)}
	items, err := trash.List()
	for _, item := range items {
		is.Bytes += item.Bytes
	}
	return is, err
}

// counted is what a tenant has stored, as far as it is known.
type counted struct {
	mu sync.Mutex
	at time.Time
	is stored
}

// room refuses a write of a tenant that has stored as much as it may. What is deleted frees room at the next count. A
// write with a key may be a repeat: it is made on a commit that no session has, and so answered as a repeat, or as a
// conflict, of which refused makes an error of the quota.
func (d *door) room(r *http.Request, seen *observed) error {
	s, op, t := d.s, d.op, seen.tenant
	if t == nil || s.o.Quota == nil || op.needs != Write || op.fleeting {
		return nil
	}
	q := s.o.Quota(t.name)
	if q == (Quota{}) {
		return nil
	}
	t.counted.mu.Lock()
	defer t.counted.mu.Unlock()
	if now := s.o.Now(); t.counted.at.IsZero() || now.Sub(t.counted.at) > recount {
		is, err := s.count(r.Context(), t.st, t.name)
		if err != nil {
			return err
		}
		t.counted.at, t.counted.is = now, is
	}
	is := &t.counted.is
	if (q.Bytes == 0 || is.Bytes < q.Bytes) && (q.Sessions == 0 || !op.creates || is.Sessions < q.Sessions) {
		return nil
	}
	full := t.full(*is)
	if r.Header.Get(keyHeader) == "" || !d.has("header", keyHeader) {
		return full
	}
	seen.full = full
	seen.made = noCommit + strings.TrimPrefix(seen.made, noCommit)
	return nil
}

// full is the answer to a write above a quota.
func (t *tenant) full(is stored) error {
	return newProblem(http.StatusInsufficientStorage, "quota", "delete sessions, or ask for a larger quota",
		fmt.Errorf("tenant %s has %d sessions and %d bytes: %w", t.name, is.Sessions, is.Bytes, errQuota))
}

// roomForOne refuses another session, by a write that may create one, of a tenant that has as many as it may.
func (s *Server) roomForOne(seen *observed) error {
	t := seen.tenant
	if seen.full != nil || t == nil || s.o.Quota == nil {
		return seen.full
	}
	most := s.o.Quota(t.name).Sessions
	t.counted.mu.Lock()
	defer t.counted.mu.Unlock()
	if most == 0 || t.counted.is.Sessions < most {
		return nil
	}
	return t.full(t.counted.is)
}

// refused returns the answer to a write above a quota that is no repeat.
func (o *observed) refused(err error) error {
	if p := problemOf(err); o.full != nil && p.Status == http.StatusPreconditionFailed && p.Code == "conflict" {
		return o.full
	}
	return err
}

// wrote adds a write that succeeded to what is counted. What it stores besides its body, such as a snapshot, the next
// count finds.
func (t *tenant) wrote(r *http.Request, op *operation, seen *observed) {
	t.kept.Store(true)
	t.counted.mu.Lock()
	defer t.counted.mu.Unlock()
	if r.Method == http.MethodDelete || op.creates && op.condition != ifNew {
		t.counted.at = time.Time{} // it is counted again: a fork or an import stores another length than its body's
		return
	}
	t.counted.is.Bytes += seen.brought
	if op.creates || seen.created {
		t.counted.is.Sessions++
	}
}

// stores reports whether the write with an answer stored anything.
func (a answer) stores() bool {
	switch doc := a.doc.(type) {
	case api.Committed:
		return !doc.Repeated
	case api.Moved:
		return !doc.Repeated
	case api.Rollback:
		return !doc.Repeated
	case api.Import:
		return doc.Total.New+doc.Total.Grown > 0
	}
	return !a.repeated
}

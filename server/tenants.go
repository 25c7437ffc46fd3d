package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	coppice "github.com/coppice-go/coppice"
)

// errTenants is the error of a request for a tenant while Options.MaxTenants others are in use.
var errTenants = errors.New("too many tenants are in use")

// tenants holds the open stores of tenants. A store is open while requests use it, and Options.Idle longer.
type tenants struct {
	s *Server

	mu     sync.Mutex
	by     map[string]*tenant
	closed bool
}

// tenant is the open store of a tenant, which all requests of the tenant share.
type tenant struct {
	name string
	st   *coppice.Store
	kept atomic.Bool // the store has sessions, so it stays open for Options.Idle after its last request

	counted counted

	// Guarded by tenants.mu:
	users int           // number of requests that use the store
	last  time.Time     // when a request last ended
	timer *time.Timer   // closes the store after Options.Idle; nil = it is in use
	gone  chan struct{} // not nil = the store is being closed; the channel is closed when it is closed
}

// acquire returns the store of a tenant, and opens it if necessary. It stays open until release. If the tenant, or an
// idle one in whose place it opens, is being closed, acquire waits for that.
func (ts *tenants) acquire(ctx context.Context, name string) (*tenant, error) {
	for {
		t, old, err := ts.tryAcquire(name)
		switch {
		case err != nil:
			return nil, err
		case old != nil: // for its place, or because it has this name
			if old.name != name {
				ts.end(old)
			}
			select {
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			case <-old.gone:
			}
		default:
			return t, nil
		}
	}
}

// tryAcquire counts one more user of a tenant, opening its store if necessary, and returns the tenant as t. If a tenant
// has to be closed first, it returns that one as old and counts nothing.
func (ts *tenants) tryAcquire(name string) (t, old *tenant, err error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t = ts.by[name]
	switch {
	case ts.closed:
		return nil, nil, errClosing
	case t != nil && t.gone != nil:
		return nil, t, nil
	case t == nil && len(ts.by) >= ts.s.o.MaxTenants:
		if old = ts.oldest(); old == nil {
			return nil, nil, retry(newProblem(http.StatusServiceUnavailable, "busy", "", errTenants))
		}
		ts.leaving(old)
		return nil, old, nil
	case t == nil:
		st, err := ts.s.o.Tenant(name)
		if err != nil {
			return nil, nil, fmt.Errorf("tenant %s: %w", name, err)
		}
		t = &tenant{name: name, st: st}
		ts.by[name] = t
	}
	t.users++
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
	return t, nil, nil
}

// oldest returns the tenant that has been idle longest; nil = all are in use.
func (ts *tenants) oldest() (old *tenant) {
	for _, t := range ts.by {
		if t.users == 0 && t.gone == nil && (old == nil || t.last.Before(old.last)) {
			old = t
		}
	}
	return old
}

// leaving marks a tenant as being closed. The caller holds mu and must call end after it.
func (ts *tenants) leaving(t *tenant) {
	t.gone = make(chan struct{})
	if t.timer != nil {
		t.timer.Stop()
	}
}

// release ends the use of a tenant by one request; nil does nothing. It closes a tenant without sessions at once, so
// that requests with made-up names do not take up all places.
func (ts *tenants) release(t *tenant) {
	if t == nil {
		return
	}
	ts.mu.Lock()
	t.users--
	t.last = ts.s.o.Now()
	idle := t.users == 0 && t.gone == nil // else the server is closing
	now := idle && !t.kept.Load()
	if now {
		ts.leaving(t)
	} else if idle {
		t.timer = time.AfterFunc(ts.s.o.Idle, func() { ts.expire(t) })
	}
	ts.mu.Unlock()
	if now {
		ts.end(t)
	}
}

// expire closes a tenant after Options.Idle, unless a request uses it again.
func (ts *tenants) expire(t *tenant) {
	ts.mu.Lock()
	over := t.users == 0 && t.gone == nil
	if over {
		ts.leaving(t)
	}
	ts.mu.Unlock()
	if over {
		ts.end(t)
	}
}

// end closes the store of a tenant that leaving has marked. An error of Close is logged and loses nothing: Close only
// writes checkpoints of commits that are stored already.
func (ts *tenants) end(t *tenant) {
	ts.s.forget(t.st)
	if err := t.st.Close(); err != nil {
		ts.s.o.Logger.Warn("a tenant's store was closed", "tenant", t.name, "error", err.Error())
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	delete(ts.by, t.name)
	close(t.gone)
}

// close closes all stores and waits until they are closed. Requests that still use one fail.
func (ts *tenants) close() {
	ts.mu.Lock()
	ts.closed = true
	var own []*tenant
	all := slices.Collect(maps.Values(ts.by))
	for _, t := range all {
		if t.gone == nil {
			ts.leaving(t)
			own = append(own, t)
		}
	}
	ts.mu.Unlock()
	for _, t := range own {
		ts.end(t)
	}
	for _, t := range all {
		<-t.gone
	}
}

// forget drops the handles and caches of a store before it is closed.
func (s *Server) forget(st *coppice.Store) {
	s.writers.forget(st)
	s.readers.forget(st)
	gone := func(of writerKey) bool { return of.store == st }
	s.views.forget(gone)
	s.contexts.forget(gone)
	s.growths.forget(st)
	s.usages.Forget(st)
	s.indexes.forget(st)
}

package server

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/audit"
	"github.com/coppice-go/coppice/internal/retain"
	"github.com/coppice-go/coppice/snapshot"
)

// Bounds of a run of retention by schedule.
const (
	retainMost   = 10_000      // requests after which it begins no other removal, once it tried one
	retainApart  = time.Second // at least, between two looks at a store
	retainSource = "retention" // name of the actor in the audit log
)

// retention is the policy of a store.
type retention struct {
	Policy retain.Rules `json:"policy"`
}

// retentionRun is the body that runs the policy.
type retentionRun struct {
	DryRun *bool `json:"dryRun,omitempty" default:"true" doc:"change nothing: the answer is what would be removed"`
}

type retentionQuery struct{ request }

func (s *Server) describeRetention() {
	handle[retentionQuery, retention](s, operation{
		method: "GET", path: "/v1/retention", id: "getRetention", summary: "Which sessions and snapshots stay",
		text: "Without a rule all stay.",
	}, func(ctx context.Context, q *retentionQuery) (answer, error) {
		p, err := retain.Load(ctx, q.on.Store)
		return answer{doc: retention{p.Rules()}}, err
	})
	handle[retentionQuery, retention](s, operation{
		method: "PUT", path: "/v1/retention", id: "setRetention", summary: "Replace the retention policy of the store",
		text: "A session that a keep rule keeps is never removed; all others go when the policy is run. It removes " +
			"nothing by itself.",
		body: reflect.TypeFor[retain.Rules](), size: sizeNote,
	}, s.setRetention)
	handle[retentionQuery, api.Retained](s, operation{
		method: "POST", path: "/v1/retention", id: "runRetention", heavy: true,
		summary: "Remove for good what the retention policy does not keep",
		text: "A dry run unless dryRun is false. Sessions that are held or cannot be read stay, and those that " +
			"change meanwhile. One run has a store at a time: another one is 503 busy. If it fails, a repeat " +
			"continues.",
		body: reflect.TypeFor[retentionRun](), size: sizeNote,
	}, s.runRetention)
}

func (s *Server) setRetention(ctx context.Context, q *retentionQuery) (answer, error) {
	var rules retain.Rules
	if err := decode(q.r, &rules); err != nil {
		return answer{}, err
	}
	p, err := rules.Policy()
	if err != nil {
		return answer{}, badInput("the policy", err)
	}
	return answer{doc: retention{p.Rules()}}, turned(ctx, retain.Save(ctx, q.on.Store, p))
}

func (s *Server) runRetention(ctx context.Context, q *retentionQuery) (answer, error) {
	b := retentionRun{}
	if err := decode(q.r, &b); err != nil {
		return answer{}, err
	}
	dry := b.DryRun == nil || *b.DryRun
	seenOf(q.r).dry = dry
	run := s.newRun(q.on.Store, q.r.PathValue("tenant"), q.on.Who)
	run.Dry = dry
	r, err := run.Do(ctx)
	seenOf(q.r).ids = r.Removed
	return answer{doc: api.RetainedOf(r, dry)}, turned(ctx, err)
}

// turned returns the error of an act on retention: another caller was faster, or it may have been done.
func turned(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, coppice.ErrConflict):
		return retry(newProblem(http.StatusServiceUnavailable, "busy", "", err))
	}
	return halfDone(ctx, err)
}

// newRun returns a run of the policy of a store, with a name for the audit log.
func (s *Server) newRun(st *coppice.Store, tenant, who string) *retain.Run {
	return &retain.Run{
		Store: st, Now: s.o.Now, Most: retainMost,
		Remove: s.remover(st, tenant, who), Prune: s.pruner(st, tenant, who),
	}
}

// Retain runs the retention policy of the store, and of those of all tenants (Options.Tenants), until the context is
// done: the policy of each at most once within a time, whichever server makes the run. A run that has made 10,000
// requests is continued by the next one. What it removes is removed for good, each an act of the audit log. Failures
// are in the log of the server. Cancel the context, and wait for the return, before Close.
func (s *Server) Retain(ctx context.Context, every time.Duration, after func(time.Duration) <-chan time.Time) {
	for ctx.Err() == nil {
		wait := every
		if s.o.Store != nil {
			wait = min(wait, s.retain(ctx, s.o.Store, "", every))
		}
		names, err := s.tenantNames(ctx)
		if err != nil && ctx.Err() == nil {
			s.o.Logger.WarnContext(ctx, "retention: the tenants are not known", "error", err.Error())
		}
		for _, name := range names {
			if ctx.Err() != nil {
				return
			}
			if !validTenant(name) {
				continue
			}
			t, err := s.tenants.acquire(ctx, name)
			if err != nil {
				s.o.Logger.WarnContext(ctx, "retention was not run", "tenant", name, "error", err.Error())
				continue
			}
			wait = min(wait, s.retain(ctx, t.st, name, every))
			s.tenants.release(t)
		}
		select {
		case <-ctx.Done():
		case <-after(max(wait, retainApart)):
		}
	}
}

func (s *Server) tenantNames(ctx context.Context) ([]string, error) {
	if s.o.Tenant == nil || s.o.Tenants == nil {
		return nil, nil
	}
	return s.o.Tenants(ctx)
}

// retain runs the policy of a store, if it is due, and returns how long it is until it is.
func (s *Server) retain(ctx context.Context, st *coppice.Store, tenant string, every time.Duration) time.Duration {
	run := s.newRun(st, tenant, retainSource)
	run.Every = every
	r, err := run.Do(ctx)
	if r.Wait > 0 {
		return r.Wait
	}
	log := s.o.Logger.With("tenant", tenant, "removed", len(r.Removed), "stayed", len(r.Stayed),
		"thinned", len(r.Thinned), "more", r.More, "requests", r.Requests)
	switch {
	case err == nil:
		log.InfoContext(ctx, "retention was run")
	case ctx.Err() == nil:
		log.WarnContext(ctx, "retention failed", "error", err.Error())
	}
	return every
}

// pruner returns the removal of snapshots of a session by retention, as an act of the audit log.
func (s *Server) pruner(
	st *coppice.Store, tenant, who string,
) func(context.Context, string, snapshot.Retention) ([]snapshot.Info, error) {
	return func(ctx context.Context, id string, keep snapshot.Retention) ([]snapshot.Info, error) {
		if keep.DryRun {
			return retain.Prune(ctx, st, id, keep)
		}
		end, err := s.begin(ctx, audit.Act{Who: who, Tenant: tenant, Act: "prune", Session: id})
		if err != nil {
			return nil, err
		}
		gone, err := retain.Prune(ctx, st, id, keep)
		s.ended(ctx, end, statusOf(err), false, retain.Thinned{Snapshots: gone}.IDs())
		return gone, err
	}
}

// statusOf returns the status that an act would have as a request.
func statusOf(err error) int {
	if err != nil {
		return problemOf(err).Status
	}
	return http.StatusOK
}

// remover returns the removal of a session by retention, as an act of the audit log. One that has begun is finished.
func (s *Server) remover(st *coppice.Store, tenant, who string) func(context.Context, retain.Removal) error {
	return func(ctx context.Context, r retain.Removal) error {
		end, err := s.begin(ctx, audit.Act{Who: who, Tenant: tenant, Act: "retain", Session: r.ID})
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.Timeout+took(r.Bytes))
		defer cancel()
		err = st.DeleteAt(ctx, r.ID, r.Commit)
		if err == nil || errors.Is(err, coppice.ErrDeleteUnfinished) {
			s.drop(ctx, st, tenant, r.ID)
			s.forgetHere(ctx, tenant, r.ID)
		}
		s.ended(ctx, end, statusOf(err), false, nil)
		return err
	}
}

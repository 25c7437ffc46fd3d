package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/manager"
)

// maxGrowths bounds the sessions of which it is remembered how their cost grew, each at most 8 KiB.
const maxGrowths = 4096

// sessionUsage is what the answers of models in a session report.
type sessionUsage struct {
	api.Usage
	Title    string    `json:"title"`
	Cwd      string    `json:"cwd"`
	Parent   string    `json:"parent,omitempty" doc:"the session that started this one"`
	Relation string    `json:"relation,omitempty" doc:"what it is to its parent, such as agent or fork"`
	Created  time.Time `json:"created"`
	Updated  time.Time `json:"updated"`
	Damaged  bool      `json:"damaged,omitempty" doc:"not all of it can be read: what it used is more, or not known"`
}

// allUsageQuery is the query of a list of usages.
type allUsageQuery struct {
	request
	Cwd    string `query:"cwd" doc:"only sessions of this working directory"`
	Parent string `query:"parent" doc:"only sessions that this one started"`
	Top    bool   `query:"top" doc:"only sessions that no other one started: those without a parent, and forks"`
	Q      string `query:"q" doc:"only sessions whose title, first prompt or preview contains all these words"`
	Order  string `query:"order" enum:"activity,created,id" default:"activity" doc:"newest first, or by stored name"`
	After  string `query:"after" doc:"next of the page before, in the same order"`
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
}

type usageList struct {
	Sessions []sessionUsage `json:"sessions" doc:"in the order of the list of sessions"`
	Stored   *stored        `json:"stored,omitempty" doc:"all of the store, on the first page; not as NDJSON"`
	Next     string         `json:"next,omitempty" doc:"after of the next page; absent at the end"`
	Error    *Problem       `json:"error,omitempty" doc:"why the list is cut short after its first item"`
}

func (s *Server) describeUsage() {
	handle[allUsageQuery, usageList](s, operation{
		method: "GET", path: "/v1/usage", id: "allUsage", heavy: true, meta: true,
		types:   []string{"application/x-ndjson"},
		summary: "Tokens and cost of sessions, each with all branches",
		text: "Each response of a provider counts in one session, the one that received it. Reads every entry of a " +
			"session that was changed since it was asked for last. " + textOfLists,
	}, s.allUsage)
}

// growths are how the costs of sessions grew.
type growths struct {
	mu sync.Mutex
	of map[writerKey]growth
}

// growth is how a cost grew up to a commit; while the cost is the same, the points are.
type growth struct {
	commit string
	cost   float64
	points []api.CostAt
}

func (g *growths) get(key writerKey, commit string, cost float64) ([]api.CostAt, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	is, ok := g.of[key]
	return is.points, ok && is.commit == commit && is.cost == cost
}

func (g *growths) put(key writerKey, is growth) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of == nil {
		g.of = map[writerKey]growth{}
	}
	for old := range g.of { // any: each is read again when it is asked for
		if len(g.of) < maxGrowths {
			break
		}
		delete(g.of, old)
	}
	g.of[key] = is
}

// forget drops what is known of the sessions of a store.
func (g *growths) forget(st *coppice.Store) {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.of, func(key writerKey, _ growth) bool { return key.store == st })
}

// pointsOf returns how the cost of a session grew.
func (s *Server) pointsOf(
	ctx context.Context, st *coppice.Store, r *manager.UsageReader, h *coppice.Session, cost float64,
) ([]api.CostAt, error) {
	key, commit := writerKey{st, h.ID()}, h.Head().Commit
	if points, ok := s.growths.get(key, commit, cost); ok {
		return points, nil
	}
	points, err := api.CostOverTime(ctx, r, h)
	if err == nil {
		s.growths.put(key, growth{commit, cost, points})
	}
	return points, err
}

// usageQuery is the parameters of a session's usage.
type usageQuery struct {
	request
	ID     string `path:"id" maxLength:"128" doc:"the session's id"`
	At     string `query:"at" doc:"a target: only the path that ends there, without other branches; not with points"`
	Points bool   `query:"points" doc:"also how the cost grew from commit to commit"`
}

func (s *Server) usage(ctx context.Context, q *usageQuery) (answer, error) {
	if q.At != "" {
		return s.usageOfPath(ctx, q)
	}
	return read(ctx, &q.request, func(h *coppice.Session) (answer, error) {
		r := s.usageReader(q.on.Store)
		doc, err := api.UsageOfSession(ctx, r, h)
		if err == nil && q.Points {
			doc.Points, err = s.pointsOf(ctx, q.on.Store, r, h, doc.Usage.Cost)
		}
		return answer{etag: usageTag(h.Head().Commit, doc), doc: doc}, err
	})
}

// usageReader returns a reader for one request.
func (s *Server) usageReader(st *coppice.Store) *manager.UsageReader {
	return manager.NewUsageReader(st, &s.usages)
}

// usageTag returns the ETag of a usage, which changes with the session and where another one has its answers.
func usageTag(commit string, doc api.Usage) string {
	return fmt.Sprintf("%s.%d.%d", commit, doc.Inherited.Answers, doc.Inherited.Total)
}

// usageOfPath answers with the usage of the path to a target.
func (s *Server) usageOfPath(ctx context.Context, q *usageQuery) (answer, error) {
	at, err := target("at", q.At)
	if err == nil && q.Points {
		err = badInput("points", errors.New("use only one of at and points"))
	}
	if err != nil {
		return answer{}, err
	}
	return s.readTree(ctx, &q.request, func(h *coppice.Session) (answer, error) {
		v, err := h.At(ctx, at)
		if err != nil {
			return answer{}, err
		}
		doc, err := api.UsageOfView(ctx, s.usageReader(q.on.Store), h, v)
		return answer{etag: usageTag(v.Commit().Commit, doc), doc: doc}, err
	})
}

func (s *Server) allUsage(ctx context.Context, q *allUsageQuery) (answer, error) {
	r := s.usageReader(q.on.Store)
	of := &listQuery{
		request: q.request, Cwd: q.Cwd, Parent: q.Parent, Top: q.Top, Q: q.Q, Order: q.Order, After: q.After,
		Limit: q.Limit, Exact: true,
	}
	a, err := sessions(ctx, of, func(sum checkpoint.Summary) (any, error) {
		is, err := usageOfListed(ctx, q.on.Store, r, sum.ID)
		damaged := sum.Missing > 0
		if errors.Is(err, coppice.ErrCorrupt) { // one session does not hide the others
			damaged = true
			is = api.Usage{
				Session: sum.ID, Scope: "session", Models: []api.ModelUsage{}, Days: []api.DayUsage{},
			}
			err = nil
		}
		if err != nil {
			return nil, err
		}
		return sessionUsage{is, sum.Title, sum.Cwd, sum.Parent, sum.Relation, sum.Created, sum.Updated, damaged}, nil
	})
	if err == nil && q.After == "" {
		a.list.also = func() (string, any, error) {
			is, err := s.count(ctx, q.on.Store, q.r.PathValue("tenant"))
			if s.o.Quota != nil && q.on.Tenant != "" {
				of := s.o.Quota(q.on.Tenant)
				is.MaxSessions, is.MaxBytes = of.Sessions, of.Bytes
			}
			return "stored", is, err
		}
	}
	return a, err
}

// usageOfListed returns the usage of a session of the list.
func usageOfListed(
	ctx context.Context, st *coppice.Store, r *manager.UsageReader, id string,
) (api.Usage, error) {
	h, err := st.Open(ctx, id, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		return api.Usage{}, err
	}
	defer func() { _ = h.Close() }() // it wrote nothing
	return api.UsageOfSession(ctx, r, h)
}

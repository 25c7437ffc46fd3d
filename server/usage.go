package server

import (
	"context"
	"errors"
	"sync"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/api"
)

// maxUsages bounds the sessions whose usage is remembered, each about 1 KiB; 9 KiB with its points.
const maxUsages = 4096

// sessionUsage is what the answers of models in a session report.
type sessionUsage struct {
	api.Usage
	Title    string    `json:"title"`
	Cwd      string    `json:"cwd"`
	Parent   string    `json:"parent,omitempty" doc:"the session that started this one"`
	Relation string    `json:"relation,omitempty" doc:"what it is to its parent, such as agent or fork"`
	Created  time.Time `json:"created"`
	Updated  time.Time `json:"updated"`
	Damaged  bool      `json:"damaged,omitempty" doc:"not all of it can be read, so what it used is not known"`
}

type usageList struct {
	Sessions []sessionUsage `json:"sessions" doc:"in the order of the list of sessions"`
	Next     string         `json:"next,omitempty" doc:"after of the next page; absent at the end"`
	Error    *Problem       `json:"error,omitempty" doc:"why the list is cut short after its first item"`
}

func (s *Server) describeUsage() {
	handle[listQuery, usageList](s, operation{
		method: "GET", path: "/v1/usage", id: "allUsage", needs: rightRead, meta: true,
		types:   []string{"application/x-ndjson"},
		summary: "Tokens and cost of sessions, each with all branches",
		text:    "Reads every entry of a session that was changed since it was asked for last. " + textOfLists,
	}, s.allUsage)
}

// usages are the usages of sessions at a commit.
type usages struct {
	mu sync.Mutex
	of map[writerKey]usageAt
}

type usageAt struct {
	commit string
	api.Usage
}

func (u *usages) get(key writerKey, commit string) (api.Usage, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	at, ok := u.of[key]
	return at.Usage, ok && at.commit == commit
}

func (u *usages) put(key writerKey, commit string, is api.Usage) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.of == nil {
		u.of = map[writerKey]usageAt{}
	}
	for old := range u.of { // any: each is made anew when it is asked for
		if len(u.of) < maxUsages {
			break
		}
		delete(u.of, old)
	}
	u.of[key] = usageAt{commit, is}
}

// usageOf returns the usage of a session, by what is remembered of its newest commit or by reading it.
func (s *Server) usageOf(ctx context.Context, st *coppice.Store, h *coppice.Session) (api.Usage, error) {
	key, commit := writerKey{st, h.ID()}, h.Head().Commit
	if is, ok := s.usages.get(key, commit); ok {
		return is, nil
	}
	is, err := api.UsageOfSession(ctx, h)
	if err == nil {
		s.usages.put(key, commit, is)
	}
	return is, err
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
		doc, err := s.usageOf(ctx, q.on.Store, h)
		switch {
		case err != nil:
			return answer{}, err
		case !q.Points:
			doc.Points = nil
		case doc.Points == nil:
			if doc.Points, err = api.CostOverTime(ctx, h); err != nil {
				return answer{}, err
			}
			s.usages.put(writerKey{q.on.Store, h.ID()}, h.Head().Commit, doc)
		}
		return answer{etag: h.Head().Commit, doc: doc}, nil
	})
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
	return s.view(ctx, &q.request, at, func(v *coppice.View) (any, error) {
		return api.UsageOfView(ctx, q.ID, v)
	}, fixed(at))
}

func (s *Server) allUsage(ctx context.Context, q *listQuery) (answer, error) {
	return sessions(ctx, q, func(sum checkpoint.Summary) (any, error) {
		is, err := s.usageOfListed(ctx, q.on.Store, sum.ID)
		damaged := errors.Is(err, coppice.ErrCorrupt) // one session does not hide the others
		if damaged {
			is, err = api.Usage{Session: sum.ID, Scope: "session", Models: []api.ModelUsage{}}, nil
		}
		if err != nil {
			return nil, err
		}
		is.Points = nil
		return sessionUsage{is, sum.Title, sum.Cwd, sum.Parent, sum.Relation, sum.Created, sum.Updated, damaged}, nil
	})
}

// usageOfListed returns the usage of a session of the list.
func (s *Server) usageOfListed(ctx context.Context, st *coppice.Store, id string) (api.Usage, error) {
	h, err := st.Open(ctx, id, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		return api.Usage{}, err
	}
	defer func() { _ = h.Close() }() // it wrote nothing
	return s.usageOf(ctx, st, h)
}

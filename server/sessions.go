package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/http"
	"reflect"
	"strings"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/fold"
)

// sessionPath is the parameter of operations on a session.
type sessionPath struct {
	request
	ID string `path:"id" maxLength:"128" doc:"the session's id"`
}

// keyHeader is the header of a key, as the tags below have it.
const keyHeader = "Idempotency-Key"

// keyedWrite is the parameters of a write that can be sent again.
type keyedWrite struct {
	request
	ID     string `path:"id" maxLength:"128" doc:"the session's id"`
	Key    string `header:"Idempotency-Key" maxLength:"256" doc:"stored once however often sent; 1,024 are known"`
	Writer string `header:"Coppice-Writer" maxLength:"256" doc:"who writes; a claim fences the other writers"`
}

func (s *Server) describeSessions() {
	handle[healthQuery, health](s, operation{
		method: "GET", path: "/v1/health", id: "health", summary: "Whether the server answers",
	}, func(context.Context, *healthQuery) (answer, error) { return answer{doc: health{Status: "ok"}}, nil })
	handle[descriptionQuery, map[string]any](s, operation{
		method: "GET", path: "/v1/openapi.json", id: "openapi", summary: "This description",
	}, func(context.Context, *descriptionQuery) (answer, error) {
		return answer{doc: s.api.OpenAPI()}, nil
	})
	handle[listQuery, sessionList](s, operation{
		method: "GET", path: "/v1/sessions", id: "listSessions", meta: true, narrows: true,
		summary: "Sessions, newest activity first or in another order", text: textOfLists,
		types: []string{"application/x-ndjson"},
	}, s.list)
	handle[createQuery, api.Created](s, operation{
		method: "PUT", path: "/v1/sessions/{id}", id: "createSession", creates: true, narrows: true,
		summary: "Create a session",
		text:    "Commits seq 0. With an Idempotency-Key a repeat gets the first answer.", statuses: []int{201},
		body: reflect.TypeFor[newSession](), condition: ifNew, errors: []int{422},
	}, s.create)
	handle[sessionPath, api.Session](s, operation{
		method: "GET", path: "/v1/sessions/{id}", id: "getSession",
		summary: "The summary of a session; its ETag is the newest commit", statuses: []int{304},
	}, s.get)
	handle[keyedWrite, api.Moved](s, operation{
		method: "PATCH", path: "/v1/sessions/{id}", id: "changeSession",
		summary: "Change title, working directory and metadata", body: reflect.TypeFor[sessionChange](),
		condition: ifMatchMay, errors: []int{409, 422},
	}, s.patch)
	handle[deleteQuery, api.Deleted](s, operation{
		method: "DELETE", path: "/v1/sessions/{id}", id: "deleteSession",
		summary: "Delete a session for good, or into the trash", condition: ifMatch,
		text: textOfDeletion,
	}, s.remove)
}

// textOfLists describes what the parameters of a list cannot.
const textOfLists = "meta.KEY=VALUE, for any key and more than once: only sessions with this metadata."

type healthQuery struct{ request }

type descriptionQuery struct{ request }

type health struct {
	Status string `json:"status"`
}

// listQuery is the query of a list of sessions.
type listQuery struct {
	request
	Cwd    string `query:"cwd" doc:"only sessions of this working directory"`
	Parent string `query:"parent" doc:"only sessions that this one started"`
	Top    bool   `query:"top" doc:"only sessions that no other one started: those without a parent, and forks"`
	Q      string `query:"q" doc:"only sessions whose title, first prompt or preview contains all these words"`
	Order  string `query:"order" enum:"activity,created,id" default:"activity" doc:"newest first, or by stored name"`
	After  string `query:"after" doc:"next of the page before, in the same order"`
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
	Exact  bool   `query:"exact" doc:"list every session; else one by activity may miss recent work"`
	Docs   string `query:"docs" doc:"names of documents that come with each session, at most 64, separated by commas"`
}

type sessionList struct {
	Sessions []api.Session `json:"sessions"`
	Age      *int          `json:"age,omitempty" doc:"of the catalogue that answered, in seconds; else absent"`
	Next     string        `json:"next,omitempty" doc:"after of the next page; absent at the end"`
	Error    *Problem      `json:"error,omitempty" doc:"why the list is cut short after its first item"`
}

func (s *Server) list(ctx context.Context, q *listQuery) (answer, error) {
	return sessions(ctx, q, func(sum checkpoint.Summary) (any, error) {
		doc := api.SessionOf(sum)
		doc.Docs = sum.Docs
		return doc, nil
	})
}

// metaOf returns the metadata of the sessions that a query asks for. possible = false: no session has two values of a
// key.
func metaOf(q *request) (meta map[string]string, possible bool) {
	meta, possible = map[string]string{}, true
	if q.on.Only.Key != "" {
		meta[q.on.Only.Key] = q.on.Only.Value
	}
	for name, values := range q.r.URL.Query() {
		key, ok := strings.CutPrefix(name, "meta.")
		for i := 0; ok && i < len(values); i++ {
			other, twice := meta[key]
			possible = possible && (!twice || other == values[i])
			meta[key] = values[i]
		}
	}
	return meta, possible
}

// sessions answers with a page of the sessions that a query asks for, each as show returns it. One that was deleted
// meanwhile (fs.ErrNotExist) is left out.
func sessions(
	ctx context.Context, q *listQuery, show func(checkpoint.Summary) (any, error),
) (answer, error) {
	meta, possible := metaOf(&q.request)
	names, err := docNames(q.Docs)
	if err != nil {
		return answer{}, err
	}
	o := coppice.ListOptions{Cwd: q.Cwd, Parent: q.Parent, Order: q.Order, After: q.After, Meta: meta, Docs: names}
	o.Exact = q.Exact
	limit, last, more := q.Limit, "", false
	if q.Q == "" && !q.Top {
		o.Limit = limit + 1
	}
	items := func(yield func(any, error) bool) {
		if !possible {
			return
		}
		n := 0
		for sum, err := range q.on.Store.List(ctx, o) {
			switch {
			case err != nil && api.Describe(err).Status == http.StatusBadRequest:
				yield(nil, badInput("after", err))
				return
			case err != nil:
				yield(nil, err)
				return
			case !contains(sum, q.Q), q.Top && sum.Parent != "" && sum.Relation != "fork":
				continue
			case n == limit:
				more = true
				return
			}
			n++
			last = sum.Cursor
			q.find()
			doc, err := show(sum)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if !yield(doc, err) || err != nil {
				return
			}
		}
	}
	l := &list{name: "sessions", items: items, ndjson: wantsNDJSON(q.r), more: func() (string, string) {
		if more {
			return last, ""
		}
		return "", ""
	}}
	o.Age = func(d time.Duration) {
		age := api.Seconds(d)
		l.age = &age
	}
	return answer{list: l}, nil
}

// contains reports whether a session is called by all words of a query.
func contains(s checkpoint.Summary, query string) bool {
	text := fold.Text(s.Title + "\n" + s.First + "\n" + s.Preview + "\n" + s.Cwd)
	for word := range strings.FieldsSeq(fold.Text(query)) {
		if fold.Index(text, word) < 0 {
			return false
		}
	}
	return true
}

// read opens a session as it is now, for the time of one request.
func read(ctx context.Context, q *request, f func(*coppice.Session) (answer, error)) (answer, error) {
	h, err := q.on.Store.Open(ctx, q.id, &coppice.SessionOptions{ReadOnly: true, Intact: true})
	if err != nil {
		return answer{}, err
	}
	q.find()
	a, err := f(h)
	if a.list == nil || err != nil {
		return a, errors.Join(err, h.Close())
	}
	a.list.items = closing(a.list.items, h) // the list is read while it is written
	return a, nil
}

// closing yields what items does, and closes the session after it.
func closing(items iter.Seq2[any, error], h *coppice.Session) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		defer func() { _ = h.Close() }() // it wrote nothing
		items(yield)
	}
}

func (s *Server) get(ctx context.Context, q *sessionPath) (answer, error) {
	return read(ctx, &q.request, func(h *coppice.Session) (answer, error) {
		return answer{etag: h.Head().Commit, doc: api.SessionOf(h.Info())}, nil
	})
}

// newSession is the body that creates a session.
type newSession struct {
	Title    string            `json:"title,omitempty"`
	Cwd      string            `json:"cwd,omitempty"`
	Parent   string            `json:"parent,omitempty" doc:"the session that starts this one"`
	Relation string            `json:"relation,omitempty" doc:"what it is to its parent"`
	Meta     map[string]string `json:"meta,omitempty"`
	Again    bool              `json:"again,omitempty" doc:"also under the id of a deleted session"`
}

// createQuery is the parameters of the creation of a session.
type createQuery struct {
	request
	ID  string `path:"id" maxLength:"128" doc:"the session's id"`
	Key string `header:"Idempotency-Key" maxLength:"200"`
}

// createdKey returns the key of the first commit: with it a repeat is told from another body.
func createdKey(key string, body newSession) (string, error) {
	if key == "" {
		return "", nil
	}
	raw, err := api.Marshal(body)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	return key + " " + hex.EncodeToString(sum[:8]), nil
}

func (s *Server) create(ctx context.Context, q *createQuery) (answer, error) {
	var body newSession
	if err := decode(q.r, &body); err != nil {
		return answer{}, err
	}
	o := body.options(q.on.Only)
	key, err := createdKey(q.Key, body)
	if err != nil {
		return answer{}, err
	}
	if full := seenOf(q.r).full; full != nil {
		a, err := s.createdBefore(ctx, q, key)
		if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, coppice.ErrDeleted) {
			err = full
		}
		return a, err
	}
	ctx, cancel := s.detached(ctx)
	defer cancel()
	h, err := q.on.Store.Create(q.id, o)
	if err != nil {
		return answer{}, err
	}
	r, err := h.Commit(ctx, coppice.Turn{Reason: "create", Key: key})
	_ = h.Close() // what was acknowledged is stored; what was not is in err
	if errors.Is(err, fs.ErrExist) || errors.Is(err, coppice.ErrConflict) {
		return s.createdBefore(ctx, q, key)
	}
	if err != nil {
		return answer{}, err
	}
	return answer{
		status: http.StatusCreated, etag: r.Commit, doc: api.Created{Session: q.id}, location: q.r.URL.Path,
		repeated: r.Repeated,
	}, nil
}

// createdBefore answers the creation of a session that there is: with the first answer if this request created it.
func (s *Server) createdBefore(ctx context.Context, q *createQuery, key string) (answer, error) {
	taken := newProblem(http.StatusPreconditionFailed, "exists", "choose another id",
		fmt.Errorf("session %s exists; it was not changed", q.id))
	a, err := read(ctx, &q.request, func(h *coppice.Session) (answer, error) {
		if key == "" {
			return answer{}, taken
		}
		creation, err := targetSeq(0)
		if err != nil {
			return answer{}, err
		}
		v, err := h.At(ctx, creation)
		if err != nil {
			return answer{}, err
		}
		first := v.Commit()
		mine, _, _ := strings.Cut(first.Key, " ")
		switch {
		case first.Key == key:
			return answer{
				status: http.StatusCreated, etag: first.Commit, doc: api.Created{Session: q.id}, location: q.r.URL.Path,
				repeated: true,
			}, nil
		case mine == q.Key:
			return answer{}, fmt.Errorf("create %s: %w", q.id, coppice.ErrKeyReused)
		}
		return answer{}, taken
	})
	if errors.Is(err, coppice.ErrDeleted) {
		return answer{}, usedUp(q.id)
	}
	return a, err
}

// usedUp is the error of a new session under the id of a deleted one.
func usedUp(id string) error {
	return newProblem(http.StatusGone, "deleted", "choose another id, or create the session with again",
		fmt.Errorf("session %s was deleted; nothing was stored", id))
}

// orDeleted returns the error of a session that was not created under an id: usedUp if a deleted session had the id,
// which to the store is as taken as that of another one.
func orDeleted(ctx context.Context, st *coppice.Store, id string, err error) error {
	if id == "" || !errors.Is(err, fs.ErrExist) {
		return err
	}
	h, oerr := st.Open(ctx, id, &coppice.SessionOptions{ReadOnly: true})
	if errors.Is(oerr, coppice.ErrDeleted) {
		return usedUp(id)
	}
	if oerr == nil {
		_ = h.Close() // it wrote nothing
	}
	return err
}

// sessionChange is the body that changes what a session is called.
type sessionChange struct {
	Title *string            `json:"title,omitempty"`
	Cwd   *string            `json:"cwd,omitempty"`
	Meta  map[string]*string `json:"meta,omitempty" doc:"by key; null removes it, and keys that are absent stay"`
}

func (s *Server) patch(ctx context.Context, q *keyedWrite) (answer, error) {
	var body sessionChange
	if err := decode(q.r, &body); err != nil {
		return answer{}, err
	}
	if only := q.on.Only; only.Key != "" {
		if value, own := body.Meta[only.Key]; own && (value == nil || *value != only.Value) {
			return answer{}, ErrForbidden
		}
		delete(body.Meta, only.Key) // the session has it
	}
	change := coppice.InfoChange{Title: body.Title, Cwd: body.Cwd, Meta: body.Meta}
	return s.move(ctx, &q.request, keys{q.Key, q.Writer, "info"},
		func(ctx context.Context, h *coppice.Session, o ...coppice.MoveOption) (coppice.Receipt, error) {
			return h.SetInfo(ctx, change, o...)
		})
}

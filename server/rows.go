package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/rows"
	"github.com/coppice-go/coppice/transcript"
)

// Bounds of the drawn trees that are kept, those that are being drawn not counted. The last one may be larger.
const (
	maxViews     = 16
	maxViewBytes = 256 << 20 // estimated by their entries
)

// viewEntryBytes is what a view keeps for each entry and commit: 21 bytes for the tree, 16 for its rows.
const viewEntryBytes = 21 + 16

// rowsQuery is the parameters of a stretch of a drawn tree.
type rowsQuery struct {
	request
	ID     string `path:"id" maxLength:"128" doc:"the session's id"`
	View   string `query:"view" doc:"the view of another answer: the same rows, whatever was committed since"`
	Filter string `query:"filter" enum:"default,no-tools,user-only,labeled-only,all"`
	Search string `query:"search" doc:"only entries that contain all these words"`
	Fold   string `query:"fold" doc:"ids of entries below which nothing is shown, separated by commas"`
	From   int    `query:"from" minimum:"0" doc:"the first row"`
	Count  int    `query:"count" minimum:"1" maximum:"500" default:"100"`
}

// mapQuery is the parameters of a map of a drawn tree.
type mapQuery struct {
	request
	ID      string `path:"id" maxLength:"128" doc:"the session's id"`
	View    string `query:"view" doc:"as of rows"`
	Filter  string `query:"filter" enum:"default,no-tools,user-only,labeled-only,all"`
	Search  string `query:"search"`
	Fold    string `query:"fold"`
	Buckets int    `query:"buckets" minimum:"1" maximum:"2048" default:"512"`
}

// rowList is a stretch of a drawn tree.
type rowList struct {
	api.TreeHead
	View  string    `json:"view" doc:"names these rows in further requests; 410 once it is gone"`
	Total int       `json:"total" doc:"the number of rows"`
	From  int       `json:"from"`
	Rows  []api.Row `json:"rows"`
}

// treeMap is a drawn tree in a few numbers.
type treeMap struct {
	View    string   `json:"view"`
	Total   int      `json:"total"`
	Buckets []bucket `json:"buckets" doc:"stretches of rows, in their order"`
}

type bucket struct {
	From   int `json:"from"`
	Count  int `json:"count"`
	Forks  int `json:"forks"`
	OnPath int `json:"onPath"`
	Indent int `json:"indent"`
}

// drawn is a drawn tree. It never changes.
type drawn struct {
	of   writerKey
	name string // its view
	tree *transcript.Tree
	rows *rows.Rows
	head api.TreeHead
	size int64 // in memory, estimated
}

// views are the drawn trees that were asked for last.
type views struct {
	most int64 // bytes

	mu      sync.Mutex
	list    []*drawn // the one used last is last
	bytes   int64    // of list
	drawing map[viewKey]*drawing
}

// viewKey names a view.
type viewKey struct {
	of   writerKey
	name string
}

// drawing is a view that someone draws for all that want it.
type drawing struct {
	ready chan struct{} // closed when d or err is set
	d     *drawn
	err   error
}

func (v *views) find(of writerKey, name string) *drawn {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i, d := range v.list {
		if d.of == of && d.name == name {
			v.list = append(slices.Delete(v.list, i, i+1), d)
			return d
		}
	}
	return nil
}

// add keeps a view, and drops those that were used the longest time ago. v.mu is held.
func (v *views) add(d *drawn) {
	v.list = append(v.list, d)
	v.bytes += d.size
	for len(v.list) > 1 && (len(v.list) > maxViews || v.bytes > v.most) {
		v.bytes -= v.list[0].size
		v.list = slices.Delete(v.list, 0, 1)
	}
}

// get returns a view, which one caller draws if it is not there; the others wait. The end of ctx ends only the waiting:
// draw must not end with it.
func (v *views) get(ctx context.Context, of writerKey, name string, draw func() (*drawn, error)) (*drawn, error) {
	if d := v.find(of, name); d != nil {
		return d, nil
	}
	w, first := v.enter(viewKey{of, name})
	if first {
		func() {
			defer v.leave(viewKey{of, name}, w) // also if draw panics
			w.d, w.err = draw()
		}()
	}
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-w.ready:
		return w.d, w.err
	}
}

// enter returns the drawing of a view; first = the caller has to draw it, and to leave.
func (v *views) enter(key viewKey) (w *drawing, first bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if w = v.drawing[key]; w != nil {
		return w, false
	}
	w = &drawing{ready: make(chan struct{})}
	if v.drawing == nil {
		v.drawing = map[viewKey]*drawing{}
	}
	for _, d := range v.list { // drawn since it was looked for
		if d.of == key.of && d.name == key.name {
			w.d = d
			close(w.ready)
			return w, false
		}
	}
	v.drawing[key] = w
	return w, true
}

func (v *views) leave(key viewKey, w *drawing) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.drawing, key)
	switch {
	case w.err != nil:
	case w.d == nil:
		w.err = errors.New("the tree was not drawn")
	default:
		v.add(w.d)
	}
	close(w.ready)
}

func (s *Server) describeRows() {
	handle[rowsQuery, rowList](s, operation{
		method: "GET", path: "/v1/sessions/{id}/rows", id: "rows", needs: rightRead, errors: []int{410},
		statuses: []int{304}, summary: "The tree as it is drawn, a stretch of rows at a time",
	}, func(ctx context.Context, q *rowsQuery) (answer, error) {
		return s.draw(ctx, &q.request, q.View, treeQuery{q.Filter, q.Search, q.Fold}, func(d *drawn) any {
			doc := rowList{TreeHead: d.head, View: d.name, Total: d.rows.Len(), From: q.From, Rows: []api.Row{}}
			for r := range api.Rows(d.tree, d.rows, min(q.From, d.rows.Len()), q.Count) {
				doc.Rows = append(doc.Rows, r)
			}
			return doc
		})
	})
	handle[mapQuery, treeMap](s, operation{
		method: "GET", path: "/v1/sessions/{id}/map", id: "map", needs: rightRead, errors: []int{410},
		statuses: []int{304}, summary: "The drawn tree in at most 2,048 buckets",
	}, func(ctx context.Context, q *mapQuery) (answer, error) {
		return s.draw(ctx, &q.request, q.View, treeQuery{q.Filter, q.Search, q.Fold}, func(d *drawn) any {
			doc := treeMap{View: d.name, Total: d.rows.Len(), Buckets: []bucket{}}
			for _, b := range d.rows.Buckets(q.Buckets) {
				doc.Buckets = append(doc.Buckets, bucket(b))
			}
			return doc
		})
	})
}

// treeQuery says what of a tree is drawn.
type treeQuery struct{ filter, search, fold string }

func (t treeQuery) query() api.TreeQuery {
	q := api.TreeQuery{Filter: transcript.Filter(t.filter), Search: t.search}
	if t.fold != "" {
		q.Folded = strings.Split(t.fold, ",")
	}
	return q
}

// draw answers with something of a drawn tree: of the view that was asked for, else of the newest.
func (s *Server) draw(
	ctx context.Context, q *request, view string, what treeQuery, f func(*drawn) any,
) (answer, error) {
	of := writerKey{q.on.Store, q.id}
	if view != "" {
		d := s.views.find(of, view)
		if d == nil {
			return answer{}, newProblem(http.StatusGone, "gone",
				"ask without view, and go on from the entry you were at", errors.New("this view is gone"))
		}
		return answer{doc: f(d)}, nil
	}
	return s.readTree(ctx, q, func(h *coppice.Session) (answer, error) {
		etag := h.Head().Commit
		name := cursor(strings.Join([]string{etag, what.filter, what.search, what.fold}, "\x00"))
		d, err := s.views.get(ctx, of, name, func() (*drawn, error) {
			own, cancel := s.detached(ctx) // others wait for it
			defer cancel()
			return newDrawn(own, h, of, name, what)
		})
		if err != nil {
			return answer{}, err
		}
		return answer{etag: etag, doc: f(d)}, nil
	})
}

// newDrawn draws the tree of a session.
func newDrawn(ctx context.Context, h *coppice.Session, of writerKey, name string, what treeQuery) (*drawn, error) {
	t, err := h.Tree(ctx)
	if err != nil {
		return nil, err
	}
	ro, _, err := api.RowOptions(ctx, h, t, what.query())
	if err != nil {
		return nil, err
	}
	r, err := rows.New(t, ro)
	if err != nil {
		return nil, fmt.Errorf("draw %s: %w", h.ID(), err)
	}
	head, err := api.RowsHead(t, r, ro, "")
	size := int64(t.Len()) * viewEntryBytes
	return &drawn{of: of, name: name, tree: t, rows: r, head: head, size: size}, err
}

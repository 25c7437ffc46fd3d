package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sort"
	"strings"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/rows"
	"github.com/coppice-go/coppice/transcript"
)

// rowsQuery is the parameters of a stretch of a drawn tree.
type rowsQuery struct {
	request
	ID     string `path:"id" maxLength:"128" doc:"the session's id"`
	View   string `query:"view" doc:"the view of another answer: the same rows, whatever was committed since"`
	Filter string `query:"filter" enum:"default,no-tools,user-only,labeled-only,all"`
	Search string `query:"search" doc:"only entries that contain all these words"`
	Fold   string `query:"fold" doc:"ids of entries below which nothing is shown, separated by commas"`
	From   int    `query:"from" minimum:"0" doc:"the first row"`
	Around string `query:"around" doc:"instead of from: an entry, or a unique prefix of its id, to be in the middle"`
	Count  int    `query:"count" minimum:"1" maximum:"500" default:"100"`
}

// mapQuery is the parameters of a map of a drawn tree.
type mapQuery struct {
	request
	ID       string `path:"id" maxLength:"128" doc:"the session's id"`
	View     string `query:"view" doc:"as of rows"`
	Filter   string `query:"filter" enum:"default,no-tools,user-only,labeled-only,all"`
	Search   string `query:"search"`
	Fold     string `query:"fold"`
	Buckets  int    `query:"buckets" minimum:"1" maximum:"2048" default:"512"`
	Mark     string `query:"mark" maxLength:"512" doc:"words: hits counts the rows whose entries contain all of them"`
	Failures bool   `query:"failures" doc:"also a list of the entries that failed"`
	Near     int    `query:"near" minimum:"0" doc:"a row: nextHit and previousHit are those around it"`
}

// rowList is a stretch of a drawn tree.
type rowList struct {
	api.TreeHead
	View  string    `json:"view" doc:"names these rows in further requests; 410 once it is gone"`
	Total int       `json:"total" doc:"the number of rows"`
	From  int       `json:"from"`
	At    *int      `json:"at,omitempty" doc:"of around: the row of the entry, or of its nearest ancestor that has one"`
	Rows  []api.Row `json:"rows"`
}

// treeMap is a drawn tree in a few numbers.
type treeMap struct {
	View    string   `json:"view"`
	Total   int      `json:"total"`
	Buckets []bucket `json:"buckets" doc:"stretches of rows, in their order"`
	Cause   string   `json:"cause,omitempty" doc:"why what is drawn is only what is intact"`

	Failures []failure `json:"failures,omitempty" doc:"on request: the newest 1,000, in the order of appending"`

	NextHit     *int `json:"nextHit,omitempty" doc:"the one after near, around the end; absent: none"`
	PreviousHit *int `json:"previousHit,omitempty" doc:"the one before near"`
}

type bucket struct {
	From   int  `json:"from"`
	Count  int  `json:"count"`
	Forks  int  `json:"forks"`
	OnPath int  `json:"onPath"`
	Indent int  `json:"indent"`
	Labels int  `json:"labels" doc:"rows with a label"`
	Hits   int  `json:"hits,omitempty" doc:"with mark: rows whose entries contain its words"`
	Failed int  `json:"failed,omitempty" doc:"entries that failed whose row, or that of the nearest ancestor, is in it"`
	Head   bool `json:"head,omitempty" doc:"the row of the head, or of its nearest ancestor that has one, is in it"`
}

// failure is an entry that failed: an answer, or the result of a call.
type failure struct {
	Entry string    `json:"entry"`
	Seq   uint64    `json:"seq" doc:"number of the commit that stored it"`
	Time  time.Time `json:"time"`
}

// maxFailures bounds the failures that a map lists.
const maxFailures = 1000

// failuresOf returns the newest failures of a tree. Entries come before the row of their commit.
func failuresOf(t *transcript.Tree) []failure {
	more := -maxFailures // older ones
	for range t.Failures {
		more++
	}
	list := []failure{}
	var at, seq uint64
	for ord := range t.Failures {
		if more--; more >= 0 {
			continue
		}
		for ; at < ord; at++ {
			if t.IsCommit(at) {
				seq++
			}
		}
		list = append(list, failure{t.ID(ord), seq, t.Time(ord)})
	}
	return list
}

func (s *Server) describeRows() {
	handle[rowsQuery, rowList](s, operation{
		method: "GET", path: "/v1/sessions/{id}/rows", id: "rows", names: true, whole: true,
		statuses: []int{304}, summary: "The tree as it is drawn, a stretch of rows at a time",
	}, s.rows)
	handle[mapQuery, treeMap](s, operation{
		method: "GET", path: "/v1/sessions/{id}/map", id: "map", whole: true,
		statuses: []int{304}, summary: "The drawn tree in at most 2,048 buckets",
		text: "The first request with a mark reads the session once. The view keeps the hits of the last 8 marks.",
	}, s.treeMap)
}

func (s *Server) rows(ctx context.Context, q *rowsQuery) (answer, error) {
	if q.Around != "" && q.r.URL.Query().Has("from") {
		return answer{}, badInput("around", errors.New("use only one of from and around"))
	}
	return s.draw(ctx, &q.request, q.View, treeQuery{q.Filter, q.Search, q.Fold}, func(d *drawn) (any, error) {
		total := d.rows.Len()
		doc := rowList{TreeHead: d.head, View: d.name, Total: total, From: q.From, Rows: []api.Row{}}
		if q.Around != "" {
			ord, err := d.tree.Ordinal(q.Around)
			if err != nil {
				return nil, err
			}
			if at, ok := api.RowNear(d.tree, d.rows, ord); ok {
				doc.At, doc.From = &at, max(0, min(at-q.Count/2, total-q.Count))
			}
		}
		for r := range api.Rows(d.tree, d.rows, min(doc.From, total), q.Count) {
			doc.Rows = append(doc.Rows, r)
		}
		return doc, nil
	})
}

func (s *Server) treeMap(ctx context.Context, q *mapQuery) (answer, error) {
	return s.draw(ctx, &q.request, q.View, treeQuery{q.Filter, q.Search, q.Fold}, func(d *drawn) (any, error) {
		doc := treeMap{View: d.name, Total: d.rows.Len(), Buckets: []bucket{}, Cause: d.head.Cause}
		for _, b := range d.rows.Buckets(q.Buckets) {
			doc.Buckets = append(doc.Buckets, bucket{
				From: b.From, Count: b.Count, Forks: b.Forks, OnPath: b.OnPath, Indent: b.Indent,
			})
		}
		for ord := range d.tree.Labelled {
			if row, ok := d.rows.IndexOf(ord); ok {
				doc.bucket(row).Labels++
			}
		}
		for ord := range d.tree.Failures {
			if row, ok := api.RowNear(d.tree, d.rows, ord); ok {
				doc.bucket(row).Failed++
			}
		}
		if q.Failures {
			doc.Failures = failuresOf(d.tree)
		}
		if head, ok := d.tree.HeadOrdinal(); ok {
			if row, ok := api.RowNear(d.tree, d.rows, head); ok {
				doc.bucket(row).Head = true
			}
		}
		if strings.TrimSpace(q.Mark) == "" {
			return doc, nil
		}
		found, err := s.find(ctx, &q.request, d, q.Mark)
		if err != nil {
			return nil, err
		}
		for i := range doc.Buckets {
			b := &doc.Buckets[i]
			for row := b.From; row < b.From+b.Count; row++ {
				b.Hits += int(found[row/64] >> (row % 64) & 1)
			}
		}
		doc.NextHit, doc.PreviousHit = nextHit(found, doc.Total, q.Near, 1), nextHit(found, doc.Total, q.Near, -1)
		return doc, nil
	})
}

// nextHit returns the first row with a hit that comes after another row in steps, around the end; nil = there is none.
func nextHit(found []uint64, total, near, step int) *int {
	for i := 1; i <= total; i++ {
		row := ((near+i*step)%total + total) % total
		if found[row/64]>>(row%64)&1 == 1 {
			return &row
		}
	}
	return nil
}

// bucket returns the bucket of a row.
func (m *treeMap) bucket(row int) *bucket {
	return &m.Buckets[sort.Search(len(m.Buckets), func(i int) bool { return m.Buckets[i].From > row })-1]
}

// find returns a bit for each row of a view whose entry contains all words of a text.
func (s *Server) find(ctx context.Context, q *request, d *drawn, text string) ([]uint64, error) {
	return d.found.get(ctx, text, func() (found []uint64, err error) {
		_, err = s.readTree(ctx, q, func(h *coppice.Session) (answer, error) {
			found, err = api.RowsFound(ctx, h, d.tree, d.rows, text)
			return answer{}, err
		})
		return found, err
	})
}

// treeQuery selects what of a tree is drawn.
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
	ctx context.Context, q *request, view string, what treeQuery, f func(*drawn) (any, error),
) (answer, error) {
	of := writerKey{q.on.Store, q.id}
	if view != "" {
		d := s.views.find(of, view)
		if d == nil { // readTree answers if the session is gone too
			return s.readTree(ctx, q, func(*coppice.Session) (answer, error) {
				return answer{}, newProblem(http.StatusGone, "gone",
					"ask without view, and go on from the entry you were at", errors.New("this view is gone"))
			})
		}
		q.find()
		doc, err := f(d)
		return answer{doc: doc}, err
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
		doc, err := f(d)
		return answer{etag: etag, doc: doc}, err
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
	ro.Order = rows.Drawn // the line of the head stays at the left edge, and what left it hangs on it
	r, err := rows.New(t, ro)
	if err != nil {
		return nil, fmt.Errorf("draw %s: %w", h.ID(), err)
	}
	head, err := api.RowsHead(t, r, ro, "")
	head.Missing, head.Cause = h.Info().Missing, h.Info().Cause
	size := int64(t.Len()) * viewEntryBytes
	return &drawn{
		of: of, name: name, tree: t, rows: r, head: head, size: size, found: newFounds(),
	}, err
}

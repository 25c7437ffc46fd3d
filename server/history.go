package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/provider"
)

// commitsQuery is the parameters of a page of commits.
type commitsQuery struct {
	request
	ID     string `path:"id" maxLength:"128" doc:"the session's id"`
	At     string `query:"at" doc:"a target: the page begins at the commit in force there; default head"`
	After  string `query:"after" doc:"next of another page"`
	Before string `query:"before" doc:"prev of another page"`
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
}

type commitList struct {
	Commits []api.Commit `json:"commits" doc:"newest first"`
	Next    string       `json:"next,omitempty" doc:"after of the older ones; absent at the end"`
	Prev    string       `json:"prev,omitempty" doc:"before of the newer ones"`
	Error   *Problem     `json:"error,omitempty" doc:"why the list is cut short after its first item"`
}

// commitPath names a commit of a session.
type commitPath struct {
	request
	ID  string `path:"id" maxLength:"128" doc:"the session's id"`
	Seq string `path:"seq" doc:"the number of the commit"`
}

// contextQuery is the parameters of a read of the context.
type contextQuery struct {
	request
	ID       string `path:"id" maxLength:"128" doc:"the session's id"`
	At       string `query:"at" doc:"a target; default head"`
	Provider string `query:"provider" enum:"anthropic,openai-chat,openai-responses,gemini" doc:"of the request"`
	Vendor   string `query:"vendor" maxLength:"128" doc:"who runs the provider's API, as messages name it"`
	Limit    int    `query:"limit" minimum:"0" maximum:"500" doc:"messages of a page, of at most 4 MiB; 0 = all"`
	After    string `query:"after" doc:"next of another page of the same context"`
}

// maxContextPage bounds the messages of a page of a context, in bytes. One message may be longer.
const maxContextPage = 4 << 20

type branchList struct {
	Branches []api.Branch `json:"branches"`
}

type snapshotList struct {
	Snapshots []api.Snapshot `json:"snapshots" doc:"newest first"`
}

type labelList struct {
	Labels []api.Label `json:"labels" doc:"in the order in which they were set"`
}

func (s *Server) describeHistory() {
	handle[commitsQuery, commitList](s, operation{
		method: "GET", path: "/v1/sessions/{id}/commits", id: "listCommits", names: true,
		statuses: []int{304},
		summary:  "Commits, newest first", types: []string{"application/x-ndjson"},
		text: "With at, the first one is the commit in force at a target: that of an entry is the one with the state " +
			"that the agent had there. after and before lead on from there in both directions.",
	}, s.commits)
	handle[commitPath, api.Commit](s, operation{
		method: "GET", path: "/v1/sessions/{id}/commits/{seq}", id: "getCommit", statuses: []int{304},
		summary: "One commit, which never changes",
	}, s.oneCommit)
	handle[contextQuery, api.Context](s, operation{
		method: "GET", path: "/v1/sessions/{id}/context", id: "context", names: true,
		statuses: []int{304},
		summary:  "What the model saw, now or at any time, complete or in pages",
		text:     "Calls, diagnostics and losses come with the first page.",
	}, s.context)
	handle[sessionPath, branchList](s, operation{
		method: "GET", path: "/v1/sessions/{id}/branches", id: "branches", statuses: []int{304},
		summary: "Branches and their heads",
	}, s.branches)
	handle[sessionPath, snapshotList](s, operation{
		method: "GET", path: "/v1/sessions/{id}/snapshots", id: "snapshots", summary: "Snapshots",
	}, s.snapshots)
	handle[sessionPath, labelList](s, operation{
		method: "GET", path: "/v1/sessions/{id}/labels", id: "labels", statuses: []int{304},
		summary: "Labels of entries",
	}, s.labels)
	handle[usageQuery, api.Usage](s, operation{
		method: "GET", path: "/v1/sessions/{id}/usage", id: "usage", names: true, whole: true,
		statuses: []int{304},
		summary:  "Tokens and cost of all branches, or of one path. Lists the store, for copies, and reads every entry",
	}, s.usage)
}

// seqOf returns the seq that a parameter names.
func seqOf(name, text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, badInput(name, fmt.Errorf("%.40q is no seq", text))
	}
	return n, nil
}

// targetSeq returns the target of a seq, 0 included.
func targetSeq(seq uint64) (t coppice.Target, err error) {
	err = t.UnmarshalText([]byte("seq:" + strconv.FormatUint(seq, 10)))
	return t, err
}

// begin returns the seq of the commit at which a page without a cursor begins: that of the head, unless At names
// another.
func (q *commitsQuery) begin(ctx context.Context, h *coppice.Session) (uint64, error) {
	if q.At == "" {
		return h.Head().Seq, nil
	}
	if q.After != "" || q.Before != "" {
		return 0, badInput("at", errors.New("use only one of at, after and before"))
	}
	at, err := target("at", q.At)
	if err != nil {
		return 0, err
	}
	v, err := h.At(ctx, at)
	if err != nil {
		return 0, err
	}
	return v.Commit().Seq, nil
}

// window returns the seqs of a page of commits, from the newest down to the oldest; none = the page is empty. begin is
// where a page without a cursor begins.
func (q *commitsQuery) window(begin, head uint64) (newest, oldest uint64, none bool, err error) {
	newest = begin
	limit := uint64(q.Limit)
	switch {
	case q.Before != "": // the newer ones, next to the place
		text, err := place("before", q.Before)
		if err != nil {
			return 0, 0, false, err
		}
		at, err := seqOf("before", text)
		if err != nil {
			return 0, 0, false, err
		}
		if at >= head {
			return 0, 0, true, nil
		}
		return min(head, at+limit), at + 1, false, nil
	case q.After != "":
		text, err := place("after", q.After)
		if err != nil {
			return 0, 0, false, err
		}
		at, err := seqOf("after", text)
		if err != nil {
			return 0, 0, false, err
		}
		if at == 0 {
			return 0, 0, true, nil
		}
		newest = min(head, at-1)
	}
	if newest+1 > limit {
		oldest = newest + 1 - limit
	}
	return newest, oldest, false, nil
}

func (s *Server) commits(ctx context.Context, q *commitsQuery) (answer, error) {
	return s.readTree(ctx, &q.request, func(h *coppice.Session) (answer, error) { // it keeps what pages have in common
		head := h.Head()
		begin, err := q.begin(ctx, h)
		if err != nil {
			return answer{}, err
		}
		newest, oldest, none, err := q.window(begin, head.Seq)
		if err != nil {
			return answer{}, err
		}
		from, err := targetSeq(newest)
		if err != nil {
			return answer{}, err
		}
		items := func(yield func(any, error) bool) {
			if none {
				return
			}
			for c, err := range h.Log(ctx, from) {
				if err == nil && c.Seq < oldest || !yield(api.CommitOf(c), err) {
					return
				}
			}
		}
		return answer{etag: head.Commit, list: &list{
			name: "commits", items: items, ndjson: wantsNDJSON(q.r), more: func() (next, prev string) {
				if !none && oldest > 0 {
					next = cursor(strconv.FormatUint(oldest, 10))
				}
				if !none && newest < head.Seq {
					prev = cursor(strconv.FormatUint(newest, 10))
				}
				return next, prev
			},
		}}, nil
	})
}

func (s *Server) oneCommit(ctx context.Context, q *commitPath) (answer, error) {
	seq, err := seqOf("seq", q.Seq)
	if err != nil {
		return answer{}, err
	}
	at, err := targetSeq(seq)
	if err != nil {
		return answer{}, err
	}
	return s.view(ctx, &q.request, at, func(v *coppice.View) (any, error) {
		return api.CommitOf(v.Commit()), nil
	}, true)
}

// view answers with something of a session at a target. Entries and contexts need the tree.
func (s *Server) view(
	ctx context.Context, q *request, at coppice.Target, f func(*coppice.View) (any, error), lasting bool,
) (answer, error) {
	return s.readTree(ctx, q, func(h *coppice.Session) (answer, error) {
		v, err := h.At(ctx, at)
		if err != nil {
			return answer{}, err
		}
		doc, err := f(v)
		return answer{etag: v.Commit().Commit, doc: doc, lasting: lasting}, err
	})
}

func (s *Server) context(ctx context.Context, q *contextQuery) (answer, error) {
	at, err := target("at", q.At)
	if err != nil {
		return answer{}, err
	}
	if q.Provider != "" && !slices.Contains(provider.APIs(), provider.API(q.Provider)) {
		return answer{}, badInput("provider", fmt.Errorf("%.40q is not known", q.Provider))
	}
	if q.Vendor != "" && q.Provider == "" {
		return answer{}, badInput("vendor", errors.New("it is of the request that provider asks for"))
	}
	commit, from, err := q.place()
	if err != nil {
		return answer{}, err
	}
	if q.At == "" && commit != "" {
		at = coppice.Target{Commit: commit}
	}
	key := contextKey{writerKey{q.on.Store, q.id}, commit, q.At, q.Provider, q.Vendor}
	if doc, ok := s.contexts.find(key); ok {
		return read(ctx, &q.request, func(*coppice.Session) (answer, error) { // it may have been deleted since
			q.page(&doc, commit, from)
			return answer{etag: commit, doc: doc}, nil
		})
	}
	return s.view(ctx, &q.request, at, func(v *coppice.View) (any, error) {
		if commit != "" && v.Commit().Commit != commit {
			return nil, badInput("after", errors.New("it is of another context: begin again"))
		}
		con, err := v.Context(ctx)
		if err != nil {
			return nil, err
		}
		doc := api.ContextOf(con)
		if q.Provider != "" {
			r, err := provider.Convert(ctx, con, provider.API(q.Provider), &provider.Options{Provider: q.Vendor})
			if err != nil {
				return nil, err
			}
			doc.SetRequest(r)
		}
		if q.Limit == 0 && from == 0 {
			return doc, nil
		}
		whole := doc
		q.page(&doc, v.Commit().Commit, from)
		if doc.Next != "" {
			key.commit = v.Commit().Commit
			s.contexts.add(key, whole)
		}
		return doc, nil
	}, false)
}

// place returns the commit of the context of which a page is, and the number of the page's first message; "" = none.
func (q *contextQuery) place() (commit string, from int, err error) {
	text, err := place("after", q.After)
	if err != nil || text == "" {
		return "", 0, err
	}
	number, commit, _ := strings.Cut(text, ":")
	if from, err = strconv.Atoi(number); err != nil || from < 1 || commit == "" {
		return "", 0, badInput("after", fmt.Errorf("%.40q is no cursor of a context", q.After))
	}
	return commit, from, nil
}

// page leaves the messages of a page in a context.
func (q *contextQuery) page(c *api.Context, commit string, from int) {
	from = min(from, len(c.Messages))
	to, size := from, 0
	for to < len(c.Messages) && (q.Limit == 0 || to-from < q.Limit) {
		if size += len(c.Messages[to]); to > from && size > maxContextPage {
			break
		}
		to++
	}
	if to < len(c.Messages) {
		c.Next = cursor(fmt.Sprintf("%d:%s", to, commit))
	}
	if c.Messages = c.Messages[from:to]; from > 0 {
		c.OpenCalls, c.Diagnostics, c.Lost, c.MoreLost = []api.OpenCall{}, []api.Diagnostic{}, nil, 0
	}
}

func (s *Server) branches(ctx context.Context, q *sessionPath) (answer, error) {
	return s.readTree(ctx, &q.request, func(h *coppice.Session) (answer, error) {
		etag := h.Head().Commit
		t, err := h.Tree(ctx)
		if err != nil {
			return answer{}, err
		}
		doc := branchList{Branches: api.TreeHeadOf(t, func(uint64) bool { return true }).Branches}
		return answer{etag: etag, doc: doc}, nil
	})
}

func (s *Server) snapshots(ctx context.Context, q *sessionPath) (answer, error) {
	return read(ctx, &q.request, func(h *coppice.Session) (answer, error) {
		doc := snapshotList{Snapshots: []api.Snapshot{}}
		for i, err := range h.Snapshots(ctx) {
			if err != nil {
				return answer{}, err
			}
			doc.Snapshots = append(doc.Snapshots, api.SnapshotOf(i))
		}
		return answer{doc: doc}, nil
	})
}

func (s *Server) labels(ctx context.Context, q *sessionPath) (answer, error) {
	return s.readTree(ctx, &q.request, func(h *coppice.Session) (answer, error) {
		etag := h.Head().Commit
		all, err := manager.Labels(ctx, h)
		if err != nil {
			return answer{}, err
		}
		list := api.LabelsOf(all)
		if list == nil {
			list = []api.Label{}
		}
		return answer{etag: etag, doc: labelList{Labels: list}}, nil
	})
}

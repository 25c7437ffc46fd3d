package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/searchindex"
)

// Index is where the full-text indexes are kept in which search and prompts look. They are no part of the store, and
// are rebuilt when they are missing or damaged. One index belongs to one store.
type Index struct {
	// File returns the file of the index of a tenant's store, "" = that of Options.Store; "" = it is kept in memory,
	// and begins empty when the server starts, so that the first search reads everything. nil = all are in memory.
	File func(tenant string) string
	// Shallow: checkpoints are replaced with every commit, as on S3: then an update opens only the sessions
	// that the listing shows as changed.
	Shallow bool
}

// searchQuery is the parameters of a search.
type searchQuery struct {
	request
	Q       string `query:"q" maxLength:"4096" doc:"words, all of them; in quotes adjacent; re: = a regular expression"`
	Cwd     string `query:"cwd" doc:"only sessions of this working directory"`
	Session string `query:"session" doc:"only this session"`
	After   string `query:"after" doc:"next of the page before"`
	Limit   int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
}

// promptQuery is the parameters of a list of prompts.
type promptQuery struct {
	request
	Q       string `query:"q" maxLength:"4096" doc:"as of search; empty = all prompts"`
	Prefix  bool   `query:"prefix" doc:"q is the beginning of the prompt"`
	Cwd     string `query:"cwd" doc:"only sessions of this working directory"`
	Session string `query:"session" doc:"only this session"`
	After   string `query:"after" doc:"next of the page before"`
	Limit   int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
}

type matchList struct {
	Matches  []api.Match   `json:"matches" doc:"best first"`
	Indexing *float64      `json:"indexing,omitempty" doc:"how much is indexed, from 0 to 1; absent: all is"`
	Next     string        `json:"next,omitempty" doc:"after of the next page; absent at the end"`
	Problems []api.Problem `json:"problems,omitempty" doc:"sessions that could not be read, or not to their end"`
}

type promptList struct {
	Prompts  []api.Prompt  `json:"prompts" doc:"newest first; one that was repeated directly is listed once"`
	Indexing *float64      `json:"indexing,omitempty" doc:"how much is indexed, from 0 to 1; absent: all is"`
	Next     string        `json:"next,omitempty" doc:"after of the next page; absent at the end"`
	Problems []api.Problem `json:"problems,omitempty" doc:"sessions that could not be read, or not to their end"`
}

func (s *Server) describeSearch() {
	handle[searchQuery, matchList](s, operation{
		method: "GET", path: "/v1/search", id: "search", heavy: true,
		summary: "Entries of all sessions and branches that contain words",
		text: "Finds what was committed before, or, where the index takes longer than 2 s to read that, what is " +
			"indexed so far. Of one entry the first 256 KiB of text are searched.",
	}, func(ctx context.Context, q *searchQuery) (answer, error) {
		what, err := searchindex.Parse(q.Q)
		if err != nil || what.Empty() {
			return answer{}, badInput("q", errors.Join(err, errNoWords(err)))
		}
		doc := matchList{Matches: []api.Match{}}
		doc.Next, doc.Indexing, doc.Problems, err = s.found(ctx, &q.request, q.After, q.Session, q.Limit,
			func(x *searchindex.Index, offset int) (bool, error) {
				hits, more, err := x.Search(ctx, what, &searchindex.SearchOptions{
					Session: q.Session, Cwd: q.Cwd, Limit: q.Limit, Offset: offset,
				})
				for _, h := range hits {
					doc.Matches = append(doc.Matches, api.MatchOf(h))
				}
				return more, err
			})
		return answer{doc: doc}, err
	})
	handle[promptQuery, promptList](s, operation{
		method: "GET", path: "/v1/prompts", id: "prompts", heavy: true,
		summary: "What users typed in all sessions and branches, newest first",
	}, func(ctx context.Context, q *promptQuery) (answer, error) {
		if _, err := searchindex.Parse(q.Q); err != nil && !q.Prefix {
			return answer{}, badInput("q", err)
		}
		doc := promptList{Prompts: []api.Prompt{}}
		var err error
		doc.Next, doc.Indexing, doc.Problems, err = s.found(ctx, &q.request, q.After, q.Session, q.Limit,
			func(x *searchindex.Index, offset int) (bool, error) {
				list, more, err := x.Recall(ctx, q.Q, &searchindex.RecallOptions{
					Session: q.Session, Cwd: q.Cwd, Prefix: q.Prefix, Limit: q.Limit, Offset: offset,
				})
				for _, p := range list {
					doc.Prompts = append(doc.Prompts, api.PromptOf(p))
				}
				return more, err
			})
		return answer{doc: doc}, err
	})
}

// errSearches is the error of a search that would be one too many.
var errSearches = errors.New("too many searches are under way")

// errNoWords is the error of a query that asks for nothing.
func errNoWords(other error) error {
	if other != nil {
		return nil
	}
	return errors.New("it has no words to search for")
}

// found looks for a page of results in the index of a request's store. The first page is of an index that was updated
// after the request arrived, or as far as it is now: then indexing is how far that is. Pages that follow are of the
// same index, as far as nothing else updates it.
func (s *Server) found(
	ctx context.Context, q *request, after, session string, limit int,
	look func(x *searchindex.Index, offset int) (more bool, err error),
) (next string, indexing *float64, unread []api.Problem, err error) {
	offset, err := offsetOf(after)
	if err != nil {
		return "", nil, nil, err
	}
	if t := seenOf(q.r).tenant; t != nil && !t.kept.Load() {
		if empty, err := isEmpty(ctx, q.on.Store); empty || err != nil {
			return "", nil, nil, err
		}
		q.find()
	}
	err = s.indexes.use(ctx, q.on.Store, q.r.PathValue("tenant"), func(x *index) error {
		if offset == 0 {
			report, done, err := x.updated(ctx, session, s.indexed)
			if err != nil {
				return err
			}
			indexing = done
			for _, p := range report.Problems {
				unread = append(unread, api.Describe(p).Answer())
			}
		}
		more, err := look(x.Index, offset)
		if more {
			next = cursor(strconv.Itoa(offset + limit))
		}
		return err
	})
	return next, indexing, unread, err
}

// isEmpty reports whether a store has no session.
func isEmpty(ctx context.Context, st *coppice.Store) (bool, error) {
	for _, err := range st.List(ctx, coppice.ListOptions{Limit: 1}) {
		return false, err
	}
	return true, nil
}

// offsetOf returns how many results the pages before had.
func offsetOf(after string) (int, error) {
	text, err := place("after", after)
	if err != nil || text == "" {
		return 0, err
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > searchindex.MaxCandidates {
		return 0, badInput("after", fmt.Errorf("%.40q is no cursor of this list", after))
	}
	return n, nil
}

// indexes are the full-text indexes of the stores, opened when they are first asked for.
type indexes struct {
	s      *Server
	mu     sync.Mutex
	open   map[*coppice.Store]*index
	closed bool
	using  sync.WaitGroup
}

// use runs f on the index of a store.
func (xs *indexes) use(ctx context.Context, st *coppice.Store, tenant string, f func(*index) error) error {
	x, err := xs.acquire(ctx, st, tenant)
	if err != nil {
		return err
	}
	defer xs.using.Done()
	return f(x)
}

// eraseWithin bounds the time that a deletion waits for the index. The next search does the rest.
const eraseWithin = 2 * time.Second

// erase takes a deleted session out of the index of its store, if there is one.
func (xs *indexes) erase(ctx context.Context, st *coppice.Store, tenant, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), eraseWithin)
	defer cancel()
	xs.mu.Lock()
	there := xs.open[st] != nil
	xs.mu.Unlock()
	if !there && xs.s.o.Index.File != nil {
		file := xs.s.o.Index.File(tenant)
		_, err := os.Stat(file)
		there = file != "" && err == nil
	}
	if !there {
		return
	}
	if err := xs.use(ctx, st, tenant, func(x *index) error { return x.Erase(ctx, id) }); err != nil {
		xs.s.o.Logger.WarnContext(ctx, "the index still holds a deleted session: the next search erases it",
			"session", id, "error", err.Error())
	}
}

func (xs *indexes) acquire(ctx context.Context, st *coppice.Store, tenant string) (*index, error) {
	xs.mu.Lock()
	defer xs.mu.Unlock()
	x := xs.open[st]
	switch {
	case xs.closed:
		return nil, errClosing
	case x == nil:
		file := ""
		if xs.s.o.Index.File != nil {
			file = xs.s.o.Index.File(tenant)
		}
		in, err := searchindex.Open(ctx, file)
		if err != nil && file != "" && ctx.Err() == nil {
			xs.s.o.Logger.WarnContext(ctx, "the index is kept in memory: its file cannot be used", "error", err.Error())
			in, err = searchindex.Open(ctx, "")
		}
		if err != nil {
			return nil, fmt.Errorf("open the index: %w", err)
		}
		x = newIndex(in, st, xs.s.o.Index.Shallow)
		xs.open[st] = x
	}
	xs.using.Add(1)
	return x, nil
}

// forget closes the index of a store. No request uses it.
func (xs *indexes) forget(st *coppice.Store) {
	xs.mu.Lock()
	x := xs.open[st]
	delete(xs.open, st)
	xs.mu.Unlock()
	if x == nil {
		return
	}
	if err := x.end(); err != nil {
		xs.s.o.Logger.Warn("an index was closed", "error", err.Error())
	}
}

// close refuses new users, ends updates, waits for the users that there are, and closes the indexes.
func (xs *indexes) close() error {
	xs.mu.Lock()
	xs.closed = true
	for _, x := range xs.open {
		x.cancel()
	}
	xs.mu.Unlock()
	xs.using.Wait()
	var errs []error
	for st, x := range xs.open {
		delete(xs.open, st)
		errs = append(errs, x.end())
	}
	return errors.Join(errs...)
}

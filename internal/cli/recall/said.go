package recall

import (
	"context"
	"os"
	"time"

	"github.com/coppice-go/coppice/history"
	"github.com/coppice-go/coppice/internal/cli/program"
	"github.com/coppice-go/coppice/internal/cli/term"
)

const (
	catchUp  = time.Second // how long the index may take to come up to date
	saidMost = 1000        // places that are looked at: the best ones
)

// Said gives the sessions in which a query was said, by their ids, each with a line around the place that fits best.
// It makes no index: where there is none it knows nothing. One that cannot be brought up to date soon answers with
// what it has, and one that fails is a remark: whoever asks has other ways to find a session.
func Said(ctx context.Context, a *program.App, st *program.Store, query, cwd string) (map[string]string, error) {
	q, err := history.Parse(query)
	if err != nil || q.Empty() {
		return nil, nil //nolint:nilerr // what is no query here is one of names
	}
	if file := a.HistoryFile(st.URL); file == "" || !exists(file) {
		return nil, nil
	}
	var hits []history.Hit
	err = withIndex(ctx, a, st, func(x *history.Index, _ string) error {
		soon, cancel := context.WithTimeout(ctx, catchUp)
		defer cancel()
		o := &history.UpdateOptions{Shallow: true} // what a summary on disk is behind by is not worth opening every session
		if _, err := x.Update(soon, st.Store, o); err != nil && ctx.Err() == nil {
			why := ""
			if soon.Err() == nil {
				why = ": " + term.Line(err.Error())
			}
			a.Note("what was said last is not looked at, `coppice search` brings the index up to date%s", why)
		}
		var err error
		hits, _, err = x.Search(ctx, q, &history.SearchOptions{Cwd: cwd, Limit: saidMost})
		return err
	})
	if err != nil && ctx.Err() == nil {
		a.Note("what was said is not looked at: %s", term.Line(err.Error()))
		return nil, nil
	}
	said := map[string]string{}
	for _, h := range hits {
		if _, better := said[h.Session]; !better {
			said[h.Session] = term.Line(h.Snippet)
		}
	}
	return said, ctx.Err()
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

package searchindex

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// RecallOptions narrow a recall.
type RecallOptions struct {
	Cwd     string // only of sessions with this working directory; "" = all
	Session string // only of this session; "" = all
	Prefix  bool   // the query is the beginning of the prompt in any case; else it is parsed by Parse
	Limit   int    // maximum number; 0 = all
	Offset  int    // number to skip first
}

// Prompt is a user message as typed, without control characters and the part beyond MaxText.
type Prompt struct {
	Text                string
	Session, Title, Cwd string
	Entry               string
	Ordinal             uint64
	Time                time.Time
	Uses                int      // number of identical prompts in all sessions; copies in forks do not count
	Branches            []string // as in Hit
	OnHead              bool
}

// Recall returns prompts, newest first. It omits prompts that equal the one before, and messages of agents in sessions
// that agents began. An empty text returns all.
func (x *Index) Recall(ctx context.Context, text string, o *RecallOptions) (list []Prompt, more bool, err error) {
	if o == nil {
		o = &RecallOptions{}
	}
	if o.Limit < 0 || o.Offset < 0 {
		return nil, false, x.fail("recall", errors.New("negative limit or offset"))
	}
	var q Query
	start := ""
	if o.Prefix {
		q, start = prefix(text)
	} else if q, err = Parse(text); err != nil {
		return nil, false, err
	}
	fits := func(text string) bool {
		if o.Prefix {
			return strings.HasPrefix(folded(text), start)
		}
		_, _, ok := q.Find(text)
		return ok
	}
	err = x.with(func(db *sql.DB) error {
		list, more, err = prompts(ctx, db, q, fits, o, x.newest())
		return err
	})
	return list, more, x.fail("recall", err)
}

var errEnough = errors.New("enough")

func prompts(
	ctx context.Context, db *sql.DB, q Query, fits func(string) bool, o *RecallOptions, newest int64,
) (list []Prompt, more bool, err error) {
	where, args := "1", []any{}
	and := func(cond string, arg any) {
		where += " AND " + cond
		args = append(args, arg)
	}
	if expr, _ := match(q); expr != "" {
		and("p.n IN (SELECT rowid FROM words WHERE words MATCH ?)", expr)
	}
	if o.Session != "" {
		and("s.id = ?", o.Session)
	}
	if o.Cwd != "" {
		and("s.cwd = ?", o.Cwd)
	}
	skip, last, some := o.Offset, "", false
	var sessions []int64 // of the prompts in list
	take := func(scan func(...any) error) error {
		var p Prompt
		var at, ordinal, session int64
		if err := scan(&session, &p.Session, &p.Title, &p.Cwd, &p.Entry, &ordinal, &at, &p.Text, &p.Uses); err != nil {
			return err
		}
		if some && p.Text == last || !fits(p.Text) {
			return nil
		}
		last, some = p.Text, true
		switch {
		case skip > 0:
			skip--
			return nil
		case o.Limit > 0 && len(list) == o.Limit:
			more = true
			return errEnough
		}
		p.Ordinal, p.Time = uint64(ordinal), fromMilli(at)
		sessions = append(sessions, session)
		list = append(list, p)
		return nil
	}
	const query = `SELECT s.n, s.id, s.title, s.cwd, e.id, e.ordinal, e.time, e.text,
		(SELECT count(DISTINCT twin.id) FROM prompt same JOIN entry twin ON twin.n = same.n WHERE same.hash = p.hash)
		FROM prompt p JOIN entry e ON e.n = p.n JOIN session s ON s.n = p.session WHERE `
	for _, times := range []string{" AND p.time<=?", " AND p.time>?"} { // entries with wrong times come last
		err = eachRow(ctx, db, take, query+where+times+" ORDER BY p.time DESC, p.n DESC", append(args, newest)...)
		if err != nil {
			break
		}
	}
	if err != nil && !errors.Is(err, errEnough) {
		return nil, false, fmt.Errorf("read prompts: %w", err)
	}
	lines := linesOf{}
	for i := range list {
		p := &list[i]
		if p.Branches, p.OnHead, err = lines.reach(ctx, db, sessions[i], p.Ordinal); err != nil {
			return nil, false, err
		}
	}
	return list, more, nil
}

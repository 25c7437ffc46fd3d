package searchindex

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// MaxCandidates is the maximum number of entries that a search compares with the query one by one. It does that for
// regular expressions, and for words of one or two letters, which the index does not have.
const MaxCandidates = 100_000

// SearchOptions narrow a search.
type SearchOptions struct {
	Session string // only in this session; "" = all
	Cwd     string // only in sessions with this working directory; "" = all
	Limit   int    // maximum number of hits; 0 = all
	Offset  int    // number of hits to skip first
}

// Hit is an entry that matches a query.
type Hit struct {
	Session, Title, Cwd string // Title: the session's name, if it has no title
	Entry, Type, Role   string
	Ordinal             uint64
	Time                time.Time
	Branches            []string // branches whose path contains the entry, at most 16; may be none
	OnHead              bool     // the path to the head contains the entry
	Snippet             string   // the text around the match, on one line
	Mark                [2]int   // position of the match in the snippet, in bytes
}

// Search returns the entries that match a query, among those that Update has read. They are ranked by bm25 if the index
// can evaluate the query, else newest first. more reports whether Limit or MaxCandidates left out further entries.
func (x *Index) Search(ctx context.Context, q Query, o *SearchOptions) (hits []Hit, more bool, err error) {
	if o == nil {
		o = &SearchOptions{}
	}
	if o.Limit < 0 || o.Offset < 0 {
		return nil, false, x.fail("search", errors.New("negative limit or offset"))
	}
	if q.Empty() {
		return nil, false, nil
	}
	err = x.with(func(db *sql.DB) error {
		list, full, err := candidates(ctx, db, q, o, x.newest())
		if err != nil {
			return err
		}
		some, over, err := compare(ctx, db, list, q, o)
		if err != nil {
			return err
		}
		more = over || full
		lines := linesOf{}
		for _, f := range some {
			if f.Branches, f.OnHead, err = lines.reach(ctx, db, f.session, f.Ordinal); err != nil {
				return err
			}
			hits = append(hits, f.Hit)
		}
		return nil
	})
	return hits, more, x.fail("search", err)
}

// candidates returns the numbers of entries that may match, best first: a superset of the matches. full reports whether
// MaxCandidates left some out. newest is the time in ms after which dates are taken for wrong, and ranked last.
func candidates(
	ctx context.Context, db *sql.DB, q Query, o *SearchOptions, newest int64,
) (list []int64, full bool, err error) {
	var where, from, order strings.Builder
	var args []any
	limit := MaxCandidates
	and := func(cond string, arg any) {
		if where.Len() > 0 {
			where.WriteString(" AND ")
		}
		where.WriteString(cond)
		args = append(args, arg)
	}
	expr, exact := match(q)
	if expr != "" {
		from.WriteString("words JOIN entry e ON e.n = words.rowid")
		order.WriteString("rank, ")
		and("words MATCH ?", expr)
	} else {
		from.WriteString("entry e")
	}
	if exact {
		if limit = o.Offset + o.Limit + 1; o.Limit == 0 {
			limit = -1
		}
	}
	if o.Session != "" || o.Cwd != "" {
		from.WriteString(" JOIN session s ON s.n = e.session")
	}
	if o.Session != "" {
		and("s.id = ?", o.Session)
	}
	if o.Cwd != "" {
		and("s.cwd = ?", o.Cwd)
	}
	for _, word := range short(q) {
		and(holdsWord+"(e.text, ?)", word)
	}
	if where.Len() == 0 {
		and("?", 1)
	}
	stmt := fmt.Sprintf("SELECT e.n FROM %s WHERE %s ORDER BY %s e.time>?, e.time DESC, e.n DESC LIMIT ?",
		from.String(), where.String(), order.String())
	err = eachRow(ctx, db, func(scan func(...any) error) error {
		var n int64
		err := scan(&n)
		list = append(list, n)
		return err
	}, stmt, append(args, newest, limit)...)
	if err != nil {
		return nil, false, fmt.Errorf("find: %w", err)
	}
	return list, !exact && len(list) == limit, nil
}

// found is a hit with the number of its session in the index.
type found struct {
	Hit
	session int64
}

// compare reads the candidates list in batches and returns those that match, at most o.Limit after the first o.Offset.
// more reports whether there is a further match.
func compare(
	ctx context.Context, db *sql.DB, list []int64, q Query, o *SearchOptions,
) (hits []found, more bool, err error) {
	const page = 64
	skip := o.Offset
	for len(list) > 0 {
		n := min(len(list), page)
		rows, err := read(ctx, db, list[:n])
		if err != nil {
			return nil, false, err
		}
		for _, r := range rows {
			snippet, mark, ok := q.Find(r.text)
			switch {
			case !ok:
				continue
			case skip > 0:
				skip--
				continue
			case o.Limit > 0 && len(hits) == o.Limit:
				return hits, true, nil
			}
			r.Snippet, r.Mark = snippet, mark
			hits = append(hits, r.found)
		}
		list = list[n:]
	}
	return hits, false, nil
}

// candidate is an entry with its text.
type candidate struct {
	found
	text string
}

// read returns the entries with the numbers in list, in the same order.
func read(ctx context.Context, db *sql.DB, list []int64) ([]candidate, error) {
	raw, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("select entries: %w", err)
	}
	out := make([]candidate, 0, len(list))
	err = eachRow(ctx, db, func(scan func(...any) error) error {
		var c candidate
		var at, ordinal int64
		err := scan(&c.session, &c.Session, &c.Title, &c.Cwd, &ordinal, &c.Entry, &c.Type, &c.Role, &at, &c.text)
		c.Ordinal, c.Time = uint64(ordinal), fromMilli(at)
		out = append(out, c)
		return err
	}, `SELECT s.n, s.id, s.title, s.cwd, e.ordinal, e.id, e.type, e.role, e.time, e.text
		FROM json_each(?) j JOIN entry e ON e.n = j.value JOIN session s ON s.n = e.session
		ORDER BY j.key`, string(raw))
	if err != nil {
		return nil, fmt.Errorf("read entries: %w", err)
	}
	return out, nil
}

// linesOf caches the paths of the branches of sessions, by the number of the session in the index.
type linesOf map[int64]*Lines

// reach returns the branches whose path contains an entry, and whether the path to the head contains it.
func (r linesOf) reach(ctx context.Context, db *sql.DB, session int64, ordinal uint64) ([]string, bool, error) {
	l, ok := r[session]
	if !ok {
		var err error
		if l, err = readLines(ctx, db, session); err != nil {
			return nil, false, err
		}
		r[session] = l
	}
	branches, onHead := l.Reach(ordinal)
	return branches, onHead, nil
}

// milli returns a time in Unix milliseconds; 0 for the zero time.
func milli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMilli(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

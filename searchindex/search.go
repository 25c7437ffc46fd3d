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

// MaxCandidates bounds how many entries a search compares one by one: for regular expressions, and for
// queries of words of one or two letters.
const MaxCandidates = 100_000

// SearchOptions narrow a search.
type SearchOptions struct {
	Session string // only this one; "" = all
	Cwd     string // only sessions of this working directory; "" = all
	Limit   int    // at most so many; 0 = all
	Offset  int    // so many are left out first
}

// Hit is an entry that was found.
type Hit struct {
	Session, Title, Cwd string // Title: its name, where it has no title too
	Entry, Type, Role   string
	Ordinal             uint64
	Time                time.Time
	Branches            []string // those that reach it, at most 16; none = no branch ends above it any more
	OnHead              bool     // it is on the way to the session's head
	Snippet             string   // one line around what was found
	Mark                [2]int   // the place of that in the snippet, in bytes
}

// Search returns the entries that a query finds, best first: by bm25 where the index can tell, else newest
// first. It looks at what Update has read. more: there are others, after the limit or after
// MaxCandidates.
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

// candidates returns the numbers of entries that may be what is looked for, best first. full: there were
// more.
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

// found is a hit with the number of its session.
type found struct {
	Hit
	session int64
}

// compare reads candidates, some at once, until it has enough that are really what is looked for.
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

// read returns entries by their numbers, in that order.
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

// linesOf are the lines of sessions, by their number in the index, as far as they were asked for.
type linesOf map[int64]*Lines

// reach returns which branches have an entry, and whether the head does.
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

// milli is a time as the index keeps it; 0 = none.
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

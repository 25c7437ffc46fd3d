package coppice

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/listing"
	"github.com/coppice-go/coppice/internal/parallel"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// Limits of a query.
const (
	queryAhead   = 8   // sessions that are open at once
	maxQueryText = 512 // bytes of a cursor
	maxMatch     = 32  // members that are compared
)

// QueryOptions choose entries of the sessions of a store. What is empty chooses all.
type QueryOptions struct {
	Sessions    []string          // ids of sessions; those that are not there are passed over
	Prefix      string            // of ids of sessions
	Cwd, Parent string            // as in ListOptions, and Meta
	Meta        map[string]string // of sessions

	Type   string         // of entries: "message", "custom", ...
	Custom string         // customType of entries; with Type "custom" it is looked up without reading them
	Match  map[string]any // members of the entry's line by dotted path, such as "data.source", and the JSON of each
	Before string         // only entries whose id sorts before this one, byte by byte: ids that begin with a time

	Newest bool   // newest first; else in append order
	Limit  int    // at most so many; 0 = all
	Cursor string // Match.Cursor of the last result of the page before
}

// Match is one entry that Query found.
type Match struct {
	Session string
	Entry   transcript.Entry
	Cursor  string // continues after this result
	Err     error  // why the session, or the rest of it, cannot be read; then there is no entry
}

// Query yields committed entries of many sessions, session by session in the order of their ids, which is that of
// their creation unless the ids are the caller's own, and within a session in append order; with Newest both the other
// way. A page after a cursor continues where the one before ended, whatever was appended meanwhile: it has no result
// twice, and passes over no entry that was there when the first page was read. A cursor is good for the same options,
// but for Limit.
//
// Entries are as they were stored: amendments are entries of their own here, and nothing is hidden.
//
// A session that is damaged does not end the query: it is a result with Err, which Limit does not count. Deleted ones
// are passed over. Results are yielded as they are read, from at most 8 sessions at once.
//
// It costs two listings unless Sessions names the sessions (with Cwd, Parent or Meta what List costs), then for each
// session that is looked at the read of its checkpoint, on a disk its log tail, and of its skeletons: one read for 64
// segments that are folded, one for each other segment. Bodies are read of entries alone that Type, Custom and Before
// leave, in pieces of 1 MiB. An entry by a known id is cheaper by Session.Entry.
func (s *Store) Query(ctx context.Context, o QueryOptions) iter.Seq2[Match, error] {
	return func(yield func(Match, error) bool) {
		q := &query{s: s, o: o, left: o.Limit, yield: yield}
		if err := q.run(ctx); err != nil {
			yield(Match{}, fail("query", "", err))
		}
	}
}

// query is one query that is under way.
type query struct {
	s     *Store
	o     QueryOptions
	match map[string][]byte // compact JSON by path
	after place
	left  int
	yield func(Match, error) bool
}

// place is where a page ended.
type place struct {
	session string
	ord     uint64 // of the last entry
	end     bool   // after all entries of the session
}

// opened is a session of a query that was read ahead.
type opened struct {
	s    *Session
	scan *scan
	err  error
}

func (q *query) run(ctx context.Context) error {
	if err := q.check(); err != nil {
		return err
	}
	ids, err := q.sessions(ctx)
	if err != nil {
		return err
	}
	for ahead := 1; len(ids) > 0; ahead = min(2*ahead, queryAhead) {
		part := ids[:min(ahead, len(ids))]
		ids = ids[len(part):]
		more, err := q.part(ctx, part)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// part reads some sessions ahead, all at once, and yields what they have. more: the caller has not had enough.
func (q *query) part(ctx context.Context, ids []string) (more bool, err error) {
	list := make([]opened, len(ids))
	defer func() {
		for i := range list {
			if list[i].s != nil {
				_ = list[i].s.Close() // it is read-only
			}
		}
	}()
	err = parallel.Each(ctx, len(ids), func(i int) error {
		list[i] = q.open(ctx, ids[i])
		return ctx.Err()
	})
	if err != nil {
		return false, err
	}
	for i := range list {
		if more, err := q.drain(ctx, ids[i], &list[i]); err != nil || !more {
			return false, err
		}
	}
	return true, nil
}

// open opens a session, finds its candidates and reads the first of them.
func (q *query) open(ctx context.Context, id string) (o opened) {
	s, err := q.s.session(id, &SessionOptions{ReadOnly: true})
	if err != nil {
		return opened{err: err}
	}
	j, err := journal.Open(ctx, s.cfg)
	if err != nil {
		return opened{err: err}
	}
	o.s = s
	s.begin(j)
	within := choice{
		typ: q.o.Type, custom: q.o.Custom, before: q.o.Before, newest: q.o.Newest, to: math.MaxUint64,
		match: q.match,
	}
	switch {
	case id != q.after.session:
	case q.o.Newest:
		within.to = q.after.ord
	default:
		within.from = q.after.ord + 1
	}
	if o.scan, o.err = o.s.scan(ctx, within); o.err == nil {
		o.err = o.scan.fill(ctx)
	}
	return o
}

// drain yields what a session has.
func (q *query) drain(ctx context.Context, id string, o *opened) (more bool, err error) {
	for err := o.err; ; {
		var e transcript.Entry
		ok := false
		if err == nil {
			e, ok, err = o.scan.next(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case errors.Is(err, fs.ErrNotExist) && o.s == nil: // deleted, or never there
			return true, nil
		case err != nil:
			m := Match{Session: id, Err: fail("query", id, err)}
			m.Cursor = q.cursor(place{session: id, end: true})
			return q.yield(m, nil), nil
		case !ok:
			return true, nil
		}
		if !q.yield(Match{Session: id, Entry: e, Cursor: q.cursor(place{session: id, ord: e.Ordinal})}, nil) {
			return false, nil
		}
		if q.left--; q.left == 0 {
			return false, nil
		}
	}
}

// sessions returns the ids of the sessions that are looked at, in order.
func (q *query) sessions(ctx context.Context) (ids []string, err error) {
	o := &q.o
	switch {
	case o.Cwd != "" || o.Parent != "" || len(o.Meta) > 0:
		for sum, err := range q.s.List(ctx, ListOptions{Cwd: o.Cwd, Parent: o.Parent, Meta: o.Meta, Exact: true}) {
			if err != nil {
				return nil, err
			}
			ids = append(ids, sum.ID)
		}
	case o.Sessions == nil:
		if ids, err = listing.IDs(ctx, q.s.b); err != nil {
			return nil, err
		}
	default:
		ids = slices.Clone(o.Sessions)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	wanted := map[string]bool{}
	for _, id := range o.Sessions {
		wanted[id] = true
	}
	if o.Newest {
		slices.Reverse(ids)
	}
	return slices.DeleteFunc(ids, func(id string) bool {
		if !strings.HasPrefix(id, o.Prefix) || o.Sessions != nil && !wanted[id] {
			return true
		}
		past := strings.Compare(q.after.session, id)
		if o.Newest {
			past = -past
		}
		return q.after.session != "" && (past > 0 || past == 0 && q.after.end)
	}), nil
}

// check refuses options that cannot be.
func (q *query) check() (err error) {
	o := &q.o
	switch {
	case o.Limit < 0:
		return errors.New("negative limit")
	case len(o.Match) > maxMatch:
		return layout.TooLarge("members to match", maxMatch, len(o.Match))
	}
	for _, id := range o.Sessions {
		if err := layout.ValidID(id); err != nil {
			return err
		}
	}
	q.match = make(map[string][]byte, len(o.Match))
	for _, path := range slices.Sorted(maps.Keys(o.Match)) {
		if q.match[path], err = json.Marshal(o.Match[path]); err != nil {
			return fmt.Errorf("match %s: %w", path, err)
		}
	}
	if o.Cursor != "" {
		q.after, err = parseCursor(o.Cursor, o.Newest)
	}
	return err
}

// cursor writes a place as text, with the direction in which it is used.
func (q *query) cursor(p place) string {
	text := fmt.Sprintf("%c%d:%s", direction(q.o.Newest), p.ord, p.session)
	if p.end {
		text = fmt.Sprintf("%c-:%s", direction(q.o.Newest), p.session)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

func direction(newest bool) byte {
	if newest {
		return 'n'
	}
	return 'a'
}

func parseCursor(text string, newest bool) (p place, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	at, id, ok := strings.Cut(string(raw), ":")
	if err != nil || !ok || len(text) > maxQueryText || len(at) < 2 || layout.ValidID(id) != nil {
		return p, layout.BadInput("cursor %.40q: it is none of a query", text)
	}
	if at[0] != direction(newest) {
		return p, layout.BadInput("cursor %.40q: it is of a query in the other direction", text)
	}
	if p.session = id; at[1:] == "-" {
		p.end = true
		return p, nil
	}
	if _, err := fmt.Sscanf(at[1:], "%d", &p.ord); err != nil || fmt.Sprint(p.ord) != at[1:] {
		return p, layout.BadInput("cursor %.40q: it is none of a query", text)
	}
	return p, nil
}

const queryBytes = 1 << 20 // lines that a query reads at once, unless one is longer

// choice chooses entries of a session.
type choice struct {
	typ    string            // "" = all
	custom string            // customType; "" = all
	before string            // only ids that sort before this one; "" = all
	match  map[string][]byte // compact JSON by path that the body has; nil = all
	newest bool              // newest first
	// only ordinals from from to below to
	from, to uint64
}

// scan is the result of a query that is still being read: the durable entries as of one moment. It belongs to one
// goroutine at a time.
type scan struct {
	of    *Session
	st    *state.State
	q     choice
	ords  []uint64 // candidates that are not read yet, ascending
	sizes []uint32 // of their lines
	chunk int      // candidates that are read at once
	ready []transcript.Entry
}

// scan finds the candidates of a query by the columns of skeletons, 12 bytes of memory each. It reads no bodies.
func (s *Session) scan(ctx context.Context, q choice) (*scan, error) {
	sc := &scan{of: s, st: s.state(), q: q, chunk: readFirst}
	from, to := q.from, min(q.to, sc.st.Next)
	if from >= to {
		return sc, nil
	}
	for sk, err := range s.j.Skeletons(ctx, sc.st, from) {
		if err != nil {
			return nil, err
		}
		sc.rows(sk, from, to)
		if sk.First()+uint64(sk.Len()) >= to {
			break
		}
	}
	return sc, nil
}

// rows adds the rows of a skeleton that may match.
func (sc *scan) rows(sk *codec.Skeleton, from, to uint64) {
	kinds := make([]bool, sk.Kinds())
	for k := range kinds {
		typ, _ := sk.KindAt(k)
		kinds[k] = sc.q.typ == "" || typ == sc.q.typ
	}
	custom := ""
	if sc.q.custom != "" {
		custom = transcript.RowOf(transcript.Line{Type: "custom", Raw: customLine(sc.q.custom)}, codec.NoParent).Preview
	}
	var id []byte
	for i := range sk.Len() {
		ord := sk.First() + uint64(i)
		if ord < from || ord >= to || !kinds[sk.KindIndex(i)] {
			continue
		}
		if custom != "" && sc.q.typ == "custom" {
			if have := sk.Preview(i); have != "" && have != custom {
				continue
			}
		}
		if sc.q.before != "" {
			if id = sk.AppendID(id[:0], i); bytes.Compare(id, []byte(sc.q.before)) >= 0 {
				continue
			}
		}
		sc.ords, sc.sizes = append(sc.ords, ord), append(sc.sizes, sk.Size(i))
	}
}

// customLine is as much of a line as its preview needs.
func customLine(kind string) []byte {
	return rawjson.WithField([]byte("{}"), "customType", rawjson.AppendString(nil, kind))
}

func customOf(e transcript.Entry) string { return rawjson.Text(rawjson.Field(e.Raw, "customType")) }

// next returns the next entry that matches; false = there is none.
func (sc *scan) next(ctx context.Context) (transcript.Entry, bool, error) {
	for len(sc.ready) == 0 {
		if len(sc.ords) == 0 {
			return transcript.Entry{}, false, nil
		}
		if err := sc.fill(ctx); err != nil {
			return transcript.Entry{}, false, err
		}
	}
	e := sc.ready[0]
	sc.ready = sc.ready[1:]
	return e, true, nil
}

// fill reads the next candidates, if no entries are ready.
func (sc *scan) fill(ctx context.Context) error {
	if len(sc.ready) > 0 || len(sc.ords) == 0 {
		return nil
	}
	for l, err := range sc.of.j.Lines(ctx, sc.st, sc.take()) {
		if err != nil {
			return err
		}
		if l.Commit {
			continue
		}
		e, err := stored(l)
		if err != nil {
			return err
		}
		if sc.q.custom != "" && customOf(e) != sc.q.custom || !rawjson.Matches(e.Raw, sc.q.match) {
			continue
		}
		if e.Raw, err = sc.of.images.text(ctx, sc.st, e.Raw); err != nil {
			return err
		}
		sc.ready = append(sc.ready, e)
	}
	if sc.q.newest {
		slices.Reverse(sc.ready)
	}
	return nil
}

// take returns the candidates that are read next, ascending.
func (sc *scan) take() (ords []uint64) {
	n, size := 0, 0
	for n < min(sc.chunk, len(sc.ords)) {
		at := n
		if sc.q.newest {
			at = len(sc.ords) - 1 - n
		}
		if size += int(sc.sizes[at]); n > 0 && size > queryBytes {
			break
		}
		n++
	}
	sc.chunk = min(2*sc.chunk, readMost)
	if sc.q.newest {
		at := len(sc.ords) - n
		ords, sc.ords, sc.sizes = sc.ords[at:], sc.ords[:at], sc.sizes[:at]
	} else {
		ords, sc.ords, sc.sizes = sc.ords[:n], sc.ords[n:], sc.sizes[n:]
	}
	return ords
}

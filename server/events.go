package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
)

// Bounds of what a stream keeps of a session for all of its subscribers together. Who is further behind reads the rest
// from the store.
const (
	maxRecent      = 64
	maxRecentBytes = 8 << 20
)

// maxStream is how long a stream lasts. Its client connects again, without gap or repeat, and its rights are checked
// again.
const maxStream = 10 * time.Minute

// errStreams is the error of a stream of events that would be one too many.
var errStreams = errors.New("too many streams of events")

// Event is a commit as followers of a session receive it.
type Event struct {
	api.Commit
	Entries []json.RawMessage `json:"entries" doc:"the entries that the commit made durable, as they were appended"`
	State   json.RawMessage   `json:"state" doc:"RFC 6902 patch from the state before the commit to the one after it"`

	Docs map[string]json.RawMessage `json:"docs,omitempty" doc:"documents that it changed, by name; null = removed"`
}

// event is an Event, encoded once for all subscribers.
type event struct {
	seq uint64
	raw []byte // JSON
}

// streams are the feeds of the sessions that someone follows.
type streams struct {
	s *Server

	mu      sync.Mutex
	feeds   map[writerKey]*feed
	ended   bool
	done    chan struct{} // closed when ended
	running sync.WaitGroup
}

func newStreams(s *Server) *streams {
	return &streams{s: s, feeds: map[writerKey]*feed{}, done: make(chan struct{})}
}

// end ends every stream, and refuses new ones.
func (st *streams) end() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.ended {
		return
	}
	st.ended = true
	close(st.done)
	for _, f := range st.feeds {
		f.cancel()
	}
}

// wait returns when every feed has ended, which they do after end.
func (st *streams) wait() { st.running.Wait() }

// feed is the one watch of a session, which all its subscribers share.
type feed struct {
	key    writerKey
	cancel context.CancelFunc
	users  int // by streams.mu

	mu      sync.Mutex
	from    uint64 // commits above it are in recent, or were
	recent  []event
	bytes   int
	partial []byte
	version uint64 // of partial
	err     error
	changed chan struct{} // closed at every change, and replaced
}

// join counts a subscriber of a session. The first one starts the watch.
func (st *streams) join(key writerKey, h *coppice.Session) (*feed, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.ended {
		return nil, errClosing
	}
	f := st.feeds[key]
	if f == nil {
		ctx, cancel := context.WithCancel(context.Background())
		f = &feed{key: key, cancel: cancel, from: h.Head().Seq, changed: make(chan struct{})}
		st.feeds[key] = f
		st.running.Go(func() { f.run(ctx) })
	}
	f.users++
	return f, nil
}

// leave ends what join began. The last subscriber ends the watch.
func (st *streams) leave(f *feed) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if f.users--; f.users == 0 {
		f.cancel()
		if st.feeds[f.key] == f {
			delete(st.feeds, f.key)
		}
	}
}

// run watches a session until ctx is done.
func (f *feed) run(ctx context.Context) {
	defer f.cancel()
	err := follow(ctx, f.key, f.from, true, func(e event, partial []byte) bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		if e.raw == nil {
			f.partial = partial
			f.version++
		} else {
			f.recent = append(f.recent, e)
			f.bytes += len(e.raw)
			for len(f.recent) > 1 && (len(f.recent) > maxRecent || f.bytes > maxRecentBytes) {
				f.bytes -= len(f.recent[0].raw)
				f.from = f.recent[0].seq
				f.recent = append([]event(nil), f.recent[1:]...) // the array would keep what was dropped
			}
		}
		f.wake()
		return true
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err = err; err == nil {
		f.err = errClosing
	}
	f.wake()
}

// wake signals all subscribers that something changed. f.mu is held.
func (f *feed) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// news is what a subscriber has not seen.
type news struct {
	events  []event
	gap     bool // the feed does not have what comes next: it is in the store
	partial []byte
	version uint64
	err     error
	changed <-chan struct{}
}

func (f *feed) since(after uint64) news {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := news{partial: f.partial, version: f.version, err: f.err, changed: f.changed, gap: after < f.from}
	for i, e := range f.recent {
		if e.seq > after && !n.gap {
			n.events = f.recent[i:len(f.recent):len(f.recent)]
			break
		}
	}
	return n
}

// follow yields the commits of a session after a seq, and with partials what is streamed (an event without bytes).
func follow(
	ctx context.Context, key writerKey, after uint64, partials bool, yield func(e event, partial []byte) bool,
) error {
	h, err := key.store.Open(ctx, key.id, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = h.Close() }() // it wrote nothing
	watch := h.Watch
	if partials {
		watch = h.WatchPartial
	}
	for c, err := range watch(ctx, after) {
		if err != nil {
			return err
		}
		if c.Commit.Commit == "" {
			if !yield(event{}, c.Partial) {
				return nil
			}
			continue
		}
		e, err := eventOf(ctx, c)
		if err != nil {
			return err
		}
		if !yield(e, nil) {
			return nil
		}
	}
	return nil
}

// eventOf encodes a commit.
func eventOf(ctx context.Context, c coppice.Change) (event, error) {
	patch, err := c.StatePatch(ctx)
	if err != nil {
		return event{}, err
	}
	docs, err := c.Docs(ctx)
	if err != nil {
		return event{}, err
	}
	raw, err := api.Marshal(Event{
		Commit: api.CommitOf(c.Commit), Entries: api.Lines(c.Entries), State: patch, Docs: docs,
	})
	return event{c.Commit.Seq, raw}, err
}

// eventsQuery is the parameters of a stream of events.
type eventsQuery struct {
	request
	ID    string `path:"id" maxLength:"128" doc:"the session's id"`
	After string `query:"after" doc:"the seq after which to begin; default the newest. Last-Event-ID goes before it"`
	Wait  int    `query:"wait" minimum:"1" maximum:"60" doc:"instead of a stream, wait so many seconds for commits"`
	Last  string `header:"Last-Event-ID" doc:"the id of the last event that was received: it goes before after"`
}

// events is the answer to a long poll.
type events struct {
	Commits []json.RawMessage `json:"commits" doc:"as the data of the events commit; empty = none came"`
	Next    string            `json:"next" doc:"after of the next request"`
	Reset   bool              `json:"reset,omitempty" doc:"after is of no commit: read the session again, then go on"`
}

func (s *Server) describeEvents() {
	handle[eventsQuery, events](s, operation{
		method: "GET", path: "/v1/sessions/{id}/events", id: "events",
		summary: "Commits as they come, as server-sent events or by a long poll",
		text: "Events: commit (data is an Event, id its seq), partial (what is streamed now, null = nothing), reset " +
			"(what was asked for is gone: read the session again). Only commits have an id, and so has the " +
			"beginning, without an event. Last-Event-ID resumes.",
		types: []string{"text/event-stream"},
	}, s.events)
}

func (s *Server) events(ctx context.Context, q *eventsQuery) (answer, error) {
	h, err := q.on.Store.Open(ctx, q.id, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = h.Close() }() // it wrote nothing
	after := h.Head().Seq
	text := q.Last
	if text == "" {
		text = q.After
	}
	if text != "" {
		if after, err = seqOf("after", text); err != nil {
			return answer{}, err
		}
	}
	reset := after > h.Head().Seq
	if reset {
		after = h.Head().Seq
	}
	if q.r.Method == http.MethodHead {
		return answer{stream: func(w http.ResponseWriter, _ *http.Request) error {
			streamHeaders(w.Header(), q.Wait > 0)
			w.WriteHeader(http.StatusOK)
			return nil
		}}, nil
	}
	key := writerKey{q.on.Store, q.id}
	give, err := s.subscribers.take(ctx, q.on.Tenant, 1)
	if err != nil {
		return answer{}, err
	}
	f, err := s.streams.join(key, h)
	if err != nil {
		give()
		return answer{}, err
	}
	return answer{stream: func(w http.ResponseWriter, r *http.Request) error {
		defer give()
		defer s.streams.leave(f)
		c := &client{s: s, f: f, after: after, w: w}
		if q.Wait > 0 {
			return c.poll(r.Context(), time.Duration(q.Wait)*time.Second, reset)
		}
		c.stream(r.Context(), reset)
		return nil
	}}, nil
}

// streamHeaders sets the headers of a stream, or of the answer to a long poll.
func streamHeaders(h http.Header, poll bool) {
	h.Set("Cache-Control", "no-store")
	if h.Set("Content-Type", "application/json"); !poll {
		h.Set("Content-Type", "text/event-stream")
		h.Set("X-Accel-Buffering", "no")
	}
}

// client is a subscriber of a session.
type client struct {
	s       *Server
	f       *feed
	w       http.ResponseWriter
	after   uint64
	version uint64 // of the partial output that was sent last
}

// next returns what the client has not seen: from the feed, else from the store.
func (c *client) next(ctx context.Context) (news, error) {
	n := c.f.since(c.after)
	if !n.gap {
		return n, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	size := 0
	until := c.f.floor()
	err := follow(ctx, c.f.key, c.after, false, func(e event, _ []byte) bool {
		n.events = append(n.events, e)
		size += len(e.raw)
		return e.seq < until && len(n.events) < maxRecent && size < maxRecentBytes
	})
	return n, err
}

// floor is the seq above which the feed has every commit.
func (f *feed) floor() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.from
}

// stream sends events until the client leaves or reads too slowly, the server ends, or the time of a stream is over.
// The client connects again.
func (c *client) stream(ctx context.Context, reset bool) {
	streamHeaders(c.w.Header(), false)
	c.w.WriteHeader(http.StatusOK)
	begin := "retry: 1000\n"
	if reset {
		begin += "\nevent: reset\ndata: null\n\n" // before the id: a client with the id does not ask for a reset again
	}
	if !c.send(begin + fmt.Sprintf("id: %d\n\n", c.after)) { // from here on a client that is cut off knows where it was
		return
	}
	beat := time.NewTicker(c.s.o.Heartbeat)
	defer beat.Stop()
	over := time.NewTimer(c.s.streamed)
	defer over.Stop()
	for {
		n, err := c.next(ctx)
		if err != nil {
			return
		}
		for _, e := range n.events {
			if !c.send(fmt.Sprintf("event: commit\nid: %d\ndata: %s\n\n", e.seq, e.raw)) {
				return
			}
			c.after = e.seq
		}
		if n.gap {
			continue
		}
		if n.version != c.version {
			c.version = n.version
			partial := n.partial
			if partial == nil {
				partial = []byte("null")
			}
			if !c.send(fmt.Sprintf("event: partial\ndata: %s\n\n", partial)) {
				return
			}
		}
		if n.err != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-c.s.streams.done:
			return
		case <-over.C:
			return
		case <-n.changed:
		case <-beat.C:
			if !c.send(": \n\n") {
				return
			}
		}
	}
}

// send writes a piece of a stream; false = the client is gone, or has not read for too long.
func (c *client) send(text string) bool {
	if _, err := c.w.Write([]byte(text)); err != nil {
		return false
	}
	return http.NewResponseController(c.w).Flush() == nil
}

// poll answers with the commits that there are, or with the first that comes within a time; with a reset at once.
func (c *client) poll(ctx context.Context, wait time.Duration, reset bool) error {
	late := time.NewTimer(wait)
	defer late.Stop()
	doc := events{Commits: []json.RawMessage{}, Reset: reset}
	for len(doc.Commits) == 0 && !reset {
		n, err := c.next(ctx)
		if err != nil {
			return err
		}
		for _, e := range n.events {
			doc.Commits = append(doc.Commits, e.raw)
			c.after = e.seq
		}
		if len(n.events) > 0 {
			break
		}
		if n.err != nil {
			return n.err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.s.streams.done:
			return errClosing
		case <-n.changed:
			continue
		case <-late.C:
		}
		break
	}
	doc.Next = strconv.FormatUint(c.after, 10)
	streamHeaders(c.w.Header(), true)
	return answer{doc: doc}.write(c.w, &http.Request{Method: http.MethodGet})
}

package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/internal/proof"
	"github.com/coppice-go/coppice/internal/trace"
	"github.com/coppice-go/coppice/server"
	"github.com/coppice-go/coppice/transcript"
)

const (
	followed = "followed"
	cutEvery = 2 * time.Second // in a soak; otherwise connections are cut after a number of bytes
	cutBytes = 30_000          // at most; a turn is an event of 500 to 3,500
	minute   = time.Minute
)

// followers is a session that two servers serve from one folder, and its followers.
type followers struct {
	t     *testing.T
	r     *proof.Report
	seed  uint64
	addrs []string
	ctx   context.Context // ends with the first violation
	stop  context.CancelFunc
	total atomic.Uint64 // number of commits; 0 = unknown yet
	below trace.Backend // of the first server

	mu   sync.Mutex
	cuts int
	seen map[uint64]string // by seq: the events of the first follower
}

// TestProofServeFollow cuts the connections of followers, at any byte of the stream, or in a soak every two seconds for
// a minute. They continue with Last-Event-ID, at either of two servers. Each sees every commit once, in order, with the
// stored entries.
func TestProofServeFollow(t *testing.T) {
	r := proof.Begin(t, "serve-follow")
	f := &followers{t: t, r: r, seed: rand.Uint64(), seen: map[uint64]string{}}
	f.ctx, f.stop = context.WithCancel(t.Context())
	defer f.stop()
	t.Logf("seed %d", f.seed)
	dir := t.TempDir()
	first := f.serve(dir)
	f.serve(dir)
	c := &client{}
	if err := c.create(f.addrs[0], followed); err != nil {
		t.Fatal(err)
	}
	c.close()
	let := f.hold()
	var all sync.WaitGroup
	for i := range pick(t, 3, 4, 8, 8) {
		all.Go(func() { f.follow(rand.New(rand.NewPCG(f.seed, uint64(i)))) })
	}
	total := f.write(pick(t, 100, 200, 5000, 0))
	f.total.Store(total)
	f.last() // followers that have seen all other commits learn that it is over
	all.Wait()
	f.late(total)
	let()
	f.check(first)
	r.Figure("commits", int(total))
	r.Figure("cuts", f.cuts)
}

// hold follows at both servers without cuts, so that their feeds exist until let is called.
func (f *followers) hold() (let func()) {
	var holding sync.WaitGroup
	var conns []net.Conn
	for _, addr := range f.addrs {
		conn, err := (&net.Dialer{Timeout: patience}).DialContext(f.ctx, "tcp", addr)
		if err != nil {
			f.t.Fatal(err)
		}
		conns = append(conns, conn)
		_, err = io.WriteString(conn, "GET /v1/sessions/"+followed+"/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if err != nil {
			f.t.Fatal(err)
		}
		in := bufio.NewReader(conn)
		if _, err := in.ReadString('\n'); err != nil { // the answer begins after the feed
			f.t.Fatal(err)
		}
		holding.Go(func() { _, _ = io.Copy(io.Discard, in) })
	}
	return func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
		holding.Wait()
	}
}

// late follows from the beginning, after the end, at a server whose feed has had every commit, and sees them all.
// Events that the feed has dropped are read from the store, which costs more reads.
func (f *followers) late(total uint64) {
	reads := func(last uint64) int {
		before := f.below.IO().Get
		if got, err := f.connection(f.addrs[0], last, 1<<30); err != nil || got != total {
			f.broken("who comes late has seen %d of %d: %v", got, total, err)
		}
		return f.below.IO().Get - before
	}
	if one, all := reads(total-1), reads(0); all <= one {
		f.broken("the feed has forgotten nothing: %d reads for the last commit, %d for all %d", one, all, total)
	}
}

func (f *followers) broken(format string, args ...any) {
	f.r.Violation(fmt.Sprintf("seed %d: ", f.seed)+format, args...)
	f.stop()
}

// serve starts a server on a folder, which polls for the other's commits continuously.
func (f *followers) serve(dir string) *coppice.Store {
	t := f.t
	b, err := local.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := trace.New(b)
	if f.below == nil {
		f.below = seen
	}
	st, err := coppice.New(seen, &coppice.Options{Poll: 2 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(server.Options{Store: st})
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &http.Server{Handler: srv, ReadHeaderTimeout: patience}
	var running sync.WaitGroup
	running.Go(func() { _ = h.Serve(l) })
	t.Cleanup(func() {
		srv.EndStreams()
		_ = h.Close()
		running.Wait()
		for _, c := range []io.Closer{srv, st, b} {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	f.addrs = append(f.addrs, l.Addr().String())
	return st
}

// write commits a number of turns, by both servers; 0 = for a minute at most, or for the length of the soak. It returns
// the seq of the last commit to come.
func (f *followers) write(turns int) uint64 {
	rng := rand.New(rand.NewPCG(f.seed, 1<<21))
	c := [2]client{}
	defer c[0].close()
	defer c[1].close()
	begun, span := time.Now(), min(soaked(f.t), minute)
	var seq uint64
	for n := 0; (n < turns || turns == 0 && time.Since(begun) < span) && f.ctx.Err() == nil; n++ {
		at := rng.IntN(2)
		body := fmt.Sprintf(`{"entries":[{"role":"user","content":%q}],"state":{"turn":%d}}`,
			fill(fmt.Sprintf("turn %d ", n), 50+rng.IntN(3000)), n)
		r, err := c[at].must(http.StatusOK, f.addrs[at], http.MethodPost, "/v1/sessions/"+followed+"/commits", body,
			"If-Match: *")
		if err != nil {
			f.t.Errorf("turn %d: %v", n, err)
			break
		}
		if seq, err = strconv.ParseUint(field(r.body, "seq"), 10, 64); err != nil {
			f.t.Errorf("turn %d: %v", n, err)
			break
		}
		if turns == 0 {
			time.Sleep(retryPause) // followers use the same two cores
		}
	}
	return seq + 1
}

// last makes the final commit.
func (f *followers) last() {
	c := &client{}
	defer c.close()
	if _, err := c.must(http.StatusOK, f.addrs[0], http.MethodPost, "/v1/sessions/"+followed+"/commits",
		`{"state":"over"}`, "If-Match: *"); err != nil {
		f.t.Error(err)
	}
}

// field returns a number of a flat JSON document.
func field(doc []byte, name string) string {
	var m map[string]json.RawMessage
	_ = json.Unmarshal(doc, &m) // a missing field is 0
	return string(m[name])
}

// follow reads events until the last commit.
func (f *followers) follow(rng *rand.Rand) {
	var last uint64
	begun := time.Now()
	for f.ctx.Err() == nil {
		if total := f.total.Load(); total > 0 && last >= total {
			return
		}
		before := last
		var err error
		if last, err = f.connection(f.addrs[rng.IntN(2)], last, 1+rng.IntN(cutBytes)); err != nil {
			f.broken("after %d: %v", last, err)
			return
		}
		f.r.Explored(int(last - before))
		if last > before {
			begun = time.Now()
		} else if time.Since(begun) > 2*patience {
			f.broken("no event after %d for %v", last, 2*patience)
			return
		}
	}
}

// connection follows from a seq until the connection is cut: after a number of bytes, or in a soak after two seconds.
// It returns the last seq whose event arrived whole.
func (f *followers) connection(addr string, last uint64, size int) (uint64, error) {
	conn, err := (&net.Dialer{Timeout: patience}).DialContext(f.ctx, "tcp", addr)
	if f.ctx.Err() != nil {
		return last, nil
	}
	if err != nil {
		return last, err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(f.ctx, func() { _ = conn.Close() })()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return last, err
	}
	if _, err := fmt.Fprintf(conn, "GET /v1/sessions/%s/events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: %d\r\n\r\n",
		followed, last); err != nil {
		return last, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if f.ctx.Err() != nil {
		return last, nil
	}
	if err != nil {
		return last, err
	}
	// The body is not closed: Close would read the stream to its end.
	if resp.StatusCode != http.StatusOK {
		return last, fmt.Errorf("%w: %s", errStatus, resp.Status)
	}
	in := io.LimitReader(resp.Body, int64(size))
	if soaked(f.t) > 0 {
		in = resp.Body
		defer time.AfterFunc(cutEvery, func() { _ = conn.Close() }).Stop()
	}
	f.mu.Lock()
	f.cuts++
	f.mu.Unlock()
	return f.events(bufio.NewReader(in), last)
}

// events reads a stream until it is cut. An incomplete event is dropped.
func (f *followers) events(in *bufio.Reader, last uint64) (uint64, error) {
	var kind, id, data string
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return last, nil // cut
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch {
		case name == "event":
			kind = value
		case name == "id":
			id = value
		case name == "data":
			data = value
		case line == "\n" && kind == "reset":
			return last, fmt.Errorf("%w: the server begins anew", errStatus)
		case line == "\n" && kind == "commit":
			if id != strconv.FormatUint(last+1, 10) {
				return last, fmt.Errorf("%w: the event after %d is %s", errStatus, last, id)
			}
			last++
			if err := f.told(last, data); err != nil {
				return last, err
			}
			if last == f.total.Load() {
				return last, nil
			}
			kind, id, data = "", "", ""
		}
	}
}

// told compares an event with those of other followers.
func (f *followers) told(seq uint64, data string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if was, ok := f.seen[seq]; ok && was != data {
		return fmt.Errorf("%w: event %d is %.300s, and was %.300s", errStatus, seq, data, was)
	}
	f.seen[seq] = data
	return nil
}

// check compares the events of followers with the stored session.
func (f *followers) check(st *coppice.Store) {
	s, err := st.Open(f.t.Context(), followed, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	n := uint64(0)
	for c, err := range s.Watch(f.t.Context(), 0) {
		if err != nil {
			f.broken("read: %v", err)
			return
		}
		n++
		var told struct {
			Seq     uint64
			Commit  string
			Entries []json.RawMessage
		}
		if err := json.Unmarshal([]byte(f.seen[c.Commit.Seq]), &told); err != nil {
			f.broken("event %d: %v: %.300s", c.Commit.Seq, err, f.seen[c.Commit.Seq])
		}
		if told.Seq != c.Commit.Seq || told.Commit != c.Commit.Commit || !sameEntries(told.Entries, c.Entries) {
			f.broken("commit %d, %s, was told as %.300s", c.Commit.Seq, c.Commit.Commit, f.seen[c.Commit.Seq])
		}
		if c.Commit.Seq == f.total.Load() {
			break
		}
	}
	if n != f.total.Load() || uint64(len(f.seen)) != n || s.Head().Seq != n {
		f.broken("%d commits are stored, the head is %d, %d were told, %d were made", n, s.Head().Seq, len(f.seen),
			f.total.Load())
	}
}

func sameEntries(told []json.RawMessage, stored []transcript.Entry) bool {
	if len(told) != len(stored) {
		return false
	}
	for i, e := range stored {
		if !bytes.Equal(told[i], e.Raw) {
			return false
		}
	}
	return true
}

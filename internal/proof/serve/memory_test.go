package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/internal/proof"
	"github.com/coppice-go/coppice/internal/trace"
	"github.com/coppice-go/coppice/server"
)

const (
	mostPerFollower = 64 << 10 // bytes of heap and stacks
	messages        = 50       // of the context of a session open for writing, of 400 bytes each
)

// held is the resources of a server, and the requests to its store.
type held struct {
	Heap, Stacks int // bytes in use after a collection, including unused parts of spans
	Files        int
	IO           backend.IO
}

func (h held) bytes() int { return h.Heap + h.Stacks }

// measured is a server on a folder like `coppice serve`, but without a log. It answers each line on its standard input
// with its resources, and ends with it.
func measured(dir string) error {
	b, err := local.Open(dir, nil)
	if err != nil {
		return err
	}
	counted := trace.New(b)
	// A day: the requests of a watch are counted, without its polls.
	st, err := coppice.New(counted, &coppice.Options{Poll: 24 * time.Hour})
	if err != nil {
		return err
	}
	srv, err := server.New(server.Options{Store: st, Idle: time.Hour})
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	h := &http.Server{Handler: srv, ReadHeaderTimeout: patience}
	var running sync.WaitGroup
	running.Go(func() { _ = h.Serve(l) })
	fmt.Printf("serving http://%s\n", l.Addr())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		for range 3 { // a sync.Pool is empty after the second collection, and finalizers run before the third
			runtime.GC()
		}
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		files, _ := os.ReadDir("/proc/self/fd") // empty on systems without /proc
		doc, err := json.Marshal(held{int(mem.HeapInuse), int(mem.StackInuse), len(files), counted.IO()})
		if err != nil {
			return err
		}
		fmt.Printf("%s\n", doc)
	}
	srv.EndStreams()
	_ = h.Close()
	running.Wait()
	return errors.Join(srv.Close(), st.Close(), b.Close())
}

// holds requests the resources of a measured server.
func (p *process) holds(t *testing.T) (h held) {
	t.Helper()
	if _, err := fmt.Fprintln(p.in); err != nil {
		t.Fatal(err)
	}
	line, err := p.out.ReadString('\n')
	if err == nil {
		err = json.Unmarshal([]byte(line), &h)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, &p.said)
	}
	return h
}

// TestProofServeMemory measures the memory of a server for a thousand followers of a session, and for the sessions open
// for writing: heap and stacks of its process, without clients, with idle connections that the client keeps open.
// Buffers of the kernel are not counted. A commit is read once, for any number of followers.
func TestProofServeMemory(t *testing.T) {
	r := proof.Begin(t, "serve-memory")
	many := pick(t, 100, 1000, 1000, 1000)
	p, err := launch(t.Context(), "measured", t.TempDir())
	if err == nil {
		err = p.ready()
	}
	if err != nil {
		t.Fatal(err)
	}
	c := &client{}
	defer c.close()
	if err := c.create(p.addr, followed); err != nil {
		t.Fatal(err)
	}
	commit := func(session, body string) {
		t.Helper()
		if _, err := c.must(http.StatusOK, p.addr, http.MethodPost, "/v1/sessions/"+session+"/commits", body,
			"If-Match: *"); err != nil {
			t.Fatal(err)
		}
	}
	const turn = `{"entries":[{"role":"user","content":"hello"}]}`
	commit(followed, turn)

	list := &listeners{t: t, r: r, addr: p.addr}
	defer list.close()
	list.join(1)
	one := list.cost(p, func() { commit(followed, turn) })
	before := p.holds(t)
	list.join(many)
	list.cost(p, func() { commit(followed, turn) }) // each has had an event, and has its buffers
	all := list.cost(p, func() { commit(followed, turn) })
	after := p.holds(t)
	each := (after.bytes() - before.bytes()) / many
	r.Figure("bytes/follower", each)
	r.Figure("heap", (after.Heap-before.Heap)/many)
	r.Figure("stacks", (after.Stacks-before.Stacks)/many)
	if many >= 1000 && each > mostPerFollower {
		r.Violation("%d followers hold %d bytes each, want at most %d", many, each, mostPerFollower)
	}
	if reads := all.Get + all.Stat + all.List; reads > one.Get+one.Stat+one.List+2 {
		r.Violation("a commit with %d followers costs %+v, and with one %+v", many, all, one)
	}
	r.Explored(many)
	list.close()

	sessions := many / 4
	start := p.holds(t)
	text := fill("", 400)
	line := strings.Repeat(fmt.Sprintf(`{"role":"user","content":%q},`, text), messages)
	body := fmt.Sprintf(`{"entries":[%s],"state":{"note":%q}}`, strings.TrimSuffix(line, ","), fill("", 900))
	for i := range sessions {
		if err := c.create(p.addr, sessionOf(i)); err != nil {
			t.Fatal(err)
		}
		commit(sessionOf(i), body)
	}
	open := p.holds(t)
	r.Figure("bytes/session", (open.bytes()-start.bytes())/sessions)
	r.Figure("descriptors-per-1000-sessions", 1000*(open.Files-start.Files)/sessions)
	turns := 200
	for range turns {
		commit(sessionOf(0), turn)
	}
	io := p.holds(t).IO.Sub(open.IO)
	r.Figure("appends-per-1000-turns", 1000*io.Append/turns)
	r.Figure("puts", 1000*io.Put/turns)
	r.Figure("gets", 1000*io.Get/turns)
	r.Explored(sessions)
	_ = p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		r.Violation("the server ended with %v: %s", err, &p.said)
	}
}

// listeners are connections that follow a session.
type listeners struct {
	t     *testing.T
	r     *proof.Report
	addr  string
	conns []net.Conn
	in    []*bufio.Reader
}

// join adds followers.
func (l *listeners) join(n int) {
	l.t.Helper()
	for range n {
		conn, err := (&net.Dialer{Timeout: patience}).DialContext(l.t.Context(), "tcp", l.addr)
		if err != nil {
			l.t.Fatal(err)
		}
		l.conns = append(l.conns, conn)
		if err := conn.SetDeadline(time.Now().Add(4 * patience)); err != nil {
			l.t.Fatal(err)
		}
		if _, err := fmt.Fprintf(conn, "GET /v1/sessions/%s/events HTTP/1.1\r\nHost: localhost\r\n\r\n", followed); err != nil {
			l.t.Fatal(err)
		}
		in := bufio.NewReader(conn)
		line, err := in.ReadString('\n')
		if err != nil || !strings.Contains(line, " 200 ") {
			l.t.Fatalf("%v: %s", err, line)
		}
		for err == nil && !strings.HasPrefix(line, "retry: ") { // it has joined
			line, err = in.ReadString('\n')
		}
		if err != nil {
			l.t.Fatal(err)
		}
		l.in = append(l.in, in)
	}
}

// cost returns the requests to the store from a commit to its last event.
func (l *listeners) cost(p *process, commit func()) backend.IO {
	l.t.Helper()
	before := p.holds(l.t).IO
	commit()
	for i, in := range l.in {
		for seen := false; !seen; {
			line, err := in.ReadString('\n')
			if err != nil {
				l.r.Violation("follower %d of %d has had no event: %v", i, len(l.in), err)
				return backend.IO{}
			}
			seen = line == "event: commit\n"
		}
	}
	return p.holds(l.t).IO.Sub(before)
}

func (l *listeners) close() {
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
}

package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/integration/faultproxy"
	"github.com/coppice-go/coppice/integration/s3test"
	"github.com/coppice-go/coppice/internal/proof"
)

const (
	clientSessions = 3
	clientWriters  = 3               // of each language
	clientLife     = time.Second     // of a server, after its first acknowledgement
	clientStart    = time.Second / 3 // of a server that is killed while it starts
	clientPatience = time.Minute     // for an acknowledgement, for a server to start, and for a writer to end
	clientOvertime = 4 * time.Minute // additional time on a slow machine
	clientSurplus  = 20              // stop after this multiple of the required acknowledgements
)

// The clients of both languages commit to the same sessions at once, through a network that loses, cuts, delays,
// refuses and repeats requests, to a server that is killed at random. Each acknowledged turn is stored once, with the
// commit of its acknowledgement and in the order of its writer; no other turn is stored.
func TestProofClientsDisk(t *testing.T) {
	programs := clientPrograms(t)
	dir := filepath.Join(t.TempDir(), "store")
	proveClients(t, "clients-disk", programs, dir, nil, func() backend.Backend {
		b, err := local.Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close() })
		return b
	})
}

// The same on S3.
func TestProofClientsS3(t *testing.T) {
	programs := clientPrograms(t)
	target := s3test.For(t)
	prefix := target.Prefix(t)
	proveClients(t, "clients-s3", programs, storeURL(target, prefix), credentials(t, target), func() backend.Backend {
		return backend.WithPrefix(target.Open(t, nil), prefix)
	})
}

// clientPrograms returns the command of a writer process by the name of its language, without arguments.
func clientPrograms(t *testing.T) map[string][]string {
	if runtime.GOOS == "windows" {
		t.Skip("SIGKILL is how it kills")
	}
	client, err := filepath.Abs("../clients/typescript/dist/index.js")
	if err != nil {
		t.Fatal(err)
	}
	_, err = os.Stat(client)
	if err == nil {
		err = exec.CommandContext(t.Context(), "node", "-e", "process.exitCode = +(parseInt(process.versions.node) < 20)").Run()
	}
	if err != nil {
		missing(t, "REQUIRE_NODE", "no Node 20, or the client is not built (make clients-typescript): %v", err)
	}
	if err := exec.CommandContext(t.Context(), "python3", "-c", "import sys; sys.exit(sys.version_info < (3, 10))").Run(); err != nil {
		missing(t, "REQUIRE_PYTHON", "no Python 3.10: %v", err)
	}
	return map[string][]string{
		"ts": {"node", "testdata/clients/writer.mjs", client},
		"py": {"python3", "testdata/clients/writer.py"},
	}
}

// missing skips a test, or fails it if the environment requires the missing program.
func missing(t *testing.T, env, format string, err error) {
	t.Helper()
	if required, _ := strconv.ParseBool(os.Getenv(env)); required {
		t.Fatalf(env+": "+format, err)
	}
	t.Skipf(format, err)
}

// clients is a run: the server, the network before it, the writers, and their acknowledgements.
type clients struct {
	t     *testing.T
	r     *proof.Report
	seed  uint64
	store string // the address for the command
	env   []string
	proxy *faultproxy.Proxy
	srv   *serving
	kills int

	mu    sync.Mutex
	acked map[string]map[string]acknowledgement // by session and text
	count map[string]int                        // acknowledgements by language
	again map[string]int                        // of these, to turns that an earlier request had stored
	kept  int                                   // of these, turns that became branches
}

// acknowledgement is a line printed by a writer.
type acknowledgement struct {
	Session, Text, Commit, Kept string
	Repeated                    bool
}

func proveClients(t *testing.T, name string, programs map[string][]string, store string, env []string,
	read func() backend.Backend,
) {
	r := proof.Begin(t, name)
	c := &clients{
		t: t, r: r, seed: rand.Uint64(), store: store,
		env:   append(env, "COPPICE_HISTORY=off", "COPPICE_STATE="+t.TempDir()),
		acked: map[string]map[string]acknowledgement{}, count: map[string]int{}, again: map[string]int{},
	}
	if text := os.Getenv(seedEnv); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		c.seed = seed
	}
	t.Logf("%s=%d", seedEnv, c.seed)
	c.start()
	var sessions []string
	for i := range clientSessions {
		id := fmt.Sprintf("shared-%d", i)
		sessions = append(sessions, id)
		status, body := request(t, http.MethodPut, c.srv.url+"/v1/sessions/"+id, `{}`, "If-None-Match: *")
		if status != http.StatusCreated {
			t.Fatalf("%d %s", status, body)
		}
	}
	c.proxy.Decide(network(rand.New(rand.NewPCG(c.seed, 1))))
	c.write(programs, sessions, func() { c.disturb(rand.New(rand.NewPCG(c.seed, 2))) })
	if _, err := c.proxy.Deliver(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.srv.end(); err != nil {
		c.broken("%v", err)
	}
	c.judge(read(), sessions)
	for name := range programs {
		r.Figure(name, c.count[name])
		r.Figure(name+"-repeated", c.again[name])
	}
	r.Figure("kept", c.kept)
	r.Figure("kills", c.kills)
	for _, e := range c.proxy.Log() {
		if e.Fault.Kind != faultproxy.None {
			r.Figure("faults", 1)
		}
	}
}

// network chooses the fault of a request at random: three of four pass. The longest delay exceeds a writer's timeout.
func network(rng *rand.Rand) func(*http.Request) faultproxy.Fault {
	faults := []faultproxy.Fault{
		{Kind: faultproxy.LoseRequest},
		{Kind: faultproxy.LoseAnswer},
		{Kind: faultproxy.LoseAnswer},
		{Kind: faultproxy.CutAnswer},
		{Kind: faultproxy.Refuse, Status: http.StatusServiceUnavailable},
		{Kind: faultproxy.ReplaceAnswer, Status: http.StatusBadGateway},
		{Kind: faultproxy.DelayAnswer, Delay: 50 * time.Millisecond},
		{Kind: faultproxy.Hold},
	}
	return func(*http.Request) faultproxy.Fault {
		switch n := rng.IntN(100); {
		case n < 1:
			return faultproxy.Fault{Kind: faultproxy.DelayAnswer, Delay: 2 * time.Second}
		case n < 25:
			return faults[rng.IntN(len(faults))]
		}
		return faultproxy.Fault{}
	}
}

func (c *clients) broken(format string, args ...any) {
	c.r.Violation(fmt.Sprintf("seed %d: ", c.seed)+format, args...)
}

// write runs the writers until disturb returns, and a little longer: each ends its present turn.
func (c *clients) write(programs map[string][]string, sessions []string, disturb func()) {
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	var all sync.WaitGroup
	var inputs []io.Closer
	python, err := filepath.Abs("../clients/python")
	if err != nil {
		c.t.Fatal(err)
	}
	for name, program := range programs {
		args := slices.Concat(program[1:], []string{
			c.proxy.URL, name, strconv.Itoa(clientWriters), strconv.FormatUint(c.seed%1_000_000, 10),
		}, sessions)
		cmd := exec.CommandContext(ctx, program[0], args...)
		cmd.Env = append(os.Environ(), "PYTHONPATH="+python)
		var said strings.Builder
		cmd.Stderr = &said
		in, err := cmd.StdinPipe()
		if err != nil {
			c.t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			c.t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			c.t.Fatal(err)
		}
		inputs = append(inputs, in)
		all.Go(func() {
			lines := bufio.NewScanner(out)
			for lines.Scan() {
				c.note(name, lines.Bytes())
			}
			if err := errors.Join(lines.Err(), cmd.Wait()); err != nil {
				c.broken("the writers %s: %v: %s", name, err, &said)
			}
		})
	}
	disturb()
	for _, in := range inputs {
		_ = in.Close()
	}
	hung := time.AfterFunc(clientPatience, cancel)
	defer hung.Stop()
	all.Wait()
}

// note records an acknowledgement.
func (c *clients) note(language string, line []byte) {
	var a acknowledgement
	if err := json.Unmarshal(line, &a); err != nil {
		c.broken("%s: %v: %s", language, err, line)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.acked[a.Session] == nil {
		c.acked[a.Session] = map[string]acknowledgement{}
	}
	c.acked[a.Session][a.Text] = a
	c.count[language]++
	if a.Repeated {
		c.again[language]++
	}
	if a.Kept != "" {
		c.kept++
	}
	c.r.Explored(1)
}

// done returns the number of acknowledgements, and whether both languages have the required number, repeated ones
// included.
func (c *clients) done(acks, repeated int) (n int, enough bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	enough = len(c.count) == 2
	for language, n := range c.count {
		enough = enough && n >= acks && c.again[language] >= repeated
	}
	return c.count["ts"] + c.count["py"], enough
}

// disturb kills the server at random and starts it again, and delivers requests that the network held back, for a time
// that depends on the size of the run, and until enough faults happened. Then it leaves a running server and a network
// without faults.
func (c *clients) disturb(rng *rand.Rand) {
	t, begun := c.t, time.Now()
	lasts := time.Duration(proof.Pick(t, 5, 10, 60)) * time.Second
	acks, repeated := proof.Pick(t, 40, 80, 400), proof.Pick(t, 3, 6, 40) // of each language
	kills := proof.Pick(t, 3, 6, 40)
	if text := os.Getenv(timeEnv); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		lasts = d
	}
	for !c.r.Full() {
		took := time.Since(begun)
		n, enough := c.done(acks, repeated)
		if took > lasts && enough && c.kills >= kills {
			break
		}
		if took > lasts+clientOvertime || took > lasts && n > clientSurplus*acks || !c.progress() {
			c.broken("%d kills in %v, and too few acknowledgements or repeats among %d", c.kills, took, n)
			break
		}
		pause(t.Context(), time.Duration(rng.Int64N(int64(clientLife))))
		_, _ = c.proxy.Deliver(t.Context()) // the server may be dying
		c.kill()
		if rng.IntN(4) == 0 {
			c.launch()
			pause(t.Context(), time.Duration(rng.Int64N(int64(clientStart))))
			c.kill()
		}
		c.start()
	}
	c.proxy.Decide(nil)
}

// progress waits for an acknowledgement, and reports whether there was one in time.
func (c *clients) progress() bool {
	before, _ := c.done(0, 0)
	for begun := time.Now(); time.Since(begun) < clientPatience; pause(c.t.Context(), 5*time.Millisecond) {
		if n, _ := c.done(0, 0); n > before {
			return true
		}
	}
	return false
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// serving is `coppice serve` in a process of its own.
type serving struct {
	cmd *exec.Cmd
	out *bufio.Reader
	url string
}

// launch starts a server, and does not wait for it.
func (c *clients) launch() {
	cmd := exec.CommandContext(c.t.Context(), "coppice", "serve", "--store", c.store, "--addr", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), c.env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.srv = &serving{cmd: cmd, out: bufio.NewReader(out)}
}

// start starts a server, waits until it serves, and directs the network to it.
func (c *clients) start() {
	c.launch()
	hung := time.AfterFunc(clientPatience, func() { _ = c.srv.cmd.Process.Kill() })
	defer hung.Stop()
	line, err := c.srv.out.ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "serving ")
	if !ok {
		c.t.Fatalf("seed %d: the server said %q and no address: %v", c.seed, line, err)
	}
	c.srv.url = url
	if c.proxy != nil {
		err = c.proxy.Redirect(url)
	} else if c.proxy, err = faultproxy.New(url); err == nil {
		c.t.Cleanup(c.proxy.Close)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// kill ends the server by SIGKILL.
func (c *clients) kill() {
	_ = c.srv.cmd.Process.Kill()
	err := c.srv.cmd.Wait()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		c.broken("a server ended by itself: %v", err)
	}
	c.kills++
}

// end ends the server by SIGTERM.
func (s *serving) end() error {
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	hung := time.AfterFunc(clientPatience, func() { _ = s.cmd.Process.Kill() })
	defer hung.Stop()
	_, _ = io.Copy(io.Discard, s.out)
	return s.cmd.Wait()
}

// judge compares the stored sessions with the acknowledgements.
func (c *clients) judge(b backend.Backend, sessions []string) {
	st, err := coppice.New(b, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	for _, session := range sessions {
		have := c.stored(st, session)
		for text, a := range c.acked[session] {
			if got := have[text]; len(got) != 1 || got[0] != a.Commit {
				c.broken("%s: turn %s was acknowledged by commit %s and is stored %d times, in %v", session, text, a.Commit,
					len(got), got)
			}
		}
		for text, got := range have {
			if _, ok := c.acked[session][text]; !ok {
				c.broken("%s: turn %s is stored in %v, and was not acknowledged", session, text, got)
			}
		}
	}
	report, err := st.Verify(c.t.Context(), "", true)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, p := range report.Problems {
		if errors.Is(p, coppice.ErrCorrupt) {
			c.broken("verify: %v", p)
		}
	}
}

// stored returns the commits of each text in a session, and checks that the turns of each writer are in order.
func (c *clients) stored(st *coppice.Store, session string) (have map[string][]string) {
	s, err := st.Open(c.t.Context(), session, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	have = map[string][]string{}
	last := map[string]int{} // turn of each writer
	for ch, err := range s.Watch(c.t.Context(), 0) {
		if err != nil {
			c.t.Fatal(err)
		}
		for _, e := range ch.Entries {
			m, ok := e.Message()
			writer, turn, cut := strings.Cut(m.Text(), ".")
			n, err := strconv.Atoi(turn)
			if !ok || !cut || err != nil {
				c.broken("%s: entry %s is no turn of a writer", session, e.Raw)
				continue
			}
			if before := last[writer]; n < before && len(have[m.Text()]) == 0 {
				c.broken("%s: turn %d of writer %s is stored after turn %d", session, n, writer, before)
			}
			last[writer] = max(n, last[writer])
			have[m.Text()] = append(have[m.Text()], ch.Commit.Commit)
		}
		if ch.Commit.Seq == s.Head().Seq {
			break
		}
	}
	return have
}

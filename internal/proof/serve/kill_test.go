package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/internal/proof"
)

const (
	killClients  = 8
	killSessions = 4                     // with two clients each
	killLife     = 60 * time.Millisecond // of a server, after its first answer
	killStart    = 60 * time.Millisecond // of a server that is killed while it starts
	retryPause   = 2 * time.Millisecond
)

// killed is a store whose server is killed repeatedly, and the answers of its clients.
type killed struct {
	t    *testing.T
	r    *proof.Report
	seed uint64
	addr atomic.Pointer[string] // of the running server, or the last one
	acks atomic.Int64
	over atomic.Bool

	mu       sync.Mutex
	acked    map[string]map[string]string // by session: text to commit
	repeated int                          // answers to a turn that an earlier request had stored
}

// TestProofServeKill repeatedly kills `coppice serve` while clients commit, and restarts it. Clients send each turn
// with an Idempotency-Key until it is acknowledged. Everything acknowledged is stored once, and nothing is stored
// twice.
func TestProofServeKill(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SIGKILL is how it kills")
	}
	r := proof.Begin(t, "serve-kill")
	kills := pick(t, 6, 100, 1000, 100)
	k := &killed{t: t, r: r, seed: rand.Uint64(), acked: map[string]map[string]string{}}
	t.Logf("seed %d", k.seed)
	dir := filepath.Join(t.TempDir(), "store")
	var clients sync.WaitGroup
	rng := rand.New(rand.NewPCG(k.seed, 0))
	for n := range kills {
		if r.Full() {
			break
		}
		k.life(dir, rng)
		if n == 0 {
			for i := range killClients {
				clients.Go(func() { k.commit(i) })
			}
		}
	}
	p, err := command(t.Context(), dir)
	if err == nil {
		err = p.ready()
	}
	if err != nil {
		k.over.Store(true)
		clients.Wait()
		t.Fatal(err)
	}
	k.addr.Store(&p.addr)
	k.answered() // the last server answers, too
	k.over.Store(true)
	clients.Wait()
	if err := p.end(); err != nil {
		k.broken("%v", err)
	}
	k.check(dir)
	r.Figure("acknowledged", int(k.acks.Load()))
	r.Figure("repeated", k.repeated)
}

func (k *killed) broken(format string, args ...any) {
	k.r.Violation(fmt.Sprintf("seed %d: ", k.seed)+format, args...)
}

// life starts a server and kills it: three times of four during commits, otherwise while it starts.
func (k *killed) life(dir string, rng *rand.Rand) {
	p, err := command(k.t.Context(), dir)
	if err != nil {
		k.broken("start: %v", err)
		return
	}
	if first := k.addr.Load() == nil; first || rng.IntN(4) > 0 {
		if err := p.ready(); err != nil {
			k.broken("%v", err)
			return
		}
		k.addr.Store(&p.addr)
		if !first { // without clients yet
			k.answered()
		}
		time.Sleep(time.Duration(rng.Int64N(int64(killLife))))
	} else {
		time.Sleep(time.Duration(rng.Int64N(int64(killStart))))
	}
	_ = p.cmd.Process.Kill()
	err = p.cmd.Wait()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		k.broken("a server ended by itself: %v", err)
	}
	k.r.Explored(1)
}

// answered waits until a client has an answer.
func (k *killed) answered() {
	before, begun := k.acks.Load(), time.Now()
	for k.acks.Load() == before && !k.r.Full() {
		if time.Since(begun) > patience {
			k.broken("no client had an answer for %v", patience)
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// commit is a client: it commits turns, each until it is acknowledged, until the end of the test.
func (k *killed) commit(who int) {
	rng := rand.New(rand.NewPCG(k.seed, uint64(who)+1))
	session := fmt.Sprintf("s%d", who%killSessions)
	c := &client{}
	defer c.close()
	if !k.until(c, rng, who, func(addr string) (reply, error) {
		return c.ask(addr, http.MethodPut, "/v1/sessions/"+session, `{"title":"killed"}`, "If-None-Match: *",
			"Idempotency-Key: both")
	}, nil) {
		return
	}
	for n := 0; !k.over.Load() && !k.r.Full(); n++ {
		name := fmt.Sprintf("%d.%d ", who, n)
		body := fmt.Sprintf(`{"entries":[{"role":"user","content":%q}],"state":{"turn":%q}}`,
			fill(name, len(name)+rng.IntN(6000)), name)
		if !k.until(c, rng, who, func(addr string) (reply, error) {
			return c.ask(addr, http.MethodPost, "/v1/sessions/"+session+"/commits", body, "If-Match: *",
				"Idempotency-Key: "+name)
		}, func(r reply) { k.note(session, name, r) }) {
			return
		}
	}
}

// until sends a request until it is answered, and sometimes once more after that: the answer is the same. It reports
// whether it was answered.
func (k *killed) until(c *client, rng *rand.Rand, who int, send func(addr string) (reply, error), note func(reply)) bool {
	begun := time.Now()
	for again := rng.IntN(8) == 0; ; {
		r, err := send(*k.addr.Load())
		switch {
		case err != nil: // the server is dead, or died before it answered
		case r.status == http.StatusOK, r.status == http.StatusCreated:
			if note != nil {
				note(r)
			}
			if !again {
				return true
			}
			again = false
		case r.status == http.StatusConflict, r.status == http.StatusServiceUnavailable:
			// Its first request is still under way, or has an unknown outcome.
		default:
			k.broken("client %d: %d %s", who, r.status, r.body)
			return false
		}
		if time.Since(begun) > 2*patience || k.r.Full() {
			k.broken("client %d has had no answer for %v: %v", who, 2*patience, err)
			return false
		}
		if err != nil {
			time.Sleep(retryPause)
		}
	}
}

// note records an acknowledgement. A turn has one commit, however often it is sent.
func (k *killed) note(session, name string, r reply) {
	var got struct {
		Commit   string
		Repeated bool
	}
	if err := json.Unmarshal(r.body, &got); err != nil {
		k.broken("%q: %v: %s", name, err, r.body)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.acked[session] == nil {
		k.acked[session] = map[string]string{}
	}
	if was, ok := k.acked[session][name]; ok && was != got.Commit {
		k.broken("%s: %q was acknowledged by commit %s, and then by %s", session, name, was, got.Commit)
	}
	k.acked[session][name] = got.Commit
	if got.Repeated {
		k.repeated++
	}
	k.acks.Add(1)
}

// check opens the store as the next process would.
func (k *killed) check(dir string) {
	b, err := local.Open(dir, nil)
	if err != nil {
		k.t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	st, err := coppice.New(b, nil)
	if err != nil {
		k.t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	for session, acked := range k.acked {
		s, err := st.Open(k.t.Context(), session, &coppice.SessionOptions{ReadOnly: true})
		if err != nil {
			k.broken("open %s: %v", session, err)
			continue
		}
		have, commits := map[string][]string{}, 0
		for c, err := range s.Watch(k.t.Context(), 0) {
			if err != nil {
				k.broken("read %s: %v", session, err)
				break
			}
			for _, e := range c.Entries {
				name := nameOf(textOf(e))
				have[name] = append(have[name], c.Commit.Commit)
			}
			if commits++; c.Commit.Seq == s.Head().Seq {
				break
			}
		}
		for name := range acked { // these first: only some violations are shown
			if len(have[name]) == 0 {
				k.broken("%s: %q was acknowledged and stands there 0 times", session, name)
			}
		}
		for name, commit := range acked {
			if got := have[name]; len(got) > 1 || len(got) == 1 && got[0] != commit {
				k.broken("%s: %q was acknowledged by commit %s and stands there %d times, in %v", session, name, commit,
					len(got), got)
			}
		}
		for name, got := range have {
			if len(got) > 1 || name == "" {
				k.broken("%s: %q stands there %d times, in %v", session, name, len(got), got)
			}
		}
		if err := s.Close(); err != nil {
			k.broken("close %s: %v", session, err)
		}
	}
	report, err := st.Verify(k.t.Context(), "", true)
	if err != nil {
		k.t.Fatal(err)
	}
	for _, p := range report.Problems {
		if errors.Is(p, coppice.ErrCorrupt) {
			k.broken("verify: %v", p)
		}
	}
}

// nameOf returns the name of the turn at the start of its text.
func nameOf(text string) string {
	for i, c := range text {
		if c == ' ' {
			return text[:i+1]
		}
	}
	return ""
}

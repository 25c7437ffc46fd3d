package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/proof"
	"github.com/coppice-go/coppice/transcript"
)

const (
	round      = 2 * time.Minute // of a soak: half of it over HTTP
	leastRatio = 0.5             // of the turns a second over HTTP to those of the same agents in one process
	laps       = 5               // of each kind in a round, alternately
)

// TestProofServeLoad lets agents commit, each to a session of its own, on a disk: over HTTP to `coppice serve`, a
// process of its own, and to another folder by handles in this process. Both commit the same turns: two messages of 400
// bytes, a state of 500, a key. They alternate, so that noise affects both. The cost over HTTP includes the clients,
// which run on the same cores. In the end every turn is stored once.
func TestProofServeLoad(t *testing.T) {
	r := proof.Begin(t, "serve-load")
	whole := soaked(t)
	rounds := max(1, int(whole/round))
	span := whole / time.Duration(rounds)
	if whole == 0 && proof.Asked(t) != proof.Quick {
		span = time.Duration(proof.Pick(t, 0, 8, 120)) * time.Second
	}
	agents := pick(t, 20, 200, 200, 200)
	var served, inside rate
	for range rounds {
		s, i := loadRound(t, r, agents, span)
		served.add(s)
		inside.add(i)
		if r.Full() {
			return
		}
	}
	r.Figure("http-turns/s", int(served.perSecond()))
	r.Figure("in-process-turns/s", int(inside.perSecond()))
	ratio := served.perSecond() / inside.perSecond()
	r.Figure("ratio-percent", int(100*ratio))
	if whole > 0 && ratio < leastRatio {
		r.Violation("%.0f turns a second over HTTP and %.0f in one process: %.2fx, want %.1fx",
			served.perSecond(), inside.perSecond(), ratio, leastRatio)
	}
}

// rate is a number of turns in a time.
type rate struct {
	turns int
	took  time.Duration
}

func (x *rate) add(y rate) { x.turns, x.took = x.turns+y.turns, x.took+y.took }

func (x *rate) perSecond() float64 { return float64(x.turns) / max(x.took, 1).Seconds() }

// loadRound runs a round on two new folders. A span of 0 = a few turns of each agent.
func loadRound(t *testing.T, r *proof.Report, agents int, span time.Duration) (served, inside rate) {
	dir, err := os.MkdirTemp(t.TempDir(), "round")
	if err != nil {
		t.Fatal(err)
	}
	p, err := command(t.Context(), filepath.Join(dir, "http"))
	if err == nil {
		err = p.ready()
	}
	if err != nil {
		t.Fatal(err)
	}
	over := &overHTTP{addr: p.addr, clients: make([]client, agents)}
	within, closeStore := newWithin(t, filepath.Join(dir, "inside"), agents)
	done := [2][]int{make([]int, agents), make([]int, agents)}
	for lap := range 2 * laps {
		side, count, sum := turner(over), done[0], &served
		if lap%2 == 1 {
			side, count, sum = within, done[1], &inside
		}
		if lap < 2 { // sessions and connections are created
			runLap(t, side, count, 0)
		}
		sum.add(runLap(t, side, count, span/(2*laps)))
	}
	for i := range over.clients {
		over.clients[i].close()
	}
	if err := errors.Join(p.end(), closeStore()); err != nil {
		r.Violation("%v", err)
	}
	for i, name := range []string{"http", "inside"} {
		checkLoad(t, r, filepath.Join(dir, name), done[i])
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	return served, inside
}

// turner commits the n-th turn of an agent.
type turner interface {
	turn(ctx context.Context, agent, n int) error
}

// fewTurns is the number of turns of an agent in a lap without a time limit.
const fewTurns = 5

// runLap lets all agents commit for a time, or a few turns each.
func runLap(t *testing.T, side turner, done []int, span time.Duration) rate {
	begun := time.Now()
	before := sumOf(done)
	var all sync.WaitGroup
	for agent := range done {
		all.Go(func() {
			for n := 0; span == 0 && n < fewTurns || span > 0 && time.Since(begun) < span; n++ {
				if err := side.turn(t.Context(), agent, done[agent]); err != nil {
					t.Errorf("agent %d, turn %d: %v", agent, done[agent], err)
					return
				}
				done[agent]++
			}
		})
	}
	all.Wait()
	return rate{sumOf(done) - before, time.Since(begun)}
}

func sumOf(list []int) (sum int) {
	for _, n := range list {
		sum += n
	}
	return sum
}

// The texts of a turn, and its state.
func question(agent, n int) string { return fill(fmt.Sprintf("q %d.%d ", agent, n), 400) }
func reaction(agent, n int) string { return fill(fmt.Sprintf("a %d.%d ", agent, n), 400) }
func noted(agent, n int) string {
	return fmt.Sprintf(`{"turn":"%d.%d","note":%q}`, agent, n, fill("", 450))
}

func fill(text string, size int) string { return text + strings.Repeat("w", size-len(text)) }

func sessionOf(agent int) string { return fmt.Sprintf("agent-%d", agent) }

// overHTTP commits by requests.
type overHTTP struct {
	addr    string
	clients []client
}

func (o *overHTTP) turn(_ context.Context, agent, n int) error {
	c := &o.clients[agent]
	if n == 0 {
		if err := c.create(o.addr, sessionOf(agent)); err != nil {
			return err
		}
	}
	body := fmt.Sprintf(`{"entries":[{"role":"user","content":%q},{"role":"assistant","content":[{"type":"text","text":%q}]}],`+
		`"state":%s}`, question(agent, n), reaction(agent, n), noted(agent, n))
	r, err := c.must(http.StatusOK, o.addr, http.MethodPost, "/v1/sessions/"+sessionOf(agent)+"/commits", body,
		"If-Match: *", fmt.Sprintf("Idempotency-Key: %d.%d", agent, n))
	if err != nil {
		return err
	}
	var got struct {
		Seq      int
		Repeated bool
	}
	if err := json.Unmarshal(r.body, &got); err != nil || got.Seq <= n || got.Repeated {
		return fmt.Errorf("%w: the answer to turn %d is %s", errors.Join(err, errStatus), n, r.body)
	}
	return nil
}

// within commits by handles of this process.
type within struct {
	store *coppice.Store
	open  []*coppice.Session
}

func newWithin(t testing.TB, dir string, agents int) (*within, func() error) {
	b, err := local.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	st, err := coppice.New(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &within{st, make([]*coppice.Session, agents)}, func() error { return errors.Join(st.Close(), b.Close()) }
}

func (w *within) turn(ctx context.Context, agent, n int) (err error) {
	if n == 0 {
		if w.open[agent], err = w.store.Create(sessionOf(agent), &coppice.SessionOptions{Title: "proof"}); err != nil {
			return err
		}
		if _, err := w.open[agent].Commit(ctx, coppice.Turn{Reason: "create"}); err != nil {
			return err
		}
	}
	_, err = w.open[agent].Commit(ctx, coppice.Turn{
		Entries: []transcript.Draft{entry.User(question(agent, n)), entry.Assistant(reaction(agent, n))},
		State:   json.RawMessage(noted(agent, n)), Key: fmt.Sprintf("%d.%d", agent, n),
	})
	return err
}

// checkLoad compares a folder with the acknowledgements: every turn is stored once and in order.
func checkLoad(t *testing.T, r *proof.Report, dir string, done []int) {
	b, err := local.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	st, err := coppice.New(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	for agent, turns := range done {
		s, err := st.Open(t.Context(), sessionOf(agent), &coppice.SessionOptions{ReadOnly: true})
		if err != nil {
			r.Violation("%s: open %s: %v", dir, sessionOf(agent), err)
			continue
		}
		n := 0
		for e, err := range s.Entries(t.Context()) {
			if err != nil {
				r.Violation("%s: read %s: %v", dir, sessionOf(agent), err)
				break
			}
			want := question(agent, n/2)
			if n%2 == 1 {
				want = reaction(agent, n/2)
			}
			if got := textOf(e); got != want {
				r.Violation("%s: entry %d of %s is %.20q, want %.20q", filepath.Base(dir), n, sessionOf(agent), got, want)
				break
			}
			n++
		}
		commits := 0
		for c, err := range s.Log(t.Context(), coppice.Target{}) {
			if err != nil {
				r.Violation("%s: log of %s: %v", filepath.Base(dir), sessionOf(agent), err)
				break
			}
			if c.Reason == "turn" { // not the creation, nor the end of a segment
				commits++
			}
		}
		if n != 2*turns || commits != turns {
			r.Violation("%s: %s has %d entries and %d turns: %d were acknowledged", filepath.Base(dir),
				sessionOf(agent), n, commits, turns)
		}
		r.Explored(turns)
		if err := s.Close(); err != nil {
			r.Violation("%s: close %s: %v", dir, sessionOf(agent), err)
		}
	}
}

// textOf returns the text of an entry.
func textOf(e transcript.Entry) string {
	if m, ok := e.Message(); ok {
		return transcript.Inspect(m.Raw).Text
	}
	return ""
}

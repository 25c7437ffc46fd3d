// Package linear checks recorded histories of real handles on one session for linearizability: whether the answers of
// several writers and readers are consistent with a sequence of operations, each at one moment between its call and its
// return. An operation with an unknown outcome may take effect at any later time, or never.
//
// The committed history is the final log, read by a fresh handle without faults: a commit that was acknowledged must be
// in it once; a commit that was reported as not applied must not (I1, I2); and everything read in between is a prefix
// of it.
package linear

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/segment"
)

const session = "s"

// Options describe one history.
type Options struct {
	Clean   backend.Backend           // the store
	Faulty  backend.Backend           // the same store, as the clients see it
	Deliver func(ctx context.Context) // delivers delayed requests; nil = there are none
	Clients int
	Ops     int // of each client
	Seed    uint64
}

// limits are small, so that everything happens within few commits.
var limits = journal.Limits{SealEntries: 12, RollEntries: 24, PublishCommits: 5, Keyframe: 6, WholeDoc: 64, Attempts: 4}

// effect is the effect of one operation on the head, according to its answer.
type effect struct {
	kind effectKind
	id   string // of the commit that was acknowledged, or is in doubt; of a read: the head
	base string // of a refusal: the head in the handle's view
}

type effectKind uint8

const (
	wrote effectKind = iota
	doubted
	refused
	read
)

// recorder records a history.
type recorder struct {
	o     Options
	clock atomic.Int64

	mu     sync.Mutex
	ops    []porcupine.Operation
	acked  map[string]string // entry to commit
	failed map[string]bool   // entries that were reported as not applied
	seen   []string          // violations
	reads  []checkpoint.Commit
	bases  map[string]string // commit in force to the one that its writer had seen last
}

// Run records one history and judges it. It returns the number of operations judged.
func Run(ctx context.Context, o Options) (int, error) {
	r := &recorder{o: o, acked: map[string]string{}, failed: map[string]bool{}, bases: map[string]string{}}
	rng := &locked{r: rand.NewChaCha8(seedOf(o.Seed))}
	first := journal.Create(r.config(o.Clean, rng), state.Genesis{
		Header: []byte(`{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}`),
	})
	if _, err := first.Commit(ctx, r.turn("root", first.State())); err != nil {
		return 0, fmt.Errorf("create: %w", err)
	}
	if err := first.Close(ctx); err != nil {
		return 0, fmt.Errorf("create: %w", err)
	}
	genesis := first.State().Summary.Commit
	var all sync.WaitGroup
	for i := range o.Clients {
		all.Go(func() {
			c := &client{r: r, n: i, rng: rand.New(rand.NewPCG(o.Seed, uint64(i)+1)), rand: rng}
			c.run(ctx)
		})
	}
	all.Wait()
	if o.Deliver != nil {
		o.Deliver(ctx)
	}
	return r.judge(ctx, genesis, rng)
}

func seedOf(seed uint64) (key [32]byte) {
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	return key
}

type locked struct {
	mu sync.Mutex
	r  io.Reader
}

func (l *locked) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return io.ReadFull(l.r, p)
}

func (r *recorder) config(b backend.Backend, rng io.Reader) journal.Config {
	return journal.Config{
		Backend: b, Session: session, Writer: "w", Rand: rng, Limits: limits,
		Now:   func() time.Time { return time.UnixMilli(1_800_000_000_000 + r.clock.Load()).UTC() },
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}
}

// turn returns a step with one entry below the head of st.
func (r *recorder) turn(id string, st *state.State) *journal.Step {
	parent := "null"
	if st.Summary.Entry != "" {
		parent = strconv.Quote(st.Summary.Entry)
	}
	line := fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-01-01T00:00:00.000Z",`+
		`"message":{"role":"user","content":"x"}}`, id, parent)
	return &journal.Step{
		Reason: "turn",
		Entries: []*journal.Entry{{
			Raw: []byte(line), ID: id,
			Parent: journal.Place{ID: st.Summary.Entry, Ord: st.HeadOrd},
		}},
		Edit: func(d checkpoint.Document) checkpoint.Document {
			d.State = json.RawMessage(fmt.Sprintf(`{"turn":%q}`, id))
			return d
		},
	}
}

// now is a moment of the history: moments are numbered, since only their order counts.
func (r *recorder) now() int64 { return r.clock.Add(1) }

// note records an operation. One with an unknown outcome never returned.
func (r *recorder) note(client int, call int64, e effect) {
	op := porcupine.Operation{ClientId: client, Input: e, Call: call, Return: r.now()}
	if e.kind == doubted {
		op.Return = math.MaxInt64
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, op)
}

// builtOn records the commit whose head and document a turn is based on.
func (r *recorder) builtOn(commit, base string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bases[commit] = base
}

func (r *recorder) violation(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, fmt.Sprintf(format, args...))
}

// truth is the final log.
type truth struct {
	commits []checkpoint.Commit
	at      map[string]int // by commit id
}

// judge compares the answers of clients with the final log.
func (r *recorder) judge(ctx context.Context, genesis string, rng io.Reader) (int, error) {
	j, err := journal.Open(ctx, r.config(r.o.Clean, rng))
	if err != nil {
		return 0, fmt.Errorf("reopen: %w", err)
	}
	defer j.Close(ctx)
	log, err := r.readLog(ctx, j)
	if err != nil {
		return 0, err
	}
	for _, c := range r.reads {
		if at, ok := log.at[c.Commit]; !ok || log.commits[at].Seq != c.Seq {
			r.violation("commit %d %s was read, and is not in the log in the end", c.Seq, c.Commit)
		}
	}
	if err := r.overwrites(ctx, j, log); err != nil {
		return 0, err
	}
	history := make([]porcupine.Operation, 0, len(r.ops))
	for _, op := range r.ops {
		e, _ := op.Input.(effect)
		_, there := log.at[e.id]
		switch {
		case e.kind == doubted && !there:
			continue // it never took effect
		case (e.kind == wrote || e.kind == read) && !there:
			r.violation("commit %s was acknowledged or read, and is not in the log (I1)", e.id)
			continue
		}
		history = append(history, op)
	}
	if len(r.seen) == 0 && !porcupine.CheckOperations(log.model(genesis), history) {
		r.violation("the history of %d operations is not linearizable", len(history))
	}
	errs := make([]error, 0, len(r.seen))
	for _, text := range r.seen {
		errs = append(errs, errors.New(text))
	}
	return len(history), errors.Join(errs...)
}

// readLog reads the whole history, and checks that it is one chain and contains each entry as acknowledged to its
// writer.
func (r *recorder) readLog(ctx context.Context, j *journal.Journal) (*truth, error) {
	log := &truth{at: map[string]int{}}
	times := map[string]int{}
	for b, err := range j.Since(ctx, j.State(), -1, nil) {
		if err != nil {
			return nil, fmt.Errorf("history: %w", err)
		}
		c, n := b.Commit, len(log.commits)
		if int(c.Seq) != n || n > 0 && c.Parent != log.commits[n-1].Commit {
			r.violation("commit %d %s stands at %d of the log, behind another than its parent", c.Seq, c.Commit, n)
		}
		if _, twice := log.at[c.Commit]; twice {
			r.violation("commit %s stands twice in the log", c.Commit)
		}
		log.at[c.Commit] = n
		log.commits = append(log.commits, c)
		for _, l := range b.Lines {
			if e, err := segment.Entry(l.Ord, l.Raw); err == nil && !l.Commit {
				times[e.ID]++
			}
		}
	}
	for e, c := range r.acked {
		if _, ok := log.at[c]; !ok || times[e] != 1 {
			r.violation("entry %s was acknowledged by commit %s, and stands %d times in the log (I1)", e, c, times[e])
		}
	}
	for e := range r.failed {
		if times[e] != 0 {
			r.violation("entry %s was reported as not applied, and stands %d times in the log (I2)", e, times[e])
		}
	}
	return log, nil
}

// overwrites finds turns that replaced a head or a document which their writers had not seen: each of them should have
// been a conflict.
func (r *recorder) overwrites(ctx context.Context, j *journal.Journal, log *truth) error {
	docs := map[int]string{}
	doc := func(at int) (string, error) {
		if d, ok := docs[at]; ok {
			return d, nil
		}
		m, err := j.At(ctx, j.State(), uint64(at))
		docs[at] = string(m.DocRaw)
		return docs[at], err
	}
	for id, base := range r.bases {
		at, ok := log.at[id]
		seen, known := log.at[base]
		if !ok || !known {
			continue // judge reports it
		}
		seen, before := log.session(seen), log.session(at-1)
		if seen == before {
			continue
		}
		had, err := doc(seen)
		if err != nil {
			return fmt.Errorf("document of commit %d: %w", seen, err)
		}
		found, err := doc(before)
		if err != nil {
			return fmt.Errorf("document of commit %d: %w", before, err)
		}
		a, b := &log.commits[seen], &log.commits[before]
		if had != found || a.Entry != b.Entry || a.Branch != b.Branch {
			r.violation("commit %s was made on commit %d, and overwrites commit %d, which its writer never saw", id,
				seen, before)
		}
	}
	return nil
}

// session returns the newest commit, up to an index of the log, that moved the session: a kept losing turn moves
// nothing.
func (t *truth) session(at int) int {
	for at > 0 && t.commits[at].Kept != "" && t.commits[at].Kept == t.commits[at].Branch {
		at--
	}
	return at
}

// end returns the last commit of the write that a commit belongs to: a losing turn's commit and the one that restores
// the winner are one write, and so are the line that closes a segment and the commits before it.
func (t *truth) end(id string) string {
	at := t.at[id]
	if t.commits[at].Kept != "" && at+1 < len(t.commits) {
		at++
	}
	for at+1 < len(t.commits) && t.commits[at+1].Reason == "roll" {
		at++
	}
	return t.commits[at].Commit
}

// model is a session as a register that holds the id of its newest commit. A write sets it from the preceding commit in
// the log; a refusal requires another head than the one in the handle's view.
func (t *truth) model(genesis string) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return genesis },
		Step: func(state, input, _ any) (bool, any) {
			head, _ := state.(string)
			switch e, _ := input.(effect); e.kind {
			case wrote, doubted:
				return t.commits[t.at[e.id]].Parent == head, t.end(e.id)
			case read:
				return e.id == head, head
			case refused:
				return e.base != head, head
			}
			return false, head
		},
	}
}

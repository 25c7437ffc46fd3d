// Package crash explores the effects of a power loss on a session on disk: the real journal, on the real local driver,
// over a simulated file system (vfstest.CrashFS) that is stopped before each of its changes and restarted from the
// states that a crash there may leave.
//
// A scenario is played once, and the answers that callers have had are kept with each point of it (Promise). For every
// state after every point the session is recovered as by a user: opened for reading, written to, opened again. The
// rules: everything acknowledged exists, byte for byte and in order (I1, I13); the content is a prefix of what was
// committed (I10), so nothing that failed appears (I2); opening writes nothing (I14); the next commit succeeds, and no
// reference is dangling (I3). Recovery itself is stopped in the same way (two levels).
//
// Everything follows from seeds, so a violation names scenario, seed, point and state.
package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/seam"
	"github.com/coppice-go/coppice/internal/vfs"
	"github.com/coppice-go/coppice/internal/vfs/vfstest"
	"github.com/coppice-go/coppice/transcript"
)

// Session is the id of the session of every scenario.
const Session = "s1"

// World is a disk and the processes on it. One goroutine works on it: background work runs synchronously, so that one
// seed means one order of events.
type World struct {
	FS     *vfstest.CrashFS
	Over   vfs.FS // the file system of processes, FS if nil
	Limits journal.Limits
	Rng    *rand.Rand // for the scenario's own choices
	Told   Promise    // the answers to callers so far

	seed  uint64
	rand  *rand.ChaCha8
	clock time.Time
	given []Given // input of acknowledged commits
	// input of commits that were reported as not applied
	refused [][]byte
	raws    map[string]string                  // of all entries, by id
	made    int                                // entries
	file    iter.Seq2[transcript.Draft, error] // what a scenario imports
	watch   *watch                             // of processes started from now on; nil = none
}

// Promise is the answers to callers up to some moment.
type Promise struct {
	Commits   int      // number of acknowledged commits, separate or together with later ones
	Snapshots []string // names of the acknowledged ones
	Deleting  bool     // Delete was called
	Deleted   bool     // and has returned
	Again     bool     // the id was that of a deleted session before: while no new one exists it counts as deleted
}

// NewWorld makes a world on a disk. Worlds with different seeds never make the same ids.
func NewWorld(fs *vfstest.CrashFS, seed uint64, lim journal.Limits) *World {
	w := &World{FS: fs, Limits: lim, seed: seed, Rng: rand.New(rand.NewPCG(seed, 5)), raws: map[string]string{}}
	w.rand = rand.NewChaCha8([32]byte{
		byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 24),
		byte(seed >> 32),
	})
	w.clock = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return w
}

// Config returns the configuration of a new process: it shares only the disk with earlier ones.
func (w *World) Config() journal.Config {
	var over vfs.FS = w.FS
	if w.Over != nil {
		over = w.Over
	}
	if w.watch != nil {
		over = &mortal{FS: over, left: -1, before: w.watch.change}
	}
	b, err := local.Open("", &local.Options{FS: over})
	if err != nil {
		panic(err) // it opens nothing yet
	}
	var seen backend.Backend = b
	if w.watch != nil {
		seen = &watchedDisk{b, w.watch}
	}
	return journal.Config{
		Backend: seen, Session: Session, Writer: "w", Rand: w.rand, Limits: w.Limits,
		Go:    func(job func()) { job() },
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Now:   func() time.Time { w.clock = w.clock.Add(time.Millisecond); return w.clock },
	}
}

// Header is the header line of the scenarios' session.
var header = []byte(`{"type":"session","version":3,"id":"s1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}`)

// Genesis returns the initial state of the scenarios' session.
func Genesis() state.Genesis { return state.Genesis{Header: header, Cwd: "/w"} }

// Open opens the session as a new process, with the limits of the world.
func (w *World) Open() (*coppice.Session, error) {
	cfg := w.Config()
	s, err := coppice.New(cfg.Backend, &coppice.Options{Writer: cfg.Writer, Now: cfg.Now, Rand: cfg.Rand})
	if err != nil {
		return nil, err
	}
	own := seam.Config(s)
	own.Limits, own.Sleep, own.Go = cfg.Limits, cfg.Sleep, cfg.Go
	return s.Open(context.Background(), Session, nil)
}

// Entry makes an entry below the head of j, with a text of that many bytes.
func (w *World) Entry(st *state.State, text int) *journal.Entry {
	w.made++
	id := fmt.Sprintf("e%x-%d", w.seed, w.made)
	parent := "null"
	if st.Summary.Entry != "" {
		parent = fmt.Sprintf("%q", st.Summary.Entry)
	}
	b := make([]byte, text)
	for i := range b {
		b[i] = 'a' + byte(w.Rng.IntN(26))
	}
	raw := fmt.Appendf(nil, `{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-01-01T00:00:01.000Z",`+
		`"message":{"role":"user","content":"%s"}}`, id, parent, b)
	w.raws[id] = string(raw)
	return &journal.Entry{ID: id, Parent: journal.Place{ID: st.Summary.Entry, Ord: st.HeadOrd}, Raw: raw}
}

// Step is a turn of one entry that changes the state.
func (w *World) Step(st *state.State, text int) *journal.Step {
	e := w.Entry(st, text)
	return &journal.Step{
		Reason: "turn", Entries: []*journal.Entry{e},
		Edit: func(d checkpoint.Document) checkpoint.Document {
			d.State = json.RawMessage(fmt.Sprintf(`{"at":%q}`, e.ID))
			return d
		},
	}
}

// Given is the input of an acknowledged commit. Histories are read by the code that wrote them, so they are compared
// with this as well.
type Given struct {
	Seq   uint64
	Lines [][]byte // of its entries: whole, or a part of them
	State string   // of its document; "" = unknown
}

// Gave records the input of an acknowledged commit.
func (w *World) Gave(seq uint64, s *journal.Step) {
	g := Given{Seq: seq}
	for _, e := range s.Entries {
		g.Lines = append(g.Lines, []byte(w.raws[e.ID]))
	}
	if s.Edit != nil {
		g.State = string(s.Edit(checkpoint.Document{}).State)
	}
	w.given = append(w.given, g)
}

// Acked records an acknowledged commit.
func (w *World) Acked(seq uint64) { w.Told.Commits = max(w.Told.Commits, int(seq)+1) }

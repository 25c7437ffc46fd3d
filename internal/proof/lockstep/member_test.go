package lockstep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/snapshot"
	"github.com/coppice-go/coppice/transcript"
)

var ctx = context.Background()

// member is one of the stores on which a life is lived.
type member struct {
	name  string
	b     backend.Backend
	dir   string // of a disk
	store *coppice.Store
	s     *coppice.Session
	id    string
	now   time.Time
	both  bool   // SessionOptions.KeepBoth of the handle
	bound int    // SessionOptions.ContextBytes of sessions that are created
	dirty bool   // something was appended or set, and is not committed
	odd   string // what the member itself contradicts; "" = nothing
	ids   []string
	names map[string]string // of ids
	tail  map[string]string // of the last 8 digits of the ids of commits, of which branches are named

	// Commits that only some kinds of stores make (reason "roll") are not counted.
	log []checkpoint.Commit // oldest first, without them
	seq map[uint64]int      // the place in log of a commit, or of the one before it that is there
}

func newMember(name string) (*member, error) {
	m := &member{name: name, id: "s0", now: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)}
	var err error
	switch name {
	case "replace":
		m.b = memory.New()
	case "append":
		m.b = memory.NewAppender()
	default:
		if m.dir, err = os.MkdirTemp("", "lockstep"); err != nil { //nolint:usetesting // a life is not a test of its own
			return nil, err
		}
		if m.b, err = local.Open(m.dir, nil); err != nil {
			return nil, errors.Join(err, os.RemoveAll(m.dir))
		}
	}
	if m.store, err = m.newStore("w", 1); err != nil {
		return nil, err
	}
	m.s, err = m.store.Create(m.id, m.options())
	return m, err
}

func (m *member) newStore(writer string, seed byte) (*coppice.Store, error) {
	var random io.Reader = rand.NewChaCha8([32]byte{seed})
	return coppice.New(m.b, &coppice.Options{Writer: writer, Now: func() time.Time { return m.now }, Rand: random})
}

func (m *member) options() *coppice.SessionOptions {
	return &coppice.SessionOptions{Title: "a life", Cwd: "/w", KeepBoth: m.both, Snapshots: snapshot.Policy{Every: -1}}
}

// alike is a look without what may differ between stores: where a context is cut depends on the ids of its entries.
func (m *member) alike(look string) string {
	if m.bound == 0 {
		return look
	}
	var same []string
	for line := range strings.SplitSeq(look, "\n") {
		switch word, _, _ := strings.Cut(line, " "); word {
		case "context", "window", "open", "diagnostic":
		default:
			same = append(same, line)
		}
	}
	return strings.Join(same, "\n")
}

func (m *member) end() {
	if m.s != nil {
		_ = m.s.Close()
	}
	_ = m.b.Close()
	if m.dir != "" {
		_ = os.RemoveAll(m.dir)
	}
}

// do has a step happen and returns its answer, with ids as names.
func (m *member) do(i int, s step) string {
	m.now, m.odd = m.now.Add(time.Second), ""
	text, err := kinds[s.kind].do(m, i, s)
	if nerr := m.know(); nerr != nil && err == nil {
		err = nerr
	}
	if err != nil {
		return "error: " + class(err)
	}
	return m.called(text)
}

// classes are the errors that callers tell apart.
var classes = []struct {
	is   error
	name string
}{
	{coppice.ErrCommitUnknown, "unknown"},
	{coppice.ErrFenced, "fenced"},
	{coppice.ErrConflict, "conflict"},
	{coppice.ErrInDoubt, "in doubt"},
	{coppice.ErrUncommitted, "uncommitted"},
	{transcript.ErrNotAmendable, "not amendable"},
	{coppice.ErrCorrupt, "corrupt"},
	{coppice.ErrKeyReused, "key reused"},
	{fs.ErrExist, "exists"},
	{fs.ErrNotExist, "not there"},
	{fs.ErrClosed, "closed"},
	{backend.ErrTooLarge, "too large"},
}

// class is what an error is to a program.
func class(err error) string {
	for _, c := range classes {
		if errors.Is(err, c.is) {
			return c.name
		}
	}
	return "other: " + idPattern.ReplaceAllString(err.Error(), "ID")
}

// know learns the names of the ids that there are: entries by their order, commits by their seq.
func (m *member) know() error {
	m.ids, m.names, m.tail = nil, map[string]string{}, map[string]string{}
	tree, err := m.s.Tree(ctx)
	if err != nil {
		return fmt.Errorf("tree: %w", err)
	}
	for n := range tree.Nodes(transcript.FilterAll) {
		m.names[n.ID] = fmt.Sprintf("e%d", len(m.ids))
		m.ids = append(m.ids, n.ID)
	}
	var all []checkpoint.Commit
	for c, err := range m.s.Log(ctx, coppice.Target{}) {
		if err != nil {
			return fmt.Errorf("log: %w", err)
		}
		all = append(all, c)
	}
	m.log, m.seq = nil, map[uint64]int{}
	for _, c := range slices.Backward(all) {
		if c.Reason != "roll" {
			m.log = append(m.log, c)
		}
		m.seq[c.Seq] = len(m.log) - 1
		name := fmt.Sprintf("c%d", len(m.log)-1)
		m.names[c.Commit], m.tail[c.Commit[len(c.Commit)-8:]] = name, name
	}
	return nil
}

// counted is a head with its commit's place in the log.
func (m *member) counted(h checkpoint.Head) checkpoint.Head {
	h.Seq = uint64(m.seq[h.Seq])
	return h
}

// summary is a summary as text, without what differs from one kind of store to another: the bytes of lines, and
// commits that only some make.
func (m *member) summary(sum checkpoint.Summary) string {
	sum.Bytes = 0
	sum.Head = m.counted(sum.Head)
	if sum.Reason == "roll" {
		sum.Reason = m.log[sum.Seq].Reason
	}
	p, err := json.Marshal(sum)
	if err != nil {
		return err.Error()
	}
	return m.called(string(p))
}

var (
	idPattern   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)
	namePattern = regexp.MustCompile(`conflict-([0-9a-f]{8})`)
	backPattern = regexp.MustCompile(`rollback-[0-9]+`)
)

// called replaces ids by their names.
func (m *member) called(text string) string {
	text = idPattern.ReplaceAllStringFunc(text, func(id string) string {
		if name, ok := m.names[id]; ok {
			return name
		}
		return "ID"
	})
	text = backPattern.ReplaceAllStringFunc(text, func(name string) string {
		seq, err := strconv.ParseUint(strings.TrimPrefix(name, "rollback-"), 10, 64)
		if err != nil {
			return name
		}
		return fmt.Sprintf("rollback-c%d", m.seq[seq])
	})
	return namePattern.ReplaceAllStringFunc(text, func(name string) string {
		return "conflict-" + m.tail[strings.TrimPrefix(name, "conflict-")]
	})
}

// fresh is what a fresh handle shows.
func (m *member) fresh() (string, error) {
	o := m.options()
	o.ReadOnly = true
	s, err := m.store.Open(ctx, m.id, o)
	if errors.Is(err, fs.ErrNotExist) {
		return "none", nil
	}
	if err != nil {
		return "", err
	}
	defer s.Close()
	return m.look(s)
}

// look is everything that a session shows, one thing a line.
func (m *member) look(s *coppice.Session) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "info %s\nhead %+v\nprofile %s\n", m.summary(s.Info()), m.counted(s.Head()), s.Profile())
	var state json.RawMessage
	if err := s.State(&state); err != nil {
		return "", fmt.Errorf("state: %w", err)
	}
	fmt.Fprintf(&b, "state %s\n", state)
	c, err := s.Context(ctx)
	if err != nil {
		return "", fmt.Errorf("context: %w", err)
	}
	for _, msg := range c.Messages {
		fmt.Fprintf(&b, "context %s %s\n", msg.Entry, msg.Raw)
	}
	fmt.Fprintf(&b, "settings %+v\nleaf %s\nexplicit %v\nwindow %+v\nopen %v\n", c.Settings, c.Leaf, c.Explicit, c.Window, c.OpenCalls)
	for _, d := range c.Diagnostics {
		d.Ordinal = 0 // commits count
		fmt.Fprintf(&b, "diagnostic %v\n", d)
	}
	tree, err := s.Tree(ctx)
	if err != nil {
		return "", fmt.Errorf("tree: %w", err)
	}
	fmt.Fprintf(&b, "treehead %s\n", tree.Head())
	for n := range tree.Nodes(transcript.FilterAll) {
		fmt.Fprintf(&b, "node %s below %q, %s %s %q, label %q, at %v, on the path: %v\n", n.ID, n.ParentID, n.Type, n.Role, n.Preview, n.Label, n.Time, n.OnPath)
	}
	for _, br := range tree.Branches() {
		fmt.Fprintf(&b, "branch %s at %q\n", br.Name, br.Head)
	}
	for c, err := range s.Log(ctx, coppice.Target{}) {
		if err != nil {
			return "", fmt.Errorf("log: %w", err)
		}
		c.Head, c.HeadOrd, c.Keyframe, c.Snapshot = m.counted(c.Head), 0, false, ""
		if c.Reason != "roll" {
			fmt.Fprintf(&b, "log %+v\n", c)
		}
	}
	var shots []string // of one commit in any order
	for info, err := range s.Snapshots(ctx) {
		if err != nil {
			return "", fmt.Errorf("snapshots: %w", err)
		}
		shots = append(shots, fmt.Sprintf("snapshot of %d tag %q\n", m.seq[info.Seq], info.Tag))
	}
	slices.Sort(shots)
	b.WriteString(strings.Join(shots, ""))
	return m.called(b.String()), nil
}

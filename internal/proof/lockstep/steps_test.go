package lockstep

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strings"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// kinds are the steps. do returns the answer of the call, without what may differ between stores, but for ids.
var kinds map[string]kind

type kind struct {
	weight int
	do     func(m *member, i int, s step) (string, error)
}

func init() {
	kinds = map[string]kind{
		"append":   {12, (*member).append},
		"commit":   {12, (*member).commit},
		"branch":   {4, (*member).branch},
		"edit":     {3, (*member).edit},
		"switch":   {5, (*member).switchTo},
		"label":    {3, (*member).label},
		"rollback": {3, (*member).rollback},
		"snapshot": {2, (*member).snapshot},
		"context":  {2, (*member).context},
		"claim":    {1, (*member).claim},
		"reopen":   {4, (*member).reopen},
		"lost":     {3, (*member).lost},
		"conflict": {4, (*member).conflict},
		"folded":   {2, (*member).folded},
		"fork":     {1, (*member).fork},
		"import":   {1, (*member).importFile},
		"based":    {4, (*member).based},
		"discard":  {1, (*member).discard},
		"amend":    {3, (*member).amend},
		"hide":     {2, (*member).hide},
		"info":     {2, (*member).info},
		"export":   {1, (*member).export},
		"bound":    {0, (*member).limit},
	}
}

// limit begins a session whose context soon passes its bound. It is a first step.
func (m *member) limit(_ int, s step) (string, error) {
	if m.s.Head().Commit != "" || m.dirty {
		return "it has begun", nil
	}
	m.bound = 400 + s.a
	o := m.options()
	o.ContextBytes = m.bound
	_ = m.s.Close()
	var err error
	m.s, err = m.store.Create(m.id, o)
	return "", err
}

// pick is the id of an entry; "" where there is none.
func (m *member) pick(n int) string {
	if len(m.ids) == 0 {
		return ""
	}
	return m.ids[n%len(m.ids)]
}

// target is one of the commits.
func (m *member) target(n int) coppice.Target {
	if len(m.log) == 0 {
		return coppice.Target{}
	}
	return coppice.Target{Commit: m.log[n%len(m.log)].Commit}
}

// told returns a receipt as text.
func (m *member) told(r coppice.Receipt, err error) (string, error) {
	if kerr := m.know(); kerr != nil && err == nil {
		err = kerr
	}
	return fmt.Sprintf("%+v, %d entries, kept %q, repeated %v", m.counted(r.Head), r.Entries, r.Kept, r.Repeated), err
}

func (m *member) append(i int, s step) (string, error) {
	text := fmt.Sprintf("%d said", i)
	var list []transcript.Draft
	for range 1 + s.a%2 {
		list = append(list, m.draft(text, s.b))
		s.b /= 3
	}
	ids, err := m.s.Append(ctx, list...)
	m.dirty = m.dirty || err == nil
	return fmt.Sprint(len(ids)), err
}

// draft is an entry of one of many types.
func (m *member) draft(text string, n int) transcript.Draft {
	switch n % 12 {
	case 0, 1, 2:
		return entry.User(text)
	case 3, 4:
		return entry.Assistant(text)
	case 5:
		return entry.Assistant(text, entry.Call("call1", "read", map[string]int{"n": n}))
	case 6:
		return entry.ToolResult("call1", "read", text, n%2 == 0)
	case 7:
		return entry.Model("maker", fmt.Sprint("model", n))
	case 8:
		return entry.Thinking([]string{"low", "high"}[n%2])
	case 9:
		return entry.Title(fmt.Sprint("title ", n))
	case 10:
		return entry.Compaction("summary of "+text, m.pick(n), n)
	default:
		d := entry.User(text + " below")
		d.Parent = m.pick(n)
		return d
	}
}

func (m *member) commit(i int, s step) (string, error) {
	state := map[string]any{"step": i, "number": json.Number("9007199254740993.10")}
	if s.a%4 == 0 {
		state["pad"] = strings.Repeat(fmt.Sprint("pad ", s.a), 1500)
	}
	t := coppice.Turn{State: state}
	switch s.b % 8 {
	case 0:
		t.State = nil
	case 1:
		t.State = json.RawMessage("null")
	case 2:
		t.Manager = map[string]int{"step": i}
	case 3:
		t.Reason = "own"
	case 4:
		t.Key = fmt.Sprint("key", i)
	}
	return m.turn(t)
}

// turn commits what was appended, and the turn's entries. One that is kept leaves the handle behind, which then goes to
// the newest state.
func (m *member) turn(t coppice.Turn) (string, error) {
	r, err := m.s.Commit(ctx, t)
	m.dirty = m.dirty && err != nil
	text, err := m.told(r, err)
	if err == nil && r.Kept != "" {
		err = m.s.Reload(ctx)
	}
	return text, err
}

// based is a turn that names the commit that it was made on: what was appended stays where it is.
func (m *member) based(i int, s step) (string, error) {
	t := coppice.Turn{Entries: []transcript.Draft{entry.User(fmt.Sprintf("%d on a base", i))}}
	t.Base, t.KeepBoth = m.target(s.a).Commit, s.b%3 == 0
	if n := len(m.log); n > 0 && s.b%2 == 0 {
		t.Base = m.log[n-1].Commit
	}
	if s.b%5 == 0 {
		at := m.pick(s.a + s.b)
		t.From, t.Writer = &at, fmt.Sprint("writer", s.a%2)
	}
	if s.b%7 == 0 {
		t.Base = coppice.Newest
	}
	if known := m.pick(s.a); known != "" && s.b%6 == 1 {
		d := entry.User(fmt.Sprintf("%d again", i))
		d.ID, d.OnKnownID = known, transcript.KnownIgnore
		t.Entries = append(t.Entries, d)
	}
	if t.Base == "" && t.From == nil {
		return m.turn(t)
	}
	return m.caughtUp(m.told(m.s.Commit(ctx, t)))
}

// caughtUp takes the newest state after what was made on a base: with a buffer, or where it is kept, the handle is
// behind.
func (m *member) caughtUp(text string, err error) (string, error) {
	if err == nil {
		err = m.s.Reload(ctx)
		m.dirty = m.dirty && err != nil
	}
	return text, err
}

// named returns the options of some moves: a key, and a base that mostly is the newest commit.
func (m *member) named(i int, s step) []coppice.MoveOption {
	base := m.target(s.a).Commit
	if s.a%2 == 0 {
		base = coppice.Newest
	}
	return []coppice.MoveOption{coppice.WithBase(base), coppice.WithKey(fmt.Sprint("move", i)), coppice.WithWriter("mover")}
}

func (m *member) discard(int, step) (string, error) {
	err := m.s.Discard(ctx)
	m.dirty = m.dirty && err != nil
	return "", err
}

// clean mostly commits what was appended: else a move is refused.
func (m *member) clean(s step) error {
	if !m.dirty || s.b%5 == 0 {
		return nil
	}
	_, err := m.turn(coppice.Turn{})
	return err
}

func (m *member) amend(i int, s step) (string, error) {
	d := entry.User(fmt.Sprintf("%d amended", i))
	return m.told(m.s.Amend(ctx, m.pick(s.a), d))
}

func (m *member) hide(_ int, s step) (string, error) { return m.told(m.s.Hide(ctx, m.pick(s.a))) }

func (m *member) info(i int, s step) (string, error) {
	title := fmt.Sprint("named at ", i)
	if s.a%4 == 0 {
		title = ""
	}
	return m.told(m.s.SetInfo(ctx, coppice.InfoChange{Title: &title}))
}

func (m *member) branch(i int, s step) (string, error) {
	o := &coppice.BranchOptions{}
	if s.b%3 == 0 {
		o.Name = fmt.Sprint("branch", i)
	}
	if s.b%4 == 0 {
		o.Summary = fmt.Sprint("left at step ", i)
	}
	at := m.pick(s.a)
	if s.a%9 == 0 {
		at = ""
	}
	if s.b%7 == 0 {
		return m.caughtUp(m.told(m.s.Branch(ctx, at, o, m.named(i, s)...)))
	}
	if err := m.clean(s); err != nil {
		return "", err
	}
	return m.told(m.s.Branch(ctx, at, o))
}

func (m *member) edit(i int, s step) (string, error) {
	if s.b%7 == 0 {
		d := entry.User(fmt.Sprintf("%d edited", i))
		return m.caughtUp(m.told(m.s.Edit(ctx, m.pick(s.a), d, m.named(i, s)...)))
	}
	if err := m.clean(s); err != nil {
		return "", err
	}
	return m.told(m.s.Edit(ctx, m.pick(s.a), entry.User(fmt.Sprintf("%d edited", i))))
}

func (m *member) switchTo(_ int, s step) (string, error) {
	if err := m.clean(s); err != nil {
		return "", err
	}
	tree, err := m.s.Tree(ctx)
	if err != nil {
		return "", err
	}
	if list := tree.Branches(); s.b%2 == 0 && len(list) > 0 {
		return m.told(m.s.Switch(ctx, list[s.a%len(list)].Name))
	}
	return m.told(m.s.Switch(ctx, m.pick(s.a)))
}

func (m *member) label(i int, s step) (string, error) {
	text := fmt.Sprint("label", i)
	if s.b%3 == 0 {
		text = ""
	}
	return m.told(m.s.Label(ctx, m.pick(s.a), text))
}

func (m *member) rollback(_ int, s step) (string, error) {
	if err := m.clean(s); err != nil {
		return "", err
	}
	return m.told(m.s.Rollback(ctx, m.target(s.a)))
}

func (m *member) snapshot(i int, s step) (string, error) {
	tag := fmt.Sprint("tag", i)
	if s.a%2 == 0 {
		tag = ""
	}
	info, err := m.s.Snapshot(ctx, tag)
	return fmt.Sprintf("of %d tag %q", m.seq[info.Seq], info.Tag), err
}

func (m *member) context(i int, s step) (string, error) {
	var items []transcript.Item
	for k := range s.a % 4 {
		if k == 1 {
			items = append(items, transcript.Item{Message: json.RawMessage(fmt.Sprintf(`{"role":"user","content":"inline %d"}`, i))})
		} else {
			items = append(items, transcript.Item{Entry: m.pick(s.b + k)})
		}
	}
	err := m.s.SetContext(ctx, items...)
	m.dirty = m.dirty || err == nil
	return "", err
}

func (m *member) claim(int, step) (string, error) { return m.told(m.s.Claim(ctx)) }

// reopen is the end of a process and the next one. A list then shows the session as it is.
func (m *member) reopen(_ int, s step) (string, error) {
	return m.again(s, func() error { return nil })
}

// lost is reopen after checkpoint_latest was lost, on stores where it is a cache.
func (m *member) lost(_ int, s step) (string, error) {
	return m.again(s, func() error {
		if _, appends := m.b.(backend.Appender); !appends {
			return nil
		}
		return m.b.Delete(ctx, "checkpoint_latest/"+m.id)
	})
}

func (m *member) again(s step, meanwhile func() error) (string, error) {
	left := "nothing left"
	if err := m.s.Close(); err != nil {
		left = class(err)
	}
	listed, err := m.listed()
	if err != nil {
		return "", err
	}
	if err := meanwhile(); err != nil {
		return "", err
	}
	m.both, m.dirty = s.a%2 == 0, false
	next, err := m.store.Open(ctx, m.id, m.options())
	if errors.Is(err, fs.ErrNotExist) {
		o := m.options()
		o.ContextBytes = m.bound
		next, err = m.store.Create(m.id, o)
	}
	if err != nil {
		return "", err
	}
	m.s = next
	if err := m.know(); err != nil {
		return "", err
	}
	info := m.s.Info()
	info.Source = nil // a listing does not have it
	if mine := m.summary(info); listed != nil && m.summary(*listed) != mine {
		m.odd = fmt.Sprintf("the list and a fresh handle differ:\n\t   %s\n\t   a fresh handle\n\t   %s", m.summary(*listed), mine)
	}
	return left, nil
}

// listed returns the session as a list shows it; nil = it is not there.
func (m *member) listed() (*checkpoint.Summary, error) {
	for sum, err := range m.store.List(ctx, coppice.ListOptions{}) {
		if err != nil || sum.ID == m.id {
			sum.Cursor = "" // a place in the list, which a handle does not have
			return &sum, err
		}
	}
	return nil, nil //nolint:nilnil // there is none
}

// conflict: another process commits what moves the head, and then this one does.
func (m *member) conflict(i int, s step) (string, error) {
	if _, err := m.other(i, func(o *coppice.Session) error {
		if _, err := o.Append(ctx, entry.User(fmt.Sprintf("%d by the winner", i))); err != nil {
			return err
		}
		_, err := o.Commit(ctx, coppice.Turn{State: map[string]int{"winner": i}})
		return err
	}); err != nil {
		return "", err
	}
	if _, err := m.s.Append(ctx, entry.Assistant(fmt.Sprintf("%d by the loser", i))); err != nil {
		return "", err
	}
	m.dirty = true
	loser := coppice.Turn{State: map[string]int{"loser": i}}
	text, err := m.turn(loser)
	if err == nil {
		return text, nil
	}
	said := class(err)
	if s.a%3 == 0 {
		err = m.s.Reload(ctx)
		m.dirty = m.dirty && err != nil
		return said + ", reloaded", err
	}
	loser.KeepBoth = true
	text, err = m.turn(loser)
	return said + ", kept: " + text, err
}

// folded: another process commits what moves nothing, and then this one commits.
func (m *member) folded(i int, s step) (string, error) {
	if _, err := m.other(i, func(o *coppice.Session) error {
		_, err := o.Label(ctx, m.pick(s.a), fmt.Sprint("theirs", i))
		return err
	}); err != nil {
		return "", err
	}
	text, err := m.turn(coppice.Turn{State: map[string]int{"folded": i}})
	if err == nil {
		return text, nil
	}
	m.odd = "a label by another process is an error: " + class(err)
	err = m.s.Reload(ctx)
	m.dirty = m.dirty && err != nil
	return "reloaded", err
}

// other is a process that opens the session and closes it.
func (m *member) other(i int, do func(o *coppice.Session) error) (string, error) {
	store, err := m.newStore("other", byte(2+i))
	if err != nil {
		return "", err
	}
	o, err := store.Open(ctx, m.id, m.options())
	if err != nil {
		return "", err
	}
	return "", errors.Join(do(o), o.Close())
}

// fork continues in a fork of the session.
func (m *member) fork(i int, s step) (string, error) {
	id := fmt.Sprint("fork", i)
	f, err := m.s.Fork(ctx, m.target(s.a), id, nil)
	if err != nil {
		return "", err
	}
	_ = m.s.Close() // what was pending is lost, on each store alike
	m.s, m.id, m.dirty, m.both = f, id, false, false
	return "", nil
}

// importFile continues in a session that is made of a small file.
func (m *member) importFile(i int, s step) (string, error) {
	id := fmt.Sprint("import", i)
	o := m.options()
	o.ID, o.ContextBytes = id, m.bound
	f, err := m.store.Import(ctx, lines(s), o)
	if err != nil {
		return "", err
	}
	_ = m.s.Close()
	m.s, m.id, m.dirty, m.both = f, id, false, false
	return "", nil
}

// lines are those of a small file: a tree, with a parent that comes late and an id that comes twice.
func lines(s step) iter.Seq2[transcript.Draft, error] {
	return func(yield func(transcript.Draft, error) bool) {
		if !yield(entry.Line([]byte(`{"type":"session","version":3,"id":"old","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/old","title":"old"}`)), nil) {
			return
		}
		for k := range 2 + s.a%8 {
			parent := "null"
			if k > 0 {
				parent = fmt.Sprintf("%q", fmt.Sprint("m", (s.b+k*k)%(k+1)))
			}
			role := []string{"user", "assistant"}[k%2]
			line := fmt.Appendf(nil, `{"type":"message","id":"m%d","parentId":%s,"timestamp":"2026-01-01T00:00:0%d.000Z","message":{"role":%q,"content":"line %d"}}`, k%7, parent, k, role, k)
			if !yield(entry.Line(line), nil) {
				return
			}
		}
	}
}

// export returns the session as a file, without commits: those hold checksums and keys.
func (m *member) export(int, step) (string, error) {
	var out, pi bytes.Buffer
	err := errors.Join(m.store.Export(ctx, m.id, &out), m.store.ExportPi(ctx, m.id, &pi))
	var text strings.Builder
	for line := range strings.SplitSeq(out.String()+pi.String(), "\n") {
		if !strings.Contains(line, "coppice.commit") {
			fmt.Fprintln(&text, line)
		}
	}
	return text.String(), err
}

package coppice_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/claudecode"
	"github.com/coppice-go/coppice/transcript"
)

var writeCompat = flag.Bool("write-compat", false, "write a new compatibility store; never over one that is there")

// The sessions of a compatibility store that tests name.
const (
	compatGrown   = "pi"
	compatKeyed   = "keyed"
	compatTorn    = "torn" // on disk alone
	compatDeleted = "gone"
)

// compatPiLines are the lines of a pi session, header first: settings, a tool call, an edit, a label, a
// compaction, fields and an unknown type, and one line that the session grows by in tests.
var compatPiLines = []string{
	`{"type":"session","version":3,"id":"pi-file","timestamp":"2026-02-03T08:00:00.000Z","cwd":"/home/you/boat","future":{"kept":true}}`,
	`{"type":"model_change","id":"m1","parentId":null,"timestamp":"2026-02-03T08:00:01.000Z","provider":"anthropic","modelId":"claude-x"}`,
	`{"type":"thinking_level_change","id":"t1","parentId":"m1","timestamp":"2026-02-03T08:00:02.000Z","thinkingLevel":"high"}`,
	`{"type":"message","id":"q1","parentId":"t1","timestamp":"2026-02-03T08:00:03.000Z","message":{"role":"user","content":"List the ropes, größte zuerst ⚓","timestamp":1}}`,
	`{"type":"message","id":"c1","parentId":"q1","timestamp":"2026-02-03T08:00:04.000Z","message":{"role":"assistant","content":[{"type":"thinking","thinking":"look"},{"type":"toolCall","id":"call-1","name":"bash","arguments":{"command":"ls ropes"}}],"stopReason":"toolUse","usage":{"input":10,"output":5},"timestamp":2}}`,
	`{"type":"message","id":"r1","parentId":"c1","timestamp":"2026-02-03T08:00:05.000Z","message":{"role":"toolResult","toolCallId":"call-1","toolName":"bash","content":[{"type":"text","text":"mainsheet\njib"}],"isError":false,"timestamp":3}}`,
	`{"type":"message","id":"a1","parentId":"r1","timestamp":"2026-02-03T08:00:06.000Z","message":{"role":"assistant","content":[{"type":"text","text":"The mainsheet, then the jib sheet."}],"stopReason":"stop","timestamp":4},"extra":[1, 2.50]}`,
	`{"type":"unknown_thing","id":"x1","parentId":"a1","x":{"y":null}}`,
	`{"type":"label","id":"l1","parentId":"x1","timestamp":"2026-02-03T08:00:07.000Z","targetId":"a1","label":"ropes"}`,
	// what the first import does not have yet
	`{"type":"message","id":"q2","parentId":"t1","timestamp":"2026-02-03T08:00:08.000Z","message":{"role":"user","content":"List the sails instead","timestamp":5}}`,
	`{"type":"message","id":"a2","parentId":"q2","timestamp":"2026-02-03T08:00:09.000Z","message":{"role":"assistant","content":[{"type":"text","text":"Main, jib, spinnaker."}],"stopReason":"stop","timestamp":6}}`,
	`{"type":"compaction","id":"k1","parentId":"a2","timestamp":"2026-02-03T08:00:10.000Z","summary":"Sails were listed.","firstKeptEntryId":"a2","tokensBefore":100}`,
	`{"type":"message","id":"q3","parentId":"k1","timestamp":"2026-02-03T08:00:11.000Z","message":{"role":"user","content":"Which one is torn?","timestamp":7}}`,
	// what the stored session does not have yet
	`{"type":"message","id":"a3","parentId":"q3","timestamp":"2026-02-03T08:00:12.000Z","message":{"role":"assistant","content":[{"type":"text","text":"The spinnaker."}],"stopReason":"stop","timestamp":8}}`,
}

// compatPiFirst and compatPiSecond are how many lines the session was imported and grown with.
const (
	compatPiFirst  = 9
	compatPiSecond = 13
)

func compatPi(n int) []byte { return []byte(strings.Join(compatPiLines[:n], "\n") + "\n") }

// compatClaude is a Claude Code session: a title, a tool call with its result, an edited question.
const compatClaude = `{"type":"summary","summary":"Tides","leafUuid":"10000000-0000-4000-8000-000000000006"}
{"parentUuid":null,"isSidechain":false,"userType":"external","cwd":"/home/you/tides","sessionId":"20000000-0000-4000-8000-000000000001","version":"2.0.20","gitBranch":"main","type":"user","message":{"role":"user","content":"When is high water at the pier?"},"uuid":"10000000-0000-4000-8000-000000000001","timestamp":"2026-02-04T09:00:01.000Z"}
{"parentUuid":"10000000-0000-4000-8000-000000000001","isSidechain":false,"userType":"external","cwd":"/home/you/tides","sessionId":"20000000-0000-4000-8000-000000000001","version":"2.0.20","gitBranch":"main","type":"assistant","message":{"id":"msg_01","type":"message","role":"assistant","model":"claude-y","content":[{"type":"tool_use","id":"toolu_01","name":"Read","input":{"file_path":"/home/you/tides/table.txt"}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":12,"output_tokens":7}},"requestId":"req_01","uuid":"10000000-0000-4000-8000-000000000002","timestamp":"2026-02-04T09:00:02.000Z"}
{"parentUuid":"10000000-0000-4000-8000-000000000002","isSidechain":false,"userType":"external","cwd":"/home/you/tides","sessionId":"20000000-0000-4000-8000-000000000001","version":"2.0.20","gitBranch":"main","type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_01","type":"tool_result","content":"pier 11:42"}]},"uuid":"10000000-0000-4000-8000-000000000003","timestamp":"2026-02-04T09:00:03.000Z"}
{"parentUuid":"10000000-0000-4000-8000-000000000003","isSidechain":false,"userType":"external","cwd":"/home/you/tides","sessionId":"20000000-0000-4000-8000-000000000001","version":"2.0.20","gitBranch":"main","type":"assistant","message":{"id":"msg_02","type":"message","role":"assistant","model":"claude-y","content":[{"type":"text","text":"At 11:42."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":20,"output_tokens":5}},"requestId":"req_02","uuid":"10000000-0000-4000-8000-000000000004","timestamp":"2026-02-04T09:00:04.000Z"}
{"parentUuid":null,"isSidechain":false,"userType":"external","cwd":"/home/you/tides","sessionId":"20000000-0000-4000-8000-000000000001","version":"2.0.20","gitBranch":"main","type":"user","message":{"role":"user","content":"When is low water at the pier?"},"uuid":"10000000-0000-4000-8000-000000000005","timestamp":"2026-02-04T09:00:05.000Z"}
{"parentUuid":"10000000-0000-4000-8000-000000000005","isSidechain":false,"userType":"external","cwd":"/home/you/tides","sessionId":"20000000-0000-4000-8000-000000000001","version":"2.0.20","gitBranch":"main","type":"assistant","message":{"id":"msg_03","type":"message","role":"assistant","model":"claude-y","content":[{"type":"text","text":"At 17:55."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":5}},"requestId":"req_03","uuid":"10000000-0000-4000-8000-000000000006","timestamp":"2026-02-04T09:00:06.000Z"}
`

// TestWriteCompatStore writes the compatibility store of this release. It was run once for each folder below
// testdata/compat; what later code would write does not matter to what is there.
//
//	go test -run TestWriteCompatStore . -write-compat
func TestWriteCompatStore(t *testing.T) {
	if !*writeCompat {
		t.Skip("writes files: run it with -write-compat, for a new version only")
	}
	if _, err := os.Stat(compatDir); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%s is there, or cannot be seen: a store that was written is never changed (%v)", compatDir, err)
	}
	dir := filepath.Join(compatDir, "local")
	disk := must(local.Open(dir, nil))(t)
	l := newCompatLife(t, disk, 4)
	l.everything()
	l.torn(dir)
	ok(t, l.store.Close())
	ok(t, disk.Close())
	dropDotFiles(t, dir)

	mem := memory.New()
	l = newCompatLife(t, mem, 1)
	l.everything()
	ok(t, l.store.Close())
	for key, p := range objects(t, mem) {
		file := filepath.Join(compatDir, "objects", filepath.FromSlash(key))
		ok(t, os.MkdirAll(filepath.Dir(file), 0o755))
		ok(t, os.WriteFile(file, []byte(p), 0o600))
	}
	for kind, open := range compatKinds {
		store := compatStore(t, open(t))
		golden := map[string]compatReport{}
		for _, sum := range collect(t, store.List(bg, coppice.ListOptions{})) {
			golden[sum.ID] = compatReportOf(t, store, sum.ID)
		}
		p := must(json.MarshalIndent(golden, "", "\t"))(t)
		ok(t, os.WriteFile(filepath.Join(compatDir, kind+".json"), append(p, '\n'), 0o600))
	}
}

// dropDotFiles removes the lock files and the folder of temporary files: a store is whole without them.
func dropDotFiles(t *testing.T, dir string) {
	t.Helper()
	ok(t, os.RemoveAll(filepath.Join(dir, ".tmp")))
	ok(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == ".lock" {
			return os.Remove(name)
		}
		return err
	}))
}

// compatLife writes sessions. Handles live for a few turns and are closed, so that no background work runs
// at the same time: with a fixed clock and fixed randomness two runs write equal bytes.
type compatLife struct {
	t     *testing.T
	b     backend.Backend
	store *coppice.Store
	turns int // of one handle
}

func newCompatLife(t *testing.T, b backend.Backend, turns int) *compatLife {
	t.Helper()
	l := &compatLife{t: t, b: b, turns: turns}
	l.store = newStore(t, b, &coppice.Options{
		Now: clockAt(time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC)), Rand: rand.NewChaCha8([32]byte{byte(turns)}), Writer: "compat:1",
	})
	return l
}

// visit has a handle of its own do something; create is nil for a session that is there.
func (l *compatLife) visit(id string, create *coppice.SessionOptions, do func(s *coppice.Session)) {
	l.t.Helper()
	var s *coppice.Session
	if create != nil {
		s = must(l.store.Create(id, create))(l.t)
	} else {
		s = open(l.t, l.store, id)
	}
	do(s)
	ok(l.t, s.Close())
}

func (l *compatLife) everything() {
	l.imports()
	l.branched()
	l.rolledBack()
	l.keyed()
	l.conflict()
	l.long()
	l.deleted()
}

func (l *compatLife) imports() {
	lines, o := fileLines(compatPi(compatPiFirst))
	o.ID, o.Profile = compatGrown, transcript.Pi
	ok(l.t, must(l.store.Import(bg, lines, o))(l.t).Close())
	lines, o = fileLines(compatPi(compatPiSecond))
	o.ID = compatGrown
	s, _, err := l.store.Grow(bg, lines, o)
	ok(l.t, err)
	ok(l.t, s.Close())

	r := claudecode.NewReader(interop.Source{
		Name: "20000000-0000-4000-8000-000000000001.jsonl",
		Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(compatClaude)), nil },
	}, interop.Options{Now: time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)})
	h := must(r.Header())(l.t)
	s = must(l.store.Import(bg, func(yield func(transcript.Draft, error) bool) {
		if !yield(entry.Line(h.Raw), nil) {
			return
		}
		for {
			d, err := r.Next()
			if errors.Is(err, io.EOF) || !yield(d, err) || err != nil {
				return
			}
		}
	}, &coppice.SessionOptions{
		ID: "claude", Title: h.Title, Cwd: h.Cwd,
		Original: func() (io.Reader, error) { return strings.NewReader(compatClaude), nil },
	}))(l.t)
	ok(l.t, r.Close())
	ok(l.t, s.Close())
}

// branched has names, labels, an edit, moves and a summary of a line that was left; and a fork of it.
func (l *compatLife) branched() {
	const id = "Branched.1" // upper case is escaped in keys
	var said []string
	l.visit(id, &coppice.SessionOptions{Title: "Branches", Cwd: "/home/you"}, func(s *coppice.Session) {
		said = say(l.t, s, "u1", "a1", "u2", "a2")
		must(s.Commit(bg, coppice.Turn{State: state{Turns: 1}, Manager: map[string]int{"window": 7}, Reason: "first"}))(l.t)
		must(s.Label(bg, said[1], "good answer"))(l.t)
	})
	l.visit(id, nil, func(s *coppice.Session) {
		must(s.Branch(bg, said[1], &coppice.BranchOptions{Name: "other", Summary: "They spoke of u2."}))(l.t)
		say(l.t, s, "u3", "a3")
		commit(l.t, s, state{Turns: 2, Note: "other"})
		must(s.Edit(bg, said[2], entry.User("u2 edited")))(l.t)
		say(l.t, s, "a2 edited")
		commit(l.t, s, state{Turns: 3})
	})
	l.visit(id, nil, func(s *coppice.Session) {
		must(s.Switch(bg, "other"))(l.t)
		must(s.Append(bg, entry.Title("Branches, renamed"), entry.Model("openai", "gpt-z"), entry.Thinking("low")))(l.t)
		commit(l.t, s, nil)
		must(s.Switch(bg, said[3]))(l.t)
		must(s.Label(bg, said[0], "start"))(l.t)
		must(s.Label(bg, said[1], ""))(l.t)
		must(s.Switch(bg, "other"))(l.t)
		f := must(s.Fork(bg, coppice.Target{Seq: 1}, "fork", nil))(l.t)
		say(l.t, f, "u of the fork")
		commit(l.t, f, state{Turns: 9})
		ok(l.t, f.Close())
	})
}

func (l *compatLife) rolledBack() {
	const id = "back"
	l.visit(id, &coppice.SessionOptions{Profile: transcript.Coppice}, func(s *coppice.Session) {
		for i := 1; i <= 3; i++ {
			say(l.t, s, fmt.Sprintf("u%d", i), fmt.Sprintf("a%d", i))
			commit(l.t, s, state{Turns: i})
		}
		must(s.Snapshot(bg, "trusted"))(l.t)
	})
	l.visit(id, nil, func(s *coppice.Session) {
		say(l.t, s, "u4", "a4 was wrong")
		commit(l.t, s, state{Turns: 4})
		must(s.Rollback(bg, coppice.Target{Tag: "trusted"}))(l.t)
		say(l.t, s, "u5", "a5")
		commit(l.t, s, state{Turns: 5})
		must(s.Rollback(bg, coppice.Target{Seq: 2}))(l.t)
	})
}

// keyed has idempotency keys, a state that was cleared and set again, and an explicit context.
func (l *compatLife) keyed() {
	l.visit(compatKeyed, &coppice.SessionOptions{}, func(s *coppice.Session) {
		for i := 1; i <= 3; i++ {
			say(l.t, s, fmt.Sprintf("u%d", i), fmt.Sprintf("a%d", i))
			must(s.Commit(bg, coppice.Turn{State: state{Turns: i}, Key: fmt.Sprintf("job-%d", i)}))(l.t)
		}
		must(s.Commit(bg, coppice.Turn{State: json.RawMessage("null"), Key: "clear"}))(l.t)
	})
	l.visit(compatKeyed, nil, func(s *coppice.Session) {
		ok(l.t, s.SetContext(bg, itemOf(`{"role":"user","content":"so far"}`), itemFor(s.Head().Entry)))
		say(l.t, s, "u4")
		must(s.Commit(bg, coppice.Turn{State: json.RawMessage(`{"turns":4,"exact":1.50,"html":"<&>"}`), Key: "job-4", Reason: "compaction"}))(l.t)
	})
}

// conflict has turns that lost, kept by Turn.KeepBoth and by the handle's, and a claim.
func (l *compatLife) conflict() {
	const id = "conflict"
	l.visit(id, &coppice.SessionOptions{}, func(s *coppice.Session) {
		say(l.t, s, "u1", "a1")
		commit(l.t, s, state{Turns: 1})
	})
	l.visit(id, nil, func(s *coppice.Session) {
		l.visit(id, nil, func(winner *coppice.Session) {
			say(l.t, winner, "u2 won")
			commit(l.t, winner, state{Turns: 2, Note: "won"})
		})
		say(l.t, s, "u2 lost", "a2 lost")
		lost := coppice.Turn{State: state{Turns: 2, Note: "lost"}}
		if _, err := s.Commit(bg, lost); !errors.Is(err, coppice.ErrConflict) {
			l.t.Fatalf("commit: %v", err)
		}
		lost.KeepBoth = true
		must(s.Commit(bg, lost))(l.t)
		l.visit(id, nil, func(winner *coppice.Session) {
			say(l.t, winner, "a2 won")
			commit(l.t, winner, state{Turns: 3, Note: "won"})
		})
	})
	both := must(l.store.Open(bg, id, &coppice.SessionOptions{KeepBoth: true}))(l.t)
	l.visit(id, nil, func(winner *coppice.Session) {
		say(l.t, winner, "u3 won")
		commit(l.t, winner, nil)
	})
	say(l.t, both, "u3 lost")
	same(l.t, "kept", commit(l.t, both, state{Turns: 4, Note: "lost"}).Kept != "", true)
	must(both.Claim(bg))(l.t)
	ok(l.t, both.Close())
}

// long has sealed segments, commits beyond the lineage, and an image that is an object of its own.
func (l *compatLife) long() {
	const id, turns = "long", 66
	for i := 1; i <= turns; {
		var first *coppice.SessionOptions
		if i == 1 {
			first = &coppice.SessionOptions{Title: "Long"}
		}
		l.visit(id, first, func(s *coppice.Session) {
			for n := 0; n < l.turns && i <= turns; n++ {
				if i == 1 {
					picture := bytes.Repeat([]byte("not quite a png "), 1600)
					must(s.Append(bg, entry.User("look", entry.Image("image/png", picture))))(l.t)
				}
				line := fmt.Sprintf("turn %d of the log, wind south-west %d; ", i, i%7)
				say(l.t, s, strings.Repeat("u "+line, 90), strings.Repeat("a "+line, 90))
				commit(l.t, s, state{Turns: i})
				i++
			}
		})
	}
}

func (l *compatLife) deleted() {
	l.visit(compatDeleted, &coppice.SessionOptions{Title: "Gone"}, func(s *coppice.Session) {
		say(l.t, s, "u1", "a1")
		commit(l.t, s, state{Turns: 1})
		must(s.Snapshot(bg, "x"))(l.t)
	})
	ok(l.t, l.store.Delete(bg, compatDeleted))
}

// torn has a tail that was moved aside, commits that checkpoint_latest does not know, and the first bytes of a
// line whose writer died. Its last handle is never closed, as that writer's was not.
func (l *compatLife) torn(dir string) {
	l.t.Helper()
	l.visit(compatTorn, &coppice.SessionOptions{Title: "Torn"}, func(s *coppice.Session) {
		say(l.t, s, "u1", "a1")
		commit(l.t, s, state{Turns: 1})
	})
	const half = `{"type":"message","id":"01900000-0000-7000-8000-00000000000`
	appendTo(l.t, activeSegment(l.t, dir, compatTorn), half+`1","parentId":"`)
	l.visit(compatTorn, nil, func(s *coppice.Session) {
		say(l.t, s, "u2", "a2")
		commit(l.t, s, state{Turns: 2})
	})
	dies := newStore(l.t, l.b, &coppice.Options{
		Now: clockAt(time.Date(2026, 11, 23, 7, 0, 0, 0, time.UTC)), Rand: rand.NewChaCha8([32]byte{77}), Writer: "compat:2",
	})
	s := open(l.t, dies, compatTorn)
	first := slices.Collect(must(s.Tree(bg))(l.t).Path(s.Head().Entry))[0].ID
	say(l.t, s, "u3", "a3")
	must(s.Commit(bg, coppice.Turn{State: state{Turns: 3}, Key: "job-3"}))(l.t)
	must(s.Branch(bg, first, &coppice.BranchOptions{Name: "again"}))(l.t)
	say(l.t, s, "u4", "a4")
	commit(l.t, s, state{Turns: 4})
	appendTo(l.t, activeSegment(l.t, dir, compatTorn), half+`2","parentId":"0190`)
}

func activeSegment(t testing.TB, dir, id string) string {
	t.Helper()
	files := must(filepath.Glob(filepath.Join(dir, "sessions", id, "transcript", "*.jsonl")))(t)
	if len(files) != 1 {
		t.Fatalf("%d active segments of %s", len(files), id)
	}
	return files[0]
}

func appendTo(t testing.TB, file, text string) {
	t.Helper()
	f := must(os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0))(t)
	_, err := f.WriteString(text)
	ok(t, errors.Join(err, f.Close()))
}

package importer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/formats"
)

// grownFile makes a session of a program in turns: a prompt, and calls with their results before the answer. Its names
// are those that the programs use.
type grownFile struct {
	format interop.Format
	name   string
	bytes.Buffer
	n    int // lines
	last any // id of the line before; nil = none
	seed int
}

// object is an object of JSON.
type object map[string]any

const grownID = "019b0000-1111-7222-8333-444444444444"

func newGrownFile(format interop.Format) *grownFile {
	f := &grownFile{format: format, name: grownID + ".jsonl"}
	switch format {
	case interop.Codex:
		f.name = "rollout-2026-02-01T00-00-00-" + grownID + ".jsonl"
		f.codex("session_meta", object{"id": grownID, "cwd": "/w", "cli_version": "0.80.0"})
	case interop.Pi:
		f.line(object{"type": "session", "version": 3, "id": grownID, "cwd": "/w"})
	default:
	}
	return f
}

// lineID is the id of the nth line.
func lineID(n int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012x", n, n) }

// line writes a line with a time.
func (f *grownFile) line(o object) {
	o["timestamp"] = time.UnixMilli(1_769_904_000_000 + int64(f.n)).UTC().Format("2006-01-02T15:04:05.000Z")
	f.n++
	p, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	f.Write(append(p, '\n'))
}

func (f *grownFile) codex(kind string, payload object) {
	f.line(object{"type": kind, "payload": payload})
}

func (f *grownFile) event(kind string, payload object) {
	payload["type"] = kind
	f.codex("event_msg", payload)
}

func (f *grownFile) item(kind string, payload object) {
	payload["type"] = kind
	f.codex("response_item", payload)
}

// counted writes how many tokens an answer took.
func (f *grownFile) counted() {
	f.event("token_count", object{"info": object{
		"total_token_usage": object{"input_tokens": f.seed, "output_tokens": f.seed},
		"last_token_usage":  object{"input_tokens": 1, "output_tokens": 1},
	}})
}

// claude writes a line that continues from the one before.
func (f *grownFile) claude(kind string, o object) {
	id := lineID(f.n)
	o["type"], o["uuid"], o["parentUuid"], o["sessionId"] = kind, id, f.last, grownID
	o["isSidechain"], o["cwd"], o["version"] = false, "/w", "2.1.0"
	f.line(o)
	f.last = id
}

// pi writes an entry that continues from the one before.
func (f *grownFile) pi(kind string, o object) {
	id := lineID(f.n)
	o["type"], o["id"], o["parentId"] = kind, id, f.last
	f.line(o)
	f.last = id
}

// message makes a message; of the model where there is a reason why it stopped.
func (f *grownFile) message(role, stop string, content any) object {
	m := object{"role": role, "content": content}
	switch {
	case stop == "":
	case f.format == interop.Pi:
		m["provider"], m["model"], m["stopReason"] = "p", "m", stop
	default:
		m["id"], m["model"], m["stop_reason"] = fmt.Sprintf("m%d", f.seed), "x", stop
	}
	if f.format == interop.Pi {
		m["timestamp"] = 1
	}
	return object{"message": m}
}

// turn writes a turn with steps of the model.
func (f *grownFile) turn(steps int) {
	f.prompt()
	for range steps {
		f.step()
	}
	f.answer()
}

func (f *grownFile) prompt() {
	f.seed++
	text := words(f.seed, 20)
	switch f.format {
	case interop.Codex:
		f.event("task_started", object{"turn_id": fmt.Sprintf("t%d", f.seed)})
		f.codex("turn_context", object{"cwd": "/w", "model": "gpt-5", "effort": "high"})
		f.item("message", object{"role": "user", "content": []object{{"type": "input_text", "text": text}}})
		f.event("user_message", object{"message": text})
	case interop.Pi:
		f.pi("message", f.message("user", "", text))
	default:
		f.claude("user", f.message("user", "", text))
	}
}

// step writes a call and its result.
func (f *grownFile) step() {
	f.seed++
	text, out, call := words(f.seed, 10), words(f.seed, 30+f.seed%4*100), fmt.Sprintf("c%d", f.seed)
	said := object{"type": "text", "text": text}
	switch f.format {
	case interop.Codex:
		f.item("reasoning", object{"summary": []object{{"type": "summary_text", "text": text}}})
		f.event("agent_reasoning", object{"text": text})
		f.item("function_call", object{"name": "shell", "arguments": "{}", "call_id": call})
		f.counted()
		f.item("function_call_output", object{"call_id": call, "output": out})
	case interop.Pi:
		f.pi("message", f.message("assistant", "toolUse",
			[]object{said, {"type": "toolCall", "id": call, "name": "bash", "arguments": object{}}}))
		result := f.message("toolResult", "", []object{{"type": "text", "text": out}})
		m := result["message"].(object)
		m["toolCallId"], m["toolName"], m["isError"] = call, "bash", false
		f.pi("message", result)
	default:
		f.claude("assistant", f.message("assistant", "tool_use", []object{said}))
		f.claude("assistant", f.message("assistant", "tool_use",
			[]object{{"type": "tool_use", "id": call, "name": "Bash", "input": object{}}}))
		f.claude("user", f.message("user", "", []object{{"type": "tool_result", "tool_use_id": call, "content": out}}))
		f.line(object{"type": "ai-title", "aiTitle": fmt.Sprintf("title %d", f.seed/40), "sessionId": grownID})
	}
}

func (f *grownFile) answer() {
	f.seed++
	text := words(f.seed, 30)
	switch f.format {
	case interop.Codex:
		f.event("agent_message", object{"message": text})
		f.item("message", object{"role": "assistant", "content": []object{{"type": "output_text", "text": text}}})
		f.counted()
		f.event("task_complete", object{})
	case interop.Pi:
		f.pi("message", f.message("assistant", "stop", []object{{"type": "text", "text": text}}))
	default:
		f.claude("assistant", f.message("assistant", "end_turn", []object{{"type": "text", "text": text}}))
	}
}

// compact writes a compaction, which keeps nothing.
func (f *grownFile) compact() {
	switch f.format {
	case interop.Codex:
		f.codex("compacted", object{"message": "short", "replacement_history": []object{
			{"type": "message", "role": "user", "content": []object{{"type": "input_text", "text": "short"}}},
		}})
	case interop.Pi:
		f.pi("compaction", object{"summary": "short", "firstKeptEntryId": lineID(f.n), "tokensBefore": 1})
	default:
		last := f.last
		f.last = nil
		f.claude("system", object{
			"subtype": "compact_boundary", "logicalParentUuid": last, "compactMetadata": object{"preTokens": 7},
		})
		short := f.message("user", "", "short")
		short["isCompactSummary"] = true
		f.claude("user", short)
	}
}

// endFormats are those of which the end of a grown file is enough.
var endFormats = []interop.Format{interop.ClaudeCode, interop.Codex, interop.Pi}

// grownDir is a folder with one file, and what is read of it.
type grownDir struct {
	path string
	read int64
	at   time.Time
}

func newGrownDir(t *testing.T, name string) *grownDir {
	return &grownDir{path: filepath.Join(t.TempDir(), name), at: time.Unix(1_780_000_000, 0)}
}

func (f *grownDir) write(t *testing.T, p []byte) {
	t.Helper()
	if err := os.WriteFile(f.path, p, 0o600); err != nil {
		t.Fatal(err)
	}
	f.at = f.at.Add(time.Minute)
	if err := os.Chtimes(f.path, f.at, f.at); err != nil {
		t.Fatal(err)
	}
}

// bring imports the file; ended: only its end was read.
func (f *grownDir) bring(t *testing.T, st *coppice.Store) (res Result, ended bool) {
	t.Helper()
	var b Batch
	at, o := Find(t.Context(), []string{f.path})[0], growing()
	known, s, err := b.known(t.Context(), st, at, o)
	if err == nil && s != nil && !known.Unchanged {
		src := at.source()
		open := src.Open
		src.Open = func() (io.ReadCloser, error) {
			in, err := open()
			return &watched{in.(interface {
				sized
				io.ReadCloser
			}), &f.read}, err
		}
		f.read = 0
		res, ended, err = resumed(t.Context(), st, src, s, o)
	}
	if err == nil && !ended {
		res, err = b.Import(t.Context(), st, at, o)
	}
	if err != nil {
		t.Fatal(err)
	}
	return res, ended
}

// watched counts the bytes that are read of a file.
type watched struct {
	in interface {
		sized
		io.ReadCloser
	}
	n *int64
}

func (w *watched) Size() int64  { return w.in.Size() }
func (w *watched) Close() error { return w.in.Close() }

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.in.Read(p)
	*w.n += int64(n)
	return n, err
}

func (w *watched) ReadAt(p []byte, off int64) (int, error) {
	n, err := w.in.ReadAt(p, off)
	*w.n += int64(n)
	return n, err
}

// fresh is the session of a file in a store of its own.
func fresh(t *testing.T, f *grownDir) shown {
	t.Helper()
	st := storeOn(t, memory.NewAppender())
	r, _ := f.bring(t, st)
	return show(t, st, r.Session)
}

// What is added to a large file costs a bounded part of it, and makes the session that the whole file makes.
func TestSizeEndOfAGrownFile(t *testing.T) {
	testutil.SkipLong(t)
	const most = 4<<10 + 4*64<<10 // bytes: the beginning, the end for its hash and the next one, what is read again
	for _, format := range endFormats {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			f := newGrownFile(format)
			for f.Len() < 5<<20 {
				if f.turn(5); f.Len()%(1<<19) < 16<<10 {
					f.compact()
				}
			}
			f.turn(5)
			dir, st := newGrownDir(t, f.name), storeOn(t, memory.NewAppender())
			dir.write(t, f.Bytes())
			first, _ := dir.bring(t, st)
			said := first.Messages
			for i, add := range []func(){f.prompt, f.step, f.step, f.answer, func() { f.turn(3) }, f.prompt} {
				was := first.Entries
				add()
				dir.write(t, f.Bytes())
				r, ended := dir.bring(t, st)
				if !ended || dir.read > most || !r.Grew || r.Added == 0 || r.Entries != was+r.Added || r.BadLines > 0 {
					t.Errorf("growth %d: its end %v, %d bytes read: %+v", i, ended, dir.read, r)
				}
				first, said = r, said+r.Messages
			}
			want := fresh(t, dir)
			if whole, _ := dir.bring(t, storeOn(t, memory.NewAppender())); said != whole.Messages {
				t.Errorf("%d messages in pieces, %d at once", said, whole.Messages)
			}
			if diff := cmp.Diff(want, show(t, st, first.Session)); diff != "" {
				t.Error(diff)
			}
			if whole, err := os.ReadFile(dir.path); err != nil || want.Original != string(whole) {
				t.Errorf("the original has %d bytes: %v", len(want.Original), err)
			}
		})
	}
}

// A file under a name that has no id is known by its first lines: no more than its end is converted.
func TestSizeOfAFileUnderAnotherName(t *testing.T) {
	testutil.SkipLong(t)
	for _, format := range endFormats {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			f := newGrownFile(format)
			for f.Len() < 5<<20 {
				f.turn(5)
			}
			dir, st := newGrownDir(t, "mine.jsonl"), storeOn(t, memory.NewAppender())
			o, read := growing(), int64(0)
			o.Read = func(n int64) { read += n }
			bring := func() (r Result, n int64) {
				read = 0
				return take(t, st, o, dir.path)[0], read
			}
			dir.write(t, f.Bytes())
			first, _ := bring()
			if r, n := bring(); !r.Unchanged || r.Session != first.Session || n > 0 {
				t.Errorf("of the same file %d bytes are converted: %+v", n, r)
			}
			f.turn(5)
			dir.write(t, f.Bytes())
			if r, n := bring(); !r.Grew || r.Session != first.Session || n > 256<<10 {
				t.Errorf("of a file that grew %d bytes are converted: %+v", n, r)
			}
		})
	}
}

// seekable is a file in memory that counts the bytes that are read.
type seekable struct {
	*bytes.Reader
	n *int64
}

func (seekable) Close() error { return nil }

func (s seekable) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	*s.n += int64(n)
	return n, err
}

// What of a file that grew is settled is found out from its end alone.
func TestSizeSettledByTheEnd(t *testing.T) {
	testutil.SkipLong(t)
	for _, format := range endFormats {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			f := newGrownFile(format)
			for f.Len() < 1<<20 {
				f.turn(5)
			}
			dir, st := newGrownDir(t, f.name), storeOn(t, memory.NewAppender())
			turn := func() { f.turn(3) }
			for i, add := range []func(){f.prompt, f.step, f.step, f.answer, turn, f.compact, f.prompt} {
				dir.write(t, f.Bytes())
				r, _ := dir.bring(t, st)
				was := f.Len()
				add()
				for _, end := range lineEnds(f.Bytes()[was:]) {
					now, read := f.Bytes()[:was+end], int64(0)
					src := interop.Source{Name: f.name, Open: func() (io.ReadCloser, error) {
						return seekable{bytes.NewReader(now), &read}, nil
					}}
					whole, err := formats.Stable(format, src, 0)
					read = 0
					n, eerr := formats.Stable(format, src, r.From)
					if n != whole || err != nil || eerr != nil || read > 160<<10 && r.From > 0 {
						t.Errorf("growth %d: %d settled of %d bytes, not %d; %d bytes read, %v, %v",
							i, n, len(now), whole, read, err, eerr)
					}
				}
			}
		})
	}
}

// A file that is imported in pieces, wherever it was cut, is the session of one import.
func TestSizePiecesOfAFile(t *testing.T) {
	testutil.SkipLong(t)
	all := files(t)
	for _, format := range endFormats {
		f := newGrownFile(format)
		for range 12 {
			f.turn(3)
		}
		all[f.name+" of "+string(format)] = f.Bytes()
	}
	ends := 0
	for name, whole := range all {
		lines := bytes.SplitAfter(bytes.TrimSuffix(whole, []byte("\n")), []byte("\n"))
		for seed := range uint64(2) {
			rnd := rand.New(rand.NewPCG(seed, uint64(len(whole))))
			dir, st := newGrownDir(t, "f.jsonl"), storeOn(t, memory.NewAppender())
			dir.write(t, whole)
			id, _ := dir.bring(t, storeOn(t, memory.NewAppender()))
			dir = newGrownDir(t, id.Session+".jsonl")
			for at := 1 + rnd.IntN(max(1, len(lines)/2)); ; at += 1 + rnd.IntN(4+len(lines)/3) {
				at = min(at, len(lines))
				dir.write(t, bytes.Join(lines[:at], nil))
				o := growing()
				if _, err := Import(t.Context(), storeOn(t, memory.NewAppender()), FromFile(dir.path), o); err != nil {
					continue // no session yet
				}
				r, ended := dir.bring(t, st)
				if ended {
					ends++
				}
				if at < len(lines) {
					continue
				}
				if diff := cmp.Diff(fresh(t, dir), show(t, st, r.Session)); diff != "" {
					t.Errorf("%s, seed %d:\n%s", name, seed, diff)
				}
				break
			}
		}
	}
	if ends < 20 {
		t.Errorf("%d times the end of a file was enough, not 20", ends)
	}
}

// Where the end of a file does not show what its new lines mean, the whole file is read, and the session is the same.
func TestWholeFileWhereTheEndIsNotEnough(t *testing.T) {
	cases := map[string]struct {
		format interop.Format
		change func(t *testing.T, f *grownFile, dir *grownDir)
	}{
		"a prompt that names an early line": {interop.ClaudeCode, func(_ *testing.T, f *grownFile, _ *grownDir) {
			f.last = lineID(0)
			f.prompt()
		}},
		"a compaction": {interop.ClaudeCode, func(_ *testing.T, f *grownFile, _ *grownDir) {
			f.compact()
			f.prompt()
		}},
		"a result of an early call": {interop.ClaudeCode, func(_ *testing.T, f *grownFile, _ *grownDir) {
			f.claude("user", f.message("user", "", []object{
				{"type": "tool_result", "tool_use_id": "c2", "content": "late"},
			}))
		}},
		"an early line once more": {interop.ClaudeCode, func(_ *testing.T, f *grownFile, _ *grownDir) {
			line, _, _ := bytes.Cut(f.Bytes(), []byte("\n"))
			f.WriteString(string(line) + "\n")
		}},
		"an output of a tool next to it": {interop.ClaudeCode, func(t *testing.T, f *grownFile, dir *grownDir) {
			outputs := filepath.Join(strings.TrimSuffix(dir.path, ".jsonl"), "tool-results")
			if err := os.MkdirAll(outputs, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(outputs, "c1.txt"), []byte("long"), 0o600); err != nil {
				t.Fatal(err)
			}
			f.prompt()
		}},
		"a sidechain": {interop.ClaudeCode, func(_ *testing.T, f *grownFile, _ *grownDir) {
			task := f.message("user", "", "task")
			task["type"], task["uuid"], task["isSidechain"] = "user", lineID(1<<30), true
			task["parentUuid"], task["sessionId"] = nil, grownID
			f.line(task)
		}},
		"a rollback": {interop.Codex, func(_ *testing.T, f *grownFile, _ *grownDir) {
			f.event("thread_rolled_back", object{"num_turns": 2})
			f.prompt()
		}},
		"a compaction without a history": {interop.Codex, func(_ *testing.T, f *grownFile, _ *grownDir) {
			f.codex("compacted", object{"message": "short"})
			f.prompt()
		}},
		"an id that is taken": {interop.Pi, func(_ *testing.T, f *grownFile, _ *grownDir) {
			again := f.message("user", "", "again")
			again["type"], again["id"], again["parentId"] = "message", lineID(1), nil
			f.line(again)
		}},
		"a parent that is nowhere": {interop.Pi, func(_ *testing.T, f *grownFile, _ *grownDir) {
			f.last = "none"
			f.prompt()
		}},
		"a damaged line": {interop.Pi, func(_ *testing.T, f *grownFile, _ *grownDir) {
			f.WriteString(`{"type":"message","id":` + "\n")
			f.prompt()
		}},
		"an edit of the beginning": {interop.Pi, func(_ *testing.T, f *grownFile, _ *grownDir) {
			p := f.Bytes()
			before, _, _ := bytes.Cut(p, []byte(`"cwd":"/w"`))
			copy(p[len(before):], `"cwd":"/v"`)
			f.prompt()
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newGrownFile(c.format)
			for range 20 {
				f.turn(4)
			}
			dir, st := newGrownDir(t, f.name), storeOn(t, memory.NewAppender())
			dir.write(t, f.Bytes())
			dir.bring(t, st)
			c.change(t, f, dir)
			dir.write(t, f.Bytes())
			r, ended := dir.bring(t, st)
			if diff := cmp.Diff(fresh(t, dir), show(t, st, r.Session)); ended || diff != "" {
				t.Errorf("its end was enough: %v:\n%s", ended, diff)
			}
		})
	}
}

// A session that was used is left as it is, also where the end of its file would be enough.
func TestEndOfAGrownFileOfAUsedSession(t *testing.T) {
	for _, format := range endFormats {
		f := newGrownFile(format)
		f.turn(20)
		dir, st := newGrownDir(t, f.name), storeOn(t, memory.NewAppender())
		dir.write(t, f.Bytes())
		first, _ := dir.bring(t, st)
		s, err := st.Open(t.Context(), first.Session, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = s.Append(t.Context(), entry.Title("mine")); err == nil {
			_, err = s.Commit(t.Context(), coppice.Turn{})
		}
		if err != nil || s.Close() != nil {
			t.Fatal(err)
		}
		before := show(t, st, first.Session)
		f.prompt()
		dir.write(t, f.Bytes())
		r, ended := dir.bring(t, st)
		if ended || r.Session == first.Session {
			t.Errorf("%s: %+v, its end %v", format, r, ended)
		}
		if diff := cmp.Diff(before, show(t, st, first.Session)); diff != "" {
			t.Errorf("%s: the session is another:\n%s", format, diff)
		}
	}
}

// Of a growth the hook after a commit receives the new entries: a search index reads no more.
func TestGrowthIsToldByItsEntries(t *testing.T) {
	var told []int
	st, err := coppice.New(memory.NewAppender(), &coppice.Options{Hooks: coppice.Hooks{
		AfterCommit: func(_ *coppice.Session, r coppice.Receipt) { told = append(told, r.Entries) },
	}})
	if err != nil {
		t.Fatal(err)
	}
	f := newGrownFile(interop.Pi)
	f.turn(20)
	dir := newGrownDir(t, f.name)
	dir.write(t, f.Bytes())
	first, _ := dir.bring(t, st)
	f.turn(1)
	dir.write(t, f.Bytes())
	r, ended := dir.bring(t, st)
	if want := []int{first.Entries, r.Added}; !ended || cmp.Diff(want, told) != "" {
		t.Errorf("its end %v: told %v instead of %v", ended, told, want)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// A hash that is continued is the hash of all bytes.
func TestContinueHash(t *testing.T) {
	p := []byte(words(1, 200))
	for n := range 300 {
		h := sha256.New()
		h.Write(p[:n])
		on, err := continueHash(hashState(h), int64(n))
		if err != nil {
			t.Fatal(err)
		}
		on.Write(p[n-n%sha256.BlockSize:])
		if want := sha256.Sum256(p); hex.EncodeToString(on.Sum(nil)) != hex.EncodeToString(want[:]) {
			t.Fatalf("after %d bytes", n)
		}
	}
	if _, err := continueHash("0f", 1); err == nil {
		t.Error("a state of one byte is taken")
	}
}

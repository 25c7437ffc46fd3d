package damage

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/examples/session"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/importer"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/proof"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/formats"
	"github.com/coppice-go/coppice/snapshot"
	"github.com/coppice-go/coppice/transcript"
)

var ctx = context.Background()

// small sets limits under which a session of some thirty commits has every kind of object: segments of 16 lines, and
// originals in parts of 4 KiB. They have to be the defaults, because a program cannot set them.
func small(folded bool) {
	l := &journal.DefaultLimits
	l.SealEntries, l.RollEntries, l.PublishCommits, l.Keyframe, l.WholeDoc, l.PartBytes = 16, 16, 4, 6, 64, 4<<10
	if folded {
		l.SealEntries, l.RollEntries = 1, 1
	}
}

// The sessions are imported and then used, or made here. Each name is a file, or a kind of session without one.
var sources = []string{
	"bundled", "pi", "pi-torn", "pi-v1", "omp", "atomic", "operator", "claude-code", "codex", "grown", "made",
	"folded",
}

// filesEnv is a folder with session files that replace the built-in sources: every importable file of 2 KiB to 200 KiB,
// at most filesMost, by the hashes of their paths.
const (
	filesEnv  = "COPPICE_DAMAGE_FILES"
	filesMost = 40
)

// realFiles returns the session files in a folder.
func realFiles(t *testing.T, dir string) (list []string) {
	t.Helper()
	testutil.OK(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".jsonl" || strings.ContainsAny(path, " ;") {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Size() >= 2<<10 && info.Size() <= 200<<10 {
			list = append(list, path)
		}
		return err
	}))
	hash := func(path string) uint32 { return crc32.ChecksumIEEE([]byte(path)) }
	slices.SortFunc(list, func(x, y string) int { return cmp.Compare(hash(x), hash(y)) })
	n := 0
	return slices.DeleteFunc(list, func(path string) bool {
		if n == filesMost || !imports(t, path) {
			return true
		}
		n++
		return false
	})
}

// imports reports whether a file can be imported as one session, with a message to go on from.
func imports(t *testing.T, path string) bool {
	t.Helper()
	st := testutil.Must(coppice.New(memory.New(), options("w", 1)))(t)
	defer func() { testutil.OK(t, st.Close()) }()
	_, file := fileOf(path)
	_, err := importer.Import(ctx, st, interop.Bytes("f", file), importer.Options{Session: sid, Now: clock})
	if err != nil {
		t.Logf("%s: %v", path, err)
		return false
	}
	s := testutil.Must(st.Open(ctx, sid, nil))(t)
	return len(testutil.Must(s.Context(ctx))(t).Messages) > 0
}

// costly are the sources of long sessions, which are damaged less often.
var costly = map[string]bool{"bundled": true, "folded": true}

// stages are the moments at which a session is damaged.
var stages = []string{
	"importing", // the import was killed in the middle
	"imported",  // nothing else was done, and the import's process has ended
	"killed",    // in use; the checkpoint of a disk is some commits old
	"closed",    // in use, and every process ended
	"twins",     // closed, with a segment both sealed and plain: a process was killed before it removed the plain one
}

// origin is a session before it is damaged.
type origin struct {
	kind, source, stage string
	objects             map[string][]byte
	imported            int    // commits of the import; 0 = not imported
	file                []byte // the imported bytes; nil = the lines are the original
	truth               *sight
	stored              []stored            // its lines in order
	past                []map[string][]byte // the objects at earlier moments, the oldest first
	other               map[string][]byte   // those of another session
}

const (
	sid    = "s0"
	forked = "s0-fork"
)

// clock is the start time of every life.
var clock = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

// life is the life of a source, with the content of the store at each stage.
type life struct {
	t     *testing.T
	b     backend.Backend
	store *coppice.Store
	s     *coppice.Session
	rng   *rand.Rand
	n     int
	plain map[string][]byte // every plain segment in its last form
	file  []byte
	made  int // commits of the import
	at    map[string]map[string][]byte
	past  []map[string][]byte

	before map[string]int // of past, those before a stage
}

// live returns the objects of a life at each stage.
func live(t *testing.T, kind, source string) (out map[string]*origin) {
	out = map[string]*origin{}
	small(source == "folded")
	defer small(false)
	b := proof.StoreOf(kind)
	l := &life{t: t, rng: rand.New(rand.NewPCG(11, uint64(len(source)))), plain: map[string][]byte{}, at: map[string]map[string][]byte{}, before: map[string]int{}}
	if a, ok := b.(*memory.Appender); ok {
		b = keeper{a, l.plain}
	}
	l.b = b
	if half := importing(t, kind, source); half != nil {
		l.at["importing"] = half
	}
	l.store = l.open("w", 1)
	l.begin(source)
	l.again()
	l.keep("imported")
	l.use(source)
	l.killed()
	l.keep("killed")
	l.again()
	l.turn()
	testutil.OK(t, errors.Join(l.s.Close(), l.store.Close()))
	l.keep("closed")
	if twins := l.twins(); twins != nil {
		l.at["twins"], l.before["twins"] = twins, len(l.past)
	}
	for stage, objects := range l.at {
		o := &origin{kind: kind, source: source, stage: stage, objects: objects, past: l.past[:l.before[stage]]}
		if stage != "importing" {
			o.imported, o.file = l.made, l.file
		}
		out[stage] = o
	}
	return out
}

// importing returns the objects of an import that fails when it stores the file; nil = no session.
func importing(t *testing.T, kind, source string) map[string][]byte {
	if source == "made" || source == "folded" {
		return nil
	}
	b := proof.StoreOf(kind)
	faulty := fault.New(b, 1, fault.Rule{
		When: fault.On("put", layout.SessionPrefix(sid)+layout.Originals), Count: -1, Outcome: backend.NotApplied,
	})
	st := testutil.Must(coppice.New(faulty, options("w", 1)))(t)
	format, file := fileOf(source)
	o := importer.Options{Session: sid, Format: format, Now: clock}
	_, err := importer.Import(ctx, st, interop.Bytes("f", file), o)
	testutil.OK(t, st.Close())
	if s, oerr := st.Open(ctx, sid, nil); err == nil || oerr != nil {
		_ = s
		return nil
	}
	return proof.Objects(t, b)
}

// stranger returns the objects of another session, which was imported and used.
func stranger(t *testing.T, kind string) map[string][]byte {
	const id = "t0"
	b := proof.StoreOf(kind)
	st := testutil.Must(coppice.New(b, options("other", 9)))(t)
	format, file := fileOf("claude-code")
	o := importer.Options{Session: id, Format: format, Now: clock.Add(time.Hour)}
	testutil.Must(importer.Import(ctx, st, interop.Bytes("g", file), o))(t)
	l := &life{t: t, b: b, store: st, rng: rand.New(rand.NewPCG(12, 1))}
	l.s = testutil.Must(st.Open(ctx, id, shooting))(t)
	for range 8 {
		l.turn()
		l.image()
		l.snapshot()
	}
	testutil.OK(t, errors.Join(l.s.Close(), st.Close()))
	return proof.Objects(t, b)
}

// keeper keeps the objects that are removed.
type keeper struct {
	*memory.Appender
	gone map[string][]byte
}

func (k keeper) Delete(ctx context.Context, key string) error {
	if p, _, err := k.Get(ctx, key, backend.Range{}); err == nil {
		k.gone[key] = p
	}
	return k.Appender.Delete(ctx, key)
}

func (l *life) open(writer string, seed byte) *coppice.Store {
	l.t.Helper()
	return testutil.Must(coppice.New(l.b, options(writer, seed)))(l.t)
}

func options(writer string, seed byte) *coppice.Options {
	return &coppice.Options{
		Writer: writer, Now: testutil.Clock(clock, time.Second), Rand: rand.NewChaCha8([32]byte{seed}), Reread: formats.Reread,
	}
}

// shooting are the options of handles.
var shooting = &coppice.SessionOptions{Snapshots: snapshot.Policy{Every: 9, BeforeCompaction: true}}

// again ends the process and starts the next one: background work is finished then, so that equal lives leave equal
// objects.
func (l *life) again() {
	testutil.OK(l.t, l.s.Close())
	l.s = testutil.Must(l.store.Open(ctx, sid, shooting))(l.t)
}

func (l *life) keep(stage string) {
	l.at[stage], l.before[stage] = proof.Objects(l.t, l.b), len(l.past)
	l.past = append(l.past, l.at[stage])
}

// killed is a process that is killed after three turns. Its background work is synchronous.
func (l *life) killed() {
	testutil.OK(l.t, l.s.Close())
	w := &proof.World{T: l.t, B: l.b, Rand: rand.NewChaCha8([32]byte{8})}
	j := w.Open(sid)
	for i := range 3 {
		w.Turn(j, fmt.Sprint("killed-", i))
	}
}

// twins returns the closed session with one plain segment that is sealed too; nil = there is none.
func (l *life) twins() map[string][]byte {
	all := l.at["closed"]
	out, found := maps.Clone(all), false
	for key, p := range l.plain {
		sealed, ok := all[key+".zst"]
		if raw, _, err := codec.DecodeSegment(sealed, 1<<30); ok && err == nil && bytes.Equal(raw, p) {
			out[key], found = p, true
		}
	}
	if !found {
		return nil
	}
	return out
}

// begin imports the source's file, or makes the first commit.
func (l *life) begin(source string) {
	if source == "made" || source == "folded" {
		o := &coppice.SessionOptions{Title: "made", Cwd: "/w", Snapshots: shooting.Snapshots}
		l.s = testutil.Must(l.store.Create(sid, o))(l.t)
		l.turn()
		return
	}
	format, file := fileOf(source)
	o := importer.Options{Session: sid, Format: format, Now: clock}
	if source == "grown" {
		o.Session, o.Grow = "", true
		for _, part := range []int{3, 2} {
			end := bytes.IndexByte(file[len(file)/part:], '\n') + len(file)/part + 1
			testutil.Must(importer.Import(ctx, l.store, interop.Bytes("f", file[:end]), o))(l.t)
		}
	}
	testutil.Must(importer.Import(ctx, l.store, interop.Bytes("f", file), o))(l.t)
	l.s = testutil.Must(l.store.Open(ctx, sid, shooting))(l.t)
	l.made = int(l.s.Head().Seq) + 1
	var out bytes.Buffer
	testutil.OK(l.t, l.store.Export(ctx, sid, &out))
	if !bytes.Equal(out.Bytes(), file) {
		l.t.Fatalf("%s: %d bytes come back of %d", source, out.Len(), len(file))
	}
	if len(proof.KeysWith(proof.Objects(l.t, l.b), "/originals/")) > 0 {
		l.file = file
	}
}

// use performs the usual operations on a session.
func (l *life) use(source string) {
	if source == "folded" {
		for range 75 {
			l.turn()
		}
	}
	for _, step := range []func(){
		l.turn, l.label, l.turn, l.image, l.snapshot, l.turn, l.branch, l.turn, l.compact, l.turn, l.rollback, l.turn, l.torn,
		l.claim, l.turn, l.fork, l.context, l.turn, l.key, l.snapshot, l.turn, l.moveBack, l.turn, l.turn,
	} {
		step()
		l.again()
		l.past = append(l.past, proof.Objects(l.t, l.b))
	}
}

func (l *life) ok(_ any, err error) {
	l.t.Helper()
	testutil.OK(l.t, err)
}

// turn is a prompt, an answer of the agent, and a partly changed state.
func (l *life) turn() {
	l.n++
	_, err := l.s.Append(ctx, entry.User(fmt.Sprintf("do %d: %s", l.n, word(l.rng, 30))),
		entry.Assistant(fmt.Sprintf("did %d", l.n), entry.Call(fmt.Sprint("c", l.n), "read", map[string]int{"n": l.n})),
		entry.ToolResult(fmt.Sprint("c", l.n), "read", word(l.rng, 60), false))
	testutil.OK(l.t, err)
	l.ok(l.s.Commit(ctx, coppice.Turn{State: state(l.n)}))
}

func state(n int) any {
	return map[string]any{"turn": n, "same": strings.Repeat("s", 150), "list": []int{n, n + 1}}
}

// word returns text that does not compress.
func word(rng *rand.Rand, n int) string {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte('a' + rng.IntN(26))
	}
	return string(p)
}

// some returns the id of a random entry.
func (l *life) some() string {
	tree := testutil.Must(l.s.Tree(ctx))(l.t)
	var ids []string
	for n := range tree.Nodes(transcript.FilterAll) {
		if n.Type == "message" {
			ids = append(ids, n.ID)
		}
	}
	return ids[l.rng.IntN(len(ids))]
}

func (l *life) label() { l.ok(l.s.Label(ctx, l.some(), fmt.Sprint("label ", l.n))) }

func (l *life) snapshot() { l.ok(l.s.Snapshot(ctx, fmt.Sprint("tag", l.n))) }

func (l *life) branch() {
	l.ok(l.s.Branch(ctx, l.some(), &coppice.BranchOptions{Name: fmt.Sprint("branch", l.n), Summary: "it was left"}))
}

func (l *life) moveBack() { l.ok(l.s.Switch(ctx, "main")) }

func (l *life) rollback() { l.ok(l.s.Rollback(ctx, coppice.Target{Seq: l.s.Head().Seq - 3})) }

func (l *life) key() { l.ok(l.s.Commit(ctx, coppice.Turn{State: state(l.n), Key: "once"})) }

// image appends a message with an image that becomes a separate object.
func (l *life) image() {
	p := make([]byte, 25_000)
	_, _ = rand.NewChaCha8([32]byte{3}).Read(p)
	l.ok(l.s.Append(ctx, entry.User("look", entry.Image("image/png", p))))
	l.ok(l.s.Commit(ctx, coppice.Turn{State: state(l.n)}))
}

func (l *life) compact() {
	l.ok(l.s.Append(ctx, entry.Compaction("so far", "", 100)))
	l.ok(l.s.Commit(ctx, coppice.Turn{Reason: "compaction"}))
}

func (l *life) context() {
	testutil.OK(l.t, l.s.SetContext(ctx, transcript.Item{Entry: l.some()}))
	l.ok(l.s.Commit(ctx, coppice.Turn{}))
}

func (l *life) fork() {
	f := testutil.Must(l.s.Fork(ctx, coppice.Target{}, forked, nil))(l.t)
	testutil.OK(l.t, f.Close())
}

// claim is another process that takes over the session.
func (l *life) claim() {
	l.again()
	l.ok(l.s.Claim(ctx))
}

// torn is a process that dies during an append on a disk, and the next one, which moves the bytes aside.
func (l *life) torn() {
	a, ok := l.b.(backend.Appender)
	if !ok {
		return
	}
	testutil.OK(l.t, l.s.Close())
	var last layout.Segment
	key, size := "", int64(0)
	for _, k := range proof.KeysWith(proof.Objects(l.t, l.b), "sessions/"+sid+"/transcript/") {
		if seg, sealed, ok := layout.ParseSegmentKey(k); ok && !sealed && seg.First >= last.First {
			last, key = seg, k
			size = testutil.Must(l.b.Stat(ctx, k))(l.t).Size
		}
	}
	l.ok(a.Append(ctx, key, size, []byte(`{"type":"message","id":"torn","parentId":nu`)))
	l.s = testutil.Must(l.store.Open(ctx, sid, shooting))(l.t)
	l.turn()
}

// fileOf returns the file of a source. The bundled session is complete in pi's format; in other formats it has 30 of
// its entries, as far as the format can represent them.
func fileOf(source string) (interop.Format, []byte) {
	switch source {
	case "bundled":
		return interop.Pi, session.JSONL()
	case "pi":
		return interop.Pi, generated()
	case "pi-v1":
		return interop.Pi, version1()
	case "grown":
		f, file := fileOf("codex")
		id := []byte("019b0000-0000-7000-8000-000000000001") // an import knows the session by it
		return f, bytes.ReplaceAll(file, id, []byte(sid))
	case "pi-torn":
		return interop.Pi, append(generated(), `{"type":"message","id":"zz","par`...)
	}
	if filepath.IsAbs(source) {
		p, err := os.ReadFile(source)
		if err != nil {
			panic(err) // it was read just before
		}
		return "", p
	}
	f := interop.Format(source)
	var out bytes.Buffer
	r := reader()
	h, err := r.Header()
	head := ""
	for err == nil {
		var d transcript.Draft
		if d, err = r.Next(); err == nil {
			head = idOf(d.Raw)
		}
	}
	if errors.Is(err, io.EOF) {
		_, err = formats.Write(&out, f, h, func(yield func(transcript.Draft, error) bool) {
			in := reader()
			_, _ = in.Header()
			for {
				d, err := in.Next()
				if errors.Is(err, io.EOF) || !yield(d, err) {
					return
				}
			}
		}, head)
	}
	if err != nil {
		panic(err) // the files are built in
	}
	return f, out.Bytes()
}

func idOf(line []byte) string {
	l, err := transcript.ParseLine(line)
	if err != nil {
		panic(err)
	}
	return l.ID
}

func reader() interop.Reader {
	r, err := formats.Open(interop.Bytes("f", generated()), interop.Pi, interop.Options{})
	if err != nil {
		panic(err)
	}
	return r
}

// generated is a pi session with messages, calls, an image, a compaction, a label and a branch.
func generated() []byte {
	rng := rand.New(rand.NewPCG(5, 6))
	var out bytes.Buffer
	n := 0
	line := func(typ, parent, rest string, args ...any) {
		n++
		if parent != "null" {
			parent = fmt.Sprintf("%q", parent)
		}
		fmt.Fprintf(&out, `{"type":%q,"id":"%08x","parentId":%s,"timestamp":"2026-02-01T00:00:%02d.000Z",%s}`+"\n",
			typ, n, parent, n%60, fmt.Sprintf(rest, args...))
	}
	before := func() string { return fmt.Sprintf("%08x", n) }
	out.WriteString(`{"type":"session","version":3,"id":"019b0000-0000-7000-8000-000000000001",` +
		`"timestamp":"2026-02-01T00:00:00.000Z","cwd":"/w"}` + "\n")
	line("model_change", "null", `"provider":"anthropic","modelId":"claude-x"`)
	for i := range 7 {
		line("message", before(), `"message":{"role":"user","content":"ask %d %s","timestamp":1769904000000}`, i, word(rng, 100))
		line("message", before(), `"message":{"role":"assistant","content":[{"type":"text","text":"say %d"},{"type":"toolCall",`+
			`"id":"call_%d","name":"bash","arguments":{"command":"ls %s"}}],"api":"anthropic-messages","provider":"anthropic",`+
			`"model":"claude-x","usage":{"input":10,"output":5,"cacheRead":0,"cacheWrite":0,"totalTokens":15,"cost":{"input":0,`+
			`"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"toolUse","timestamp":1769904001000}`,
			i, i, word(rng, 40))
		line("message", before(), `"message":{"role":"toolResult","toolCallId":"call_%d","toolName":"bash","content":`+
			`[{"type":"text","text":%q}],"isError":false,"timestamp":1769904002000}`, i, word(rng, 200))
		switch i {
		case 1:
			p := make([]byte, 24_800) // its base64 is longer than an entry may contain
			_, _ = rand.NewChaCha8([32]byte{4}).Read(p)
			line("message", before(), `"message":{"role":"user","content":[{"type":"image","data":%q,"mimeType":"image/png"}],`+
				`"timestamp":1769904003000}`, base64.StdEncoding.EncodeToString(p))
		case 3:
			line("compaction", before(), `"summary":"so far","firstKeptEntryId":"%08x","tokensBefore":100`, n-2)
		case 4:
			line("label", before(), `"targetId":"%08x","label":"here"`, n-1)
		case 5:
			line("message", fmt.Sprintf("%08x", n-3), `"message":{"role":"user","content":"another way","timestamp":1769904004000}`)
		}
	}
	return out.Bytes()
}

// version1 returns the generated session in pi's first version: a list without ids.
func version1() []byte {
	var out bytes.Buffer
	for i, line := range bytes.Split(bytes.TrimSpace(generated()), []byte("\n")) {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(line, &fields); err != nil {
			panic(err) // the lines are built in
		}
		switch {
		case i == 0:
			delete(fields, "version")
		case string(fields["type"]) == `"label"`:
			continue
		case string(fields["type"]) == `"compaction"`:
			delete(fields, "firstKeptEntryId")
			fields["firstKeptEntryIndex"] = json.RawMessage(strconv.Itoa(i - 2))
		}
		if i > 0 {
			delete(fields, "id")
			delete(fields, "parentId")
		}
		raw, err := json.Marshal(fields)
		if err != nil {
			panic(err)
		}
		out.Write(append(raw, '\n'))
	}
	return out.Bytes()
}

// storeOf puts objects into a new store of a kind. The store of a disk is a folder.
func storeOf(kind, dir string, objects map[string][]byte) (backend.Backend, error) {
	b := backend.Backend(memory.New())
	switch kind {
	case "append":
		b = memory.NewAppender()
	case "disk":
		var err error
		if b, err = diskIn(dir); err != nil {
			return nil, err
		}
	}
	for key, p := range objects {
		if _, err := b.Put(ctx, key, p, backend.Cond{}); err != nil {
			return nil, errors.Join(err, b.Close())
		}
	}
	return b, nil
}

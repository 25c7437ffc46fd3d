package langgraph

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/importer"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/internal/sessiontest"
)

// imported imports a file, and returns the results by session.
func imported(t *testing.T, st *coppice.Store, file string) map[string]importer.Result {
	t.Helper()
	all := map[string]importer.Result{}
	err := Import(t.Context(), st, file, Options{Done: func(r importer.Result, err error) error {
		all[r.Session] = r
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// stateAt is what the state of a session has of a namespace.
type stateAt struct {
	Latest map[string]string
	Spaces map[string]struct {
		ID, Parent string
		Checkpoint struct{ JSON json.RawMessage }
		Channels   map[string]struct {
			V, JSON json.RawMessage
		}
	}
}

// rebuilt makes a checkpoint of the state at its entry, as the adapter does.
func rebuilt(t *testing.T, s *coppice.Session, ns, id string) (checkpoint []byte, parent string) {
	t.Helper()
	v, err := s.At(t.Context(), coppice.Target{Entry: entryOf(ns, id)})
	if err != nil {
		t.Fatal(err)
	}
	var state stateAt
	if err := v.State(&state); err != nil {
		t.Fatal(err)
	}
	space := state.Spaces[ns]
	if space.ID != id {
		t.Fatalf("the state at checkpoint %s is that of %q", id, space.ID)
	}
	var values []any
	for m := rawjson.Walk(rawjson.Field(space.Checkpoint.JSON, "channel_versions")); m.Next(); {
		if c, ok := space.Channels[string(m.Key)]; ok && string(c.V) == string(m.Val) {
			values = append(values, string(m.Key), []byte(c.JSON))
		}
	}
	return rawjson.WithField(space.Checkpoint.JSON, "channel_values", rawjson.Object(values...)), space.Parent
}

// compare compares the sessions with the rows of a database whose checkpoints are JSON.
func compare(t *testing.T, st *coppice.Store, file string) {
	t.Helper()
	db, err := sql.Open("sqlite", readOnly(file))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	rows, err := db.Query(`SELECT thread_id, checkpoint_ns, checkpoint_id, coalesce(parent_checkpoint_id, ''),
		checkpoint,
		(SELECT count(*) FROM writes w WHERE w.thread_id = c.thread_id AND w.checkpoint_ns = c.checkpoint_ns
		AND w.checkpoint_id = c.checkpoint_id) FROM checkpoints c`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	n := 0
	for rows.Next() {
		var thread, ns, id, parent string
		var checkpoint []byte
		writes := 0
		if err := rows.Scan(&thread, &ns, &id, &parent, &checkpoint, &writes); err != nil {
			t.Fatal(err)
		}
		s := sessiontest.Open(t, st, sessionID(thread))
		got, above := rebuilt(t, s, ns, id)
		if !rawjson.Same(got, withoutUnversioned(checkpoint)) || above != parent {
			t.Errorf("checkpoint %s is rebuilt below %q as %s\nwant %q %s", id, above, got, parent, checkpoint)
		}
		if has := writesTo(t, s, ns, id); has != writes {
			t.Errorf("checkpoint %s has %d writes, want %d", id, has, writes)
		}
		n++
	}
	if n == 0 {
		t.Error("the database has no checkpoints")
	}
}

// withoutUnversioned removes the values of channels that have no version, which no saver returns.
func withoutUnversioned(checkpoint []byte) []byte {
	values := rawjson.Field(checkpoint, "channel_values")
	kept := values
	for m := rawjson.Walk(values); m.Next(); {
		if rawjson.Field(rawjson.Field(checkpoint, "channel_versions"), string(m.Key)) == nil {
			kept = rawjson.WithField(kept, string(m.Key), nil)
		}
	}
	return rawjson.WithField(checkpoint, "channel_values", kept)
}

// writesTo counts the writes to a checkpoint.
func writesTo(t *testing.T, s *coppice.Session, ns, id string) (n int) {
	t.Helper()
	for e, err := range s.Entries(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		data := rawjson.Field(e.Raw, "data")
		if rawjson.Text(rawjson.Field(e.Raw, "customType")) != "langgraph.writes" ||
			rawjson.Text(rawjson.Field(data, "cp")) != id || rawjson.Text(rawjson.Field(data, "ns")) != ns {
			continue
		}
		for m := rawjson.Walk(rawjson.Field(data, "writes")); m.Next(); {
			n++
		}
	}
	return n
}

// A database of the JavaScript saver, with a subgraph, an interrupt, its answer and a second answer to it: a fork.
func TestJavaScript(t *testing.T) {
	st := sessiontest.NewStore(t, memory.New(), nil)
	file := filepath.Join("testdata", "javascript.sqlite")
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := imported(t, st, file)
	compare(t, st, file)
	id := "langgraph-" + fmt.Sprintf("%x", sha256.Sum256([]byte(`["","trip"]`)))[:40]
	r := all[id]
	if len(all) != 2 || r.Messages != 2 || r.Branches != 2 || len(r.Diagnostics) != 0 {
		t.Errorf("%d sessions; %+v", len(all), r)
	}
	s := sessiontest.Open(t, st, id)
	head := s.Head()
	if again := imported(t, st, file)[id]; !again.Unchanged || sessiontest.Open(t, st, id).Head() != head {
		t.Errorf("imported again: %+v", again)
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("the database was changed: %v", err)
	}
	if list, _ := filepath.Glob(file + "?*"); len(list) > 0 {
		t.Errorf("files were made: %v", list)
	}
}

// copyOf returns a copy of a database without the checkpoints after the first n of a thread, and without their writes.
func copyOf(t *testing.T, file string, n int) string {
	t.Helper()
	text, err := os.ReadFile(file)
	name := filepath.Join(t.TempDir(), "copy.sqlite")
	if err == nil {
		err = os.WriteFile(name, text, 0o600)
	}
	db, derr := sql.Open("sqlite", "file:"+filepath.ToSlash(name))
	if err = errors.Join(err, derr); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"writes", "checkpoints"} {
		_, err := db.Exec(`DELETE FROM `+table+` WHERE checkpoint_id > (SELECT checkpoint_id FROM checkpoints
			ORDER BY checkpoint_id LIMIT 1 OFFSET ?)`, n-1)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return name
}

// A database that grew is imported at each length, and the sessions are those of an import at once.
func TestGrows(t *testing.T) {
	st := sessiontest.NewStore(t, memory.New(), nil)
	file := filepath.Join("testdata", "javascript.sqlite")
	for n := 1; n < 23; n += 3 {
		imported(t, st, copyOf(t, file, n))
	}
	for id, r := range imported(t, st, file) {
		if !r.Grew && !r.Unchanged {
			t.Errorf("%s: %+v", id, r)
		}
	}
	compare(t, st, file)
}

// A checkpoint that cannot be read is reported, and those after it are below the one before.
func TestDamagedRows(t *testing.T) {
	st := sessiontest.NewStore(t, memory.New(), nil)
	name := copyOf(t, filepath.Join("testdata", "javascript.sqlite"), 23)
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []string{
		`UPDATE checkpoints SET checkpoint = substr(checkpoint, 1, 30) WHERE checkpoint_id LIKE '1f1eae99-338d%'`,
		`UPDATE checkpoints SET type = 'msgpack+aes' WHERE checkpoint_id LIKE '1f1eae99-3b57%'`,
	} {
		if _, err := db.Exec(change); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for id, r := range imported(t, st, name) {
		if r.BadLines != 1 || len(r.Diagnostics) != 1 || r.Diagnostics[0].Kind != "unreadable" || r.Messages != 2 {
			t.Errorf("%s: %+v", id, r)
		}
	}
}

// Values that are longer than what is read are reported, each with its place; the rest of the thread is imported.
func TestTooLarge(t *testing.T) {
	st := sessiontest.NewStore(t, memory.New(), nil)
	name := copyOf(t, filepath.Join("testdata", "javascript.sqlite"), 23)
	address := "file:" + filepath.ToSlash(name) + "?_pragma=journal_mode(OFF)&_pragma=synchronous(OFF)"
	db, err := sql.Open("sqlite", address)
	if err != nil {
		t.Fatal(err)
	}
	var thread, task, written string
	err = db.QueryRow(`SELECT thread_id, task_id, checkpoint_id FROM writes WHERE thread_id = 'trip'
		ORDER BY rowid`).Scan(&thread, &task, &written)
	if err != nil {
		t.Fatal(err)
	}
	last := ""
	err = db.QueryRow(`SELECT checkpoint_id FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''
		ORDER BY checkpoint_id DESC`, thread).Scan(&last)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []string{
		`UPDATE writes SET value = zeroblob(33554433) WHERE task_id = '` + task + `' AND idx =
			(SELECT max(idx) FROM writes WHERE task_id = '` + task + `')`,
		`CREATE TABLE blobs (thread_id, checkpoint_ns, channel, version, type, value)`,
		`INSERT INTO blobs SELECT 'trip', '', v.key, CAST(v.value AS TEXT), 'bytes', zeroblob(33554433)
			FROM checkpoints c, json_each(c.checkpoint, '$.channel_versions') v
			WHERE checkpoint_id = '` + last + `' AND v.key = 'messages'`,
	} {
		if _, err := db.Exec(change); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	r := imported(t, st, name)[sessionID(thread)]
	found := fmt.Sprint(r.Diagnostics)
	for _, want := range []string{
		"too-large", "writes of task " + task + " to checkpoint " + written, "checkpoint " + last, `channel "messages"`,
		"33554433 bytes: at most 33554432 are read",
	} {
		if !strings.Contains(found, want) {
			t.Errorf("%q is not reported: %s", want, found)
		}
	}
	if r.BadLines != len(r.Diagnostics) || r.Entries == 0 {
		t.Errorf("%+v", r)
	}
}

// A database of which a part is in its log of writes alone, as a program that was killed leaves it, is read whole, and
// neither file is changed.
func TestWriteAheadLog(t *testing.T) {
	st := sessiontest.NewStore(t, memory.New(), nil)
	whole, err := filepath.Abs(filepath.Join("testdata", "javascript.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	live := copyOf(t, whole, 9)
	address := "file:" + filepath.ToSlash(live) + "?_pragma=journal_mode(WAL)&_pragma=wal_autocheckpoint(0)"
	db, err := sql.Open("sqlite", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	for _, change := range []string{
		`ATTACH '` + filepath.ToSlash(whole) + `' AS whole`,
		`INSERT OR IGNORE INTO checkpoints SELECT * FROM whole.checkpoints`,
		`INSERT OR IGNORE INTO writes SELECT * FROM whole.writes`,
	} {
		if _, err := db.Exec(change); err != nil {
			t.Fatal(err)
		}
	}
	left := filepath.Join(t.TempDir(), "left.sqlite")
	before := map[string]string{}
	for _, end := range []string{"", "-wal"} {
		text, err := os.ReadFile(live + end)
		if err == nil {
			err = os.WriteFile(left+end, text, 0o600)
		}
		if before[end] = string(text); err != nil || len(text) == 0 {
			t.Fatal(len(text), err)
		}
	}
	imported(t, st, left)
	compare(t, st, whole)
	for end, want := range before {
		if now, err := os.ReadFile(left + end); err != nil || string(now) != want {
			t.Errorf("the database%s was changed: %v", end, err)
		}
	}
}

func TestNoDatabase(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "text": "a", "short": sqliteMagic, "rows": `{"thread_id":1}`,
		"array": `[{"thread_id":"a","checkpoint_ns":""}]`,
	} {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if Detect(t.Context(), file) {
			t.Errorf("%s is taken for a saver's", name)
		}
		if err := Import(t.Context(), nil, file, Options{}); err == nil {
			t.Errorf("%s is imported", name)
		}
	}
	if err := Import(context.Background(), nil, "missing", Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// A database of Python's saver: values are MessagePack with objects of Python, which keep their types.
func TestPython(t *testing.T) {
	st := sessiontest.NewStore(t, memory.New(), nil)
	all := imported(t, st, filepath.Join("testdata", "python.sqlite"))
	r := all[sessionID("trip")]
	kinds := ""
	for _, d := range r.Diagnostics {
		kinds += d.Kind + ": " + d.Detail + "\n"
	}
	if r.Messages != 4 || r.Branches != 2 || kinds != "opaque: 3 values of type bytes: kept as they are\n"+
		"opaque: 3 values of type float that is no number: kept as they are\n" {
		t.Errorf("%+v\n%s", r, kinds)
	}
	s := sessiontest.Open(t, st, r.Session)
	var state stateAt
	if err := s.State(&state); err != nil {
		t.Fatal(err)
	}
	channels := state.Spaces[""].Channels
	const facts = `{"when":{"lc":2,"type":"constructor","id":["datetime","datetime"],"method":"fromisoformat",` +
		`"args":["2026-01-02T03:04:05+00:00"]},"id":{"lc":2,"type":"constructor","id":["uuid","UUID"],` +
		`"args":["00000000000000000000000000000007"]},` +
		`"price":{"lc":2,"type":"constructor","id":["decimal","Decimal"],` +
		`"args":["12.50"]},"tags":{"lc":2,"type":"constructor","id":["builtins","set"],"args":[["x"]]},` +
		`"raw":{"lc":2,"type":"constructor","id":["builtins","bytes"],"method":"fromhex","args":["00ff"]},` +
		`"ratio":0.25,"big":9223372036854775808,"neg":-40000,` +
		`"nan":{"lc":2,"type":"constructor","id":["builtins","float"],"args":["nan"]},` +
		`"seats":{"lc":2,"type":"constructor","id":["builtins","dict"],"args":[[[1,"a"],[2,"b"]]]},"one":1.0}`
	if got := string(channels["facts"].JSON); got != facts {
		t.Errorf("facts are %s\nwant %s", got, facts)
	}
	if got := string(channels["count"].JSON); got != "null" {
		t.Errorf("count is %s", got)
	}
	if n := s.Info().Entries; n != 13 {
		t.Errorf("%d entries, want 6 messages, 4 checkpoints and the writes of 3 tasks", n)
	}
}

// Hostile MessagePack is an error, and takes no memory.
func TestDecodeRefuses(t *testing.T) {
	for name, in := range map[string]string{
		"empty": "", "cut": "\xa5abc", "long array": "\xdd\xff\xff\xff\xff", "long map": "\xdf\xff\xff\xff\xff\x01",
		"long text": "\xdb\xff\xff\xff\xff", "no value": "\xc1", "rest": "\x01\x02",
		"deep":            strings.Repeat("\x91", 200) + "\x01",
		"deep extensions": nested(120), "cut extension": "\xc7\x05\x00a",
	} {
		if out, err := new(decoder).decode([]byte(in)); err == nil {
			t.Errorf("%s: %s", name, out)
		}
	}
}

// nested returns extensions in each other.
func nested(n int) string {
	in := "\x01"
	for range n {
		in = "\xc8" + string([]byte{byte(len(in) >> 8), byte(len(in))}) + "\x07" + in
	}
	return in
}

func TestDecode(t *testing.T) {
	for in, want := range map[string]string{
		"\xcc\xff": "255", "\xd0\x80": "-128", "\xd3\x80\x00\x00\x00\x00\x00\x00\x00": "-9223372036854775808",
		"\xcf\xff\xff\xff\xff\xff\xff\xff\xff": "18446744073709551615", "\xca\x3d\xcc\xcc\xcd": "0.1", "\xff": "-1",
		"\xd4\x09a":                           `{"lc":2,"type":"msgpack","ext":9,"bytes":"YQ=="}`,
		"\xc7\x07\x02\x93\xa1m\xa1C\x81\xa1k": "", // cut within the extension
		"\xd5\x07\x91\x01": `{"lc":2,"type":"constructor","id":["langgraph","checkpoint","serde","types",` +
			`"_DeltaSnapshot"],"args":[[1]]}`,
		"\xc7\x09\x05\x94\xa3a.b\xa1C\x80\xa1": "",
	} {
		out, err := new(decoder).decode([]byte(in))
		if string(out) != want || (err == nil) != (want != "") {
			t.Errorf("%x is %s, %v; want %s", in, out, err, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("\x82\xa1a\x01\xa1b\x92\xc0\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\xc7\x09\x00\x93\xa1m\xa1C\xa1x\x00\x00"))
	f.Fuzz(func(t *testing.T, in []byte) {
		if out, err := new(decoder).decode(in); err == nil && !json.Valid(out) {
			t.Errorf("%x is %s", in, out)
		}
	})
}

// Rows of Postgres, in any order: a text or a number is in the checkpoint, other values are rows of their own.
func TestPostgresRows(t *testing.T) {
	st := sessiontest.NewStore(t, memory.New(), nil)
	const messages = `[{"lc":1,"type":"constructor","id":["langchain_core","messages","HumanMessage"],` +
		`"kwargs":{"content":"Tab\there"}}]`
	row := func(format string, a ...any) string { return fmt.Sprintf(format, a...) + "\n" }
	checkpoint := func(id, parent, messages string, count int) string {
		return row(`{"thread_id":"t","checkpoint_ns":"","checkpoint_id":%q,"parent_checkpoint_id":%s,"type":null,`+
			`"checkpoint":{"v":4,"id":%q,"ts":"2026-01-02T03:04:05+00:00","channel_values":{"count":%d},`+
			`"channel_versions":{"count":"1.0","messages":%q}},"metadata":{"step":1}}`, id, parent, id, count, messages)
	}
	blob := func(version, typ, hex string) string {
		return row(`{"thread_id":"t","checkpoint_ns":"","channel":"messages","version":%q,"type":%q,"blob":%s}`,
			version, typ, hex)
	}
	text := blob("2.0", "json", fmt.Sprintf(`"\\x%x"`, messages)) + blob("1.0", "empty", "null") +
		checkpoint("b", `"a"`, "2.0", 2) +
		row(`{"thread_id":"t","checkpoint_ns":"","checkpoint_id":"b","task_id":"k","idx":0,"channel":"count",`+
			`"type":"msgpack","blob":"\\x07","task_path":"p"}`) + checkpoint("a", "null", "1.0", 1)
	file := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if !Detect(t.Context(), file) {
		t.Error("the rows are not recognized")
	}
	r := imported(t, st, file)[sessionID("t")]
	s := sessiontest.Open(t, st, r.Session)
	got, parent := rebuilt(t, s, "", "b")
	want := `{"v":4,"id":"b","ts":"2026-01-02T03:04:05+00:00","channel_versions":{"count":"1.0","messages":"2.0"},` +
		`"channel_values":{"count":2,"messages":` + messages + `}}`
	if string(got) != want || parent != "a" || r.Messages != 1 || writesTo(t, s, "", "b") != 1 {
		t.Errorf("%+v: below %s: %s\nwant %s", r, parent, got, want)
	}
	if got, _ := rebuilt(t, s, "", "a"); !strings.HasSuffix(string(got), `"channel_values":{"count":1}}`) {
		t.Errorf("%s", got)
	}

	// COPY escapes backslashes: such rows are refused, for their texts are not those of the database.
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, `\`, `\\`)), 0o600); err != nil {
		t.Fatal(err)
	}
	err := Import(t.Context(), st, file, Options{})
	if err == nil || !strings.Contains(err.Error(), "line 1") || !strings.Contains(err.Error(), "FORMAT csv") {
		t.Errorf("escaped rows: %v", err)
	}
}

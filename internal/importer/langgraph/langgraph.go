// Package langgraph imports what the savers of LangGraph have stored: databases of SqliteSaver (Python:
// langgraph-checkpoint-sqlite 3.1.1, JavaScript: @langchain/langgraph-checkpoint-sqlite 1.0.4), and the rows of
// PostgresSaver (langgraph-checkpoint-postgres 3.1.2) as lines of JSON.
//
// A thread is a session, as the adapter of adapters/langgraph keeps it: a checkpoint is a commit and an entry, the
// values of channels are the state, a checkpoint on an older one is a branch, and the writes of a task are an entry.
// Messages of the channel of that name are messages of the session too. The sessions of threads in JavaScript are those
// of the adapter, which continues them.
//
// Threads are read one after another: a checkpoint, the ids of all checkpoints of its thread, and the state are in
// memory. The database is only read. Nothing that it contains is run.
package langgraph

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/importer"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// Format is the name of the format.
const Format = "langgraph"

// Options of Import.
type Options struct {
	Clock  *importer.Clock                          // of the store; may be nil
	Closed func(error)                              // as that of importer.Options; may be nil
	Done   func(r importer.Result, err error) error // called for each thread
}

// Detect reports whether a file holds threads.
func Detect(ctx context.Context, file string) bool {
	switch is, err := kindOf(file); {
	case err != nil || is == other:
		return false
	case is == rows:
		return true
	}
	d, err := open(ctx, file)
	return err == nil && d.close() == nil
}

// Import imports all threads of a file. An error of Done ends it; others are those of a thread.
func Import(ctx context.Context, st *coppice.Store, file string, o Options) (err error) {
	d, err := open(ctx, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	n := 0
	err = d.threads(ctx, func(name string) error {
		n++
		res, err := thread(ctx, st, d, name, file, o)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			err = fmt.Errorf("%s: thread %q: %w", file, name, err)
		}
		return o.Done(res, err)
	})
	if err == nil && n == 0 {
		err = fmt.Errorf("no threads of LangGraph: %w", fs.ErrNotExist)
	}
	return err
}

// thread imports one thread.
func thread(
	ctx context.Context, st *coppice.Store, d *database, name, file string, o Options,
) (res importer.Result, err error) {
	res.File = file
	list, err := d.refs(ctx, name)
	if err == nil {
		err = rawjson.CheckText("its name", name)
	}
	if err != nil {
		return res, err
	}
	title := name
	if r := []rune(name); len(r) > 200 {
		title = string(r[:200])
	}
	t, err := importer.OpenThread(ctx, st, sessionID(name), importer.ThreadOptions{
		File: file, Format: Format, Clock: o.Clock, Closed: o.Closed, Session: coppice.SessionOptions{
			Title: title, Meta: map[string]string{"store": "langgraph", "thread": title},
		},
	})
	if err != nil {
		return res, err
	}
	if !t.Deleted() {
		w := &work{d: d, t: t, thread: name}
		if err = w.resume(); err == nil {
			err = w.all(ctx, list)
		}
		for _, what := range slices.Sorted(maps.Keys(w.opaque)) {
			t.Report("opaque", fmt.Sprintf("%d values of type %s: kept as they are", w.opaque[what], what))
		}
	}
	res, closed := t.Close(ctx)
	return res, errors.Join(err, closed)
}

// sessionID returns the id of the session of a thread, as the adapter makes it.
func sessionID(thread string) string {
	return "langgraph-" + digest([]byte(`[""`), thread)[:40]
}

// digest returns the SHA-256 of a list whose last element is a text.
func digest(list []byte, text string) string {
	if len(list) > 1 {
		list = append(list, ',')
	}
	sum := sha256.Sum256(append(rawjson.AppendString(list, text), ']'))
	return hex.EncodeToString(sum[:])
}

// entryOf returns the id of the entry of a checkpoint, as the adapter makes it.
func entryOf(ns, id string) string {
	other := func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '_' && c != '-'
	}
	if id == "" || len(id) > 80 || strings.ContainsFunc(id, other) {
		id = digest([]byte{'['}, id)[:40]
	}
	if ns != "" {
		id += "." + digest([]byte{'['}, ns)[:12]
	}
	return id
}

// stored returns a value as the adapter stores it: its JSON, or other bytes with their type.
func (w *work) stored(v typed) ([]byte, error) {
	val, err := w.json(v)
	if err != nil {
		return nil, err
	}
	if val != nil {
		return rawjson.Object("json", val), nil
	}
	w.count("\"" + v.typ + "\"")
	return rawjson.Object("type", rawjson.AppendString(nil, v.typ),
		"bytes", rawjson.AppendString(nil, base64.StdEncoding.EncodeToString(v.value))), nil
}

// json returns the JSON of a value; nil = it has none.
func (w *work) json(v typed) ([]byte, error) {
	switch v.typ {
	case "null":
		return []byte("null"), nil
	case "json":
		if !isJSON(v.value) {
			return nil, errors.New("it is no JSON")
		}
		return rawjson.AppendCompact(nil, v.value), rawjson.CheckText("a value", v.value)
	case "msgpack":
		d := decoder{opaque: w.opaque}
		val, err := d.decode(v.value)
		w.opaque = d.opaque
		return val, err
	}
	return nil, nil
}

func isJSON(p []byte) bool {
	end, _, err := rawjson.Scan(p, 0, rawjson.MaxDepth)
	return err == nil && rawjson.Space(p, end) == len(p)
}

func (w *work) count(what string) {
	d := decoder{opaque: w.opaque}
	d.count(what)
	w.opaque = d.opaque
}

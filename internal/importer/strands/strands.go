// Package strands imports what the session managers of Strands Agents have stored, in a folder or in a copy of an S3
// prefix. An agent is a session: its messages are entries, as the adapter of adapters/strands has them, and the rest of
// it is the state.
//
// Two layouts are known. Those of Python (strands-agents 1.40.0, FileSessionManager and S3SessionManager):
//
//	session_ID/session.json
//	session_ID/agents/agent_ID/agent.json
//	session_ID/agents/agent_ID/messages/message_N.json
//	session_ID/multi_agents/multi_agent_ID/multi_agent.json
//
// and those of TypeScript (@strands-agents/sdk 1.19.0, LocalFileStorage, S3Storage and FileStorage), whose sessions are
// those of the adapter, which continues them:
//
//	[session/]ID/scopes/agent/ID/snapshots/snapshot_latest.json
//	[session/]ID/scopes/agent/ID/snapshots/immutable_history/snapshot_ID.json
//
// Files are only read. A file that is damaged or missing is reported, and the others are imported.
package strands

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/importer"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// Format is the name of the format.
const Format = "strands"

const (
	maxFolders  = 100_000       // folders that are searched
	maxDetected = 1000          // folders that are searched for the format
	maxDepth    = 16            // depth of folders: a prefix of S3 may have parts of its own
	maxFile     = 32 << 20      // bytes of a file
	maxMessages = 200_000       // messages of an agent
	maxEntry    = 4<<20 - 4<<10 // bytes of a message in both forms
	maxTitle    = 200           // characters
	chunk       = 200           // messages of a commit
	chunkBytes  = 1 << 20       // bytes of messages after which a commit ends
)

// Options of Import.
type Options struct {
	Clock  *importer.Clock                          // of the store; may be nil
	Closed func(error)                              // as that of importer.Options; may be nil
	Done   func(r importer.Result, err error) error // called for each session, with its folder or file
}

// Detect reports whether there is a session among the first folders below a folder.
func Detect(root fs.FS) bool {
	found := errors.New("found")
	err := walk(context.Background(), root, maxDetected, func(string, kind) error { return found })
	return errors.Is(err, found)
}

// Import imports all sessions below a folder. An error of Done ends it; others are those of a session.
func Import(ctx context.Context, st *coppice.Store, root fs.FS, o Options) error {
	i := &importing{st: st, root: root, o: o}
	n := 0
	err := walk(ctx, root, maxFolders, func(dir string, k kind) error {
		n++
		if k == snapshots {
			return i.scope(ctx, dir)
		}
		return i.python(ctx, dir)
	})
	if err == nil && n == 0 {
		err = fmt.Errorf("no sessions of Strands: %w", fs.ErrNotExist)
	}
	return err
}

// kind is a layout.
type kind int

const (
	python    kind = iota // a folder session_ID
	snapshots             // a folder snapshots
)

// walk calls visit for each folder of a session, in the order of names.
func walk(ctx context.Context, root fs.FS, most int, visit func(dir string, k kind) error) error {
	n := 0
	return fs.WalkDir(root, ".", func(dir string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && dir == ".":
			return err
		case err != nil || !d.IsDir():
			return nil // a folder that cannot be read holds no session that can be
		}
		if n++; n > most {
			return fmt.Errorf("more than %d folders: import them one by one", most)
		}
		switch {
		case isPython(root, dir):
			err = visit(dir, python)
		case path.Base(dir) == "snapshots" && path.Base(path.Dir(path.Dir(path.Dir(dir)))) == "scopes":
			err = visit(dir, snapshots)
		case strings.Count(dir, "/") < maxDepth:
			return nil
		}
		if err != nil {
			return err
		}
		return fs.SkipDir
	})
}

// isPython reports whether a folder is a session of Python's managers.
func isPython(root fs.FS, dir string) bool {
	names := []string{"session.json", "agents", "multi_agents"}
	if dir == "." {
		names = names[:1]
	} else if !strings.HasPrefix(path.Base(dir), "session_") {
		return false
	}
	for _, name := range names {
		if info, err := fs.Stat(root, path.Join(dir, name)); err == nil && info.IsDir() == (name != "session.json") {
			return true
		}
	}
	return false
}

// importing is one call of Import.
type importing struct {
	st   *coppice.Store
	root fs.FS
	o    Options
}

// thread imports a session: work is called unless it was deleted.
func (i *importing) thread(
	ctx context.Context, id, file string, o coppice.SessionOptions, work func(t *importer.Thread) error,
) error {
	t, err := importer.OpenThread(ctx, i.st, id, importer.ThreadOptions{
		File: file, Format: Format, Session: o, Clock: i.o.Clock, Closed: i.o.Closed,
	})
	res := importer.Result{File: file}
	if err == nil {
		if !t.Deleted() {
			err = work(t)
		}
		var closed error
		res, closed = t.Close(ctx)
		err = errors.Join(err, closed)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return i.o.Done(res, err)
}

var errSize = fmt.Errorf("it has more than %d bytes", maxFile)

// read reads a file that holds an object, as JSON without white space.
func (i *importing) read(name string) (object []byte, err error) {
	text, err := i.text(name)
	if err != nil {
		return nil, err
	}
	if !json.Valid(text) || rawjson.Walk(text).Closing != '}' {
		return nil, errors.New("it is no JSON object")
	}
	return rawjson.AppendCompact(nil, text), nil
}

// text reads a file of UTF-8.
func (i *importing) text(name string) (text []byte, err error) {
	f, err := i.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if text, err = io.ReadAll(io.LimitReader(f, maxFile+1)); err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, errSize
	}
	return text, rawjson.CheckText(path.Base(name), text)
}

// checkState refuses a state that no commit takes.
func checkState(state []byte) error {
	if len(state) > checkpoint.MaxState {
		return fmt.Errorf("%d bytes: a state has at most %d", len(state), checkpoint.MaxState)
	}
	return checkpoint.CheckState("state", state)
}

// sessionID returns the id of the session of a key, as the adapter makes it: keys have any characters, ids do not.
func sessionID(key string) string {
	sum := sha256.Sum256(append(rawjson.AppendString([]byte(`["",`), key), ']'))
	return "strands-" + hex.EncodeToString(sum[:])[:40]
}

// describe returns the options of the session of a key, as the adapter has them.
func describe(key, title string) coppice.SessionOptions {
	meta := map[string]string{"store": "strands", "key": key}
	parts := strings.Split(key, "/")
	for n := 1; n < len(parts) && n <= 4; n++ {
		meta[fmt.Sprintf("in%d", n)] = strings.Join(parts[:n], "/")
	}
	return coppice.SessionOptions{Title: cut(title), Meta: meta}
}

// cut returns the beginning of a title.
func cut(title string) string {
	if r := []rune(title); len(r) > maxTitle {
		return string(r[:maxTitle])
	}
	return title
}

// timeOf returns the time in a member of an object; zero = it has none.
func timeOf(object []byte, name string) time.Time {
	at, _ := time.Parse(time.RFC3339Nano, rawjson.Text(rawjson.Field(object, name)))
	return at
}

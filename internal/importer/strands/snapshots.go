package strands

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-go/coppice/internal/importer"
	"github.com/coppice-go/coppice/internal/rawjson"
)

const (
	latest  = "snapshot_latest.json"
	history = "immutable_history"
)

// scope imports the folder of snapshots of an agent, or of a graph or swarm. Of an agent the newest one with its
// messages is a session, and each immutable one a session that refers to these messages; every other file is a session
// whose state is the text.
func (i *importing) scope(ctx context.Context, dir string) error {
	root := path.Dir(path.Dir(path.Dir(path.Dir(path.Dir(dir))))) // of sessions
	if strings.HasPrefix(dir, "scopes/") {
		return fmt.Errorf("%s: name the folder that has the folder of the session", dir)
	}
	key := "session/" + strings.TrimPrefix(strings.TrimPrefix(dir, root), "/")
	names := []string{}
	list, _ := fs.ReadDir(i.root, path.Join(dir, history)) // those up to an error
	for _, d := range list {
		if name := d.Name(); strings.HasPrefix(name, "snapshot_") && strings.HasSuffix(name, ".json") {
			names = append(names, path.Join(history, name))
		}
	}
	slices.Sort(names) // by time: their ids are UUIDv7
	names = append(names, latest)
	f := folder{dir: dir, key: key, names: names, states: map[string][]byte{}}
	parts := strings.Split(key, "/")
	f.title = parts[1] + " " + parts[len(parts)-2]
	if parts[len(parts)-3] == "agent" {
		if err := i.snapshots(ctx, &f); err != nil {
			return err
		}
		names = nil
	}
	for _, name := range append(names, "manifest.json") {
		if err := i.value(ctx, &f, name); err != nil {
			return err
		}
	}
	return nil
}

// folder is a folder of snapshots.
type folder struct {
	dir, key, title string
	names           []string          // of snapshots, the newest one last
	states          map[string][]byte // of the sessions of immutable snapshots
}

// snapshots imports the snapshots of an agent.
func (i *importing) snapshots(ctx context.Context, f *folder) error {
	main := sessionID(f.key + "/" + latest)
	err := i.thread(ctx, main, f.dir, describe(f.key+"/"+latest, f.title), func(t *importer.Thread) error {
		return i.conversation(ctx, t, f, main)
	})
	if err != nil {
		return err
	}
	for _, name := range f.names {
		state := f.states[name]
		if state == nil {
			continue
		}
		o := describe(f.key+"/"+name, f.title)
		o.Parent, o.Relation = main, "snapshot"
		err := i.thread(ctx, sessionID(f.key+"/"+name), path.Join(f.dir, name), o, func(t *importer.Thread) error {
			created := timeOf(rawjson.Field(state, "snapshot"), "createdAt")
			return t.Commit(ctx, importer.Step{State: state, Docs: map[string]any{"stored": true}, Time: created})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// value imports a file as a session whose state is its text.
func (i *importing) value(ctx context.Context, f *folder, name string) error {
	file := path.Join(f.dir, name)
	if _, err := fs.Stat(i.root, file); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	key := f.key + "/" + name
	return i.thread(ctx, sessionID(key), file, describe(key, f.title), func(t *importer.Thread) error {
		text, err := i.text(file)
		state := rawjson.Object("text", rawjson.AppendString(nil, text))
		if err == nil {
			err = checkState(state)
		}
		if err != nil {
			t.Bad("unreadable", fmt.Sprintf("%s: %v", name, err))
			return nil
		}
		return t.Commit(ctx, importer.Step{State: state, Docs: map[string]any{"stored": true}})
	})
}

// spoken is a message of a path.
type spoken struct{ id, text string }

// snapshot is what the file of a snapshot holds.
type snapshot struct {
	rest    []byte // without the messages
	texts   []string
	created time.Time
}

// conversation stores the messages of all snapshots, and the newest one as the state.
func (i *importing) conversation(ctx context.Context, t *importer.Thread, f *folder, main string) error {
	known, drop, err := i.pathOf(ctx, t)
	if err != nil {
		return err
	}
	for _, name := range f.names {
		s, err := i.snapshot(path.Join(f.dir, name))
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) || len(f.names) == 1 {
				t.Bad("unreadable", fmt.Sprintf("%s: %v", name, err))
			}
			continue
		}
		l := &line{t: t, time: s.created}
		keep := 0
		if keep, drop = align(known, s.texts, drop); keep > 0 {
			l.at = known[keep-1].id
		}
		known = slices.Clone(known[:keep])
		for _, text := range s.texts[keep-drop:] {
			if err := l.add([]byte(text), time.Time{}, func() error { return t.Commit(ctx, l.step()) }); err != nil {
				return err
			}
			known = append(known, spoken{l.at, text})
		}
		if err := i.store(ctx, t, f, main, name, s, l, drop); err != nil {
			return err
		}
	}
	return nil
}

// store stores the last messages of a snapshot, and the newest one as the state.
func (i *importing) store(
	ctx context.Context, t *importer.Thread, f *folder, main, name string, s snapshot, l *line, drop int,
) error {
	leaf, of := []byte("null"), []byte(nil)
	if l.at != "" {
		leaf = rawjson.AppendString(nil, l.at)
	}
	if name != latest {
		of = rawjson.AppendString(nil, main)
	}
	state := rawjson.Object("snapshot", s.rest, "of", of, "leaf", leaf, "drop", strconv.AppendInt(nil, int64(drop), 10))
	if err := checkState(state); err != nil {
		t.Bad("too-large", fmt.Sprintf("%s: %v", name, err))
		state = nil
	}
	step := l.step()
	if name == latest && state != nil {
		step.State, step.Docs = state, map[string]any{"stored": true}
	}
	if f.states[name] = state; name == latest {
		f.states[name] = nil // it is the session's own
	} else if len(step.Entries) == 0 {
		return nil
	}
	return t.Commit(ctx, step)
}

// pathOf returns the messages of the snapshot that an import before has stored, and how many of the first ones it does
// not have.
func (i *importing) pathOf(ctx context.Context, t *importer.Thread) (list []spoken, drop int, err error) {
	var state struct {
		Leaf *string `json:"leaf"`
		Drop int     `json:"drop"`
	}
	if t.Session().Info().Commit == "" {
		return nil, 0, nil
	}
	if err := t.Session().State(&state); err != nil || state.Leaf == nil {
		return nil, 0, err
	}
	for e, err := range t.Session().Path(ctx, *state.Leaf) {
		if err != nil {
			return nil, 0, err
		}
		if text := rawjson.Field(e.Raw, "original"); text != nil {
			list = append(list, spoken{e.ID, string(text)})
		}
	}
	slices.Reverse(list)
	return list, min(state.Drop, len(list)), nil
}

// snapshot reads a snapshot of an agent.
func (i *importing) snapshot(name string) (s snapshot, err error) {
	file, err := i.read(name)
	if err != nil {
		return s, err
	}
	data := rawjson.Field(file, "data")
	messages := rawjson.Field(data, "messages")
	if rawjson.Walk(messages).Closing != ']' {
		return s, errors.New("it has no messages, so it is no snapshot of an agent")
	}
	for m := rawjson.Walk(messages); m.Next(); {
		if !isMessage(m.Val) {
			return s, fmt.Errorf("message %d has no role and content", len(s.texts)+1)
		}
		s.texts = append(s.texts, string(m.Val))
	}
	s.rest = rawjson.WithField(file, "data", rawjson.WithField(data, "messages", nil))
	s.created = timeOf(file, "createdAt")
	return s, nil
}

// align returns how much of a path the next messages keep, and how many of its first messages they do not have. A
// window that moves drops the first ones; other changes branch from the last message that is the same.
func align(list []spoken, next []string, drop int) (keep, dropped int) {
	fits := func(from int) bool {
		if len(list)-from > len(next) {
			return false
		}
		for k, m := range list[from:] {
			if m.text != next[k] {
				return false
			}
		}
		return true
	}
	for from := drop; from < len(list); from++ {
		if fits(from) {
			return len(list), from
		}
	}
	same := 0
	for drop+same < len(list) && same < len(next) && list[drop+same].text == next[same] {
		same++
	}
	if same == 0 {
		return 0, 0
	}
	return drop + same, drop
}

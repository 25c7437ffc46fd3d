package strands

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/importer"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// origin identifies a session of Python's managers. Its time is part of the ids: two folders may have a session of one
// name.
type origin struct{ id, created string }

// python imports the agents of a session, and the states of its graphs and swarms.
func (i *importing) python(ctx context.Context, dir string) error {
	from := origin{id: strings.TrimPrefix(path.Base(dir), "session_")}
	about, unread := i.read(path.Join(dir, "session.json"))
	if unread == nil {
		from.id = cmp.Or(rawjson.Text(rawjson.Field(about, "session_id")), from.id)
		from.created = rawjson.Text(rawjson.Field(about, "created_at"))
	}
	for _, name := range i.folders(path.Join(dir, "agents"), "agent_") {
		if err := i.agent(ctx, path.Join(dir, "agents", name), name, from, about, unread); err != nil {
			return err
		}
	}
	for _, name := range i.folders(path.Join(dir, "multi_agents"), "multi_agent_") {
		if err := i.several(ctx, path.Join(dir, "multi_agents", name), name, from); err != nil {
			return err
		}
	}
	return nil
}

// folders returns the names of folders with a prefix.
func (i *importing) folders(dir, prefix string) (names []string) {
	list, _ := fs.ReadDir(i.root, dir) // those up to an error
	for _, d := range list {
		if d.IsDir() && strings.HasPrefix(d.Name(), prefix) {
			names = append(names, d.Name())
		}
	}
	return names
}

// agent imports an agent: its messages, then agent.json as the state.
func (i *importing) agent(ctx context.Context, dir, name string, from origin, about []byte, unread error) error {
	key := "session_" + from.id + "/agents/" + name
	o := describe(key, from.id+" "+strings.TrimPrefix(name, "agent_"))
	return i.thread(ctx, sessionID(key+"@"+from.created), dir, o, func(t *importer.Thread) error {
		if unread != nil {
			t.Bad("unreadable", fmt.Sprintf("session.json: %v", unread))
		}
		l := &line{t: t}
		commit := func() error { return t.Commit(ctx, l.step()) }
		if err := i.messages(ctx, dir, t, l, commit); err != nil {
			return err
		}
		last := l.step()
		state, err := i.read(path.Join(dir, "agent.json"))
		if err == nil {
			err = checkState(state)
		}
		if err != nil {
			t.Bad("unreadable", fmt.Sprintf("agent.json: %v", err))
		} else if last.State = state; len(last.Entries) == 0 {
			last.Time = timeOf(state, "updated_at")
		}
		if about != nil && len(about) <= checkpoint.MaxDoc && t.Session().Info().Commit == "" {
			last.Docs = map[string]any{"strands.session": json.RawMessage(about)}
		}
		return t.Commit(ctx, last)
	})
}

// messages adds the messages of an agent in the order of their numbers.
func (i *importing) messages(ctx context.Context, dir string, t *importer.Thread, l *line, commit func() error) error {
	dir = path.Join(dir, "messages")
	list, err := fs.ReadDir(i.root, dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Bad("unreadable", err.Error())
	}
	var numbers []int
	for _, d := range list {
		text, ok := strings.CutPrefix(strings.TrimSuffix(d.Name(), ".json"), "message_")
		if n, err := strconv.Atoi(text); ok && err == nil && n >= 0 && strings.HasSuffix(d.Name(), ".json") {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	if len(numbers) > maxMessages {
		return fmt.Errorf("%d messages: at most %d are imported", len(numbers), maxMessages)
	}
	for k, n := range numbers {
		if err := ctx.Err(); err != nil {
			return err
		}
		due := 0
		if k > 0 {
			due = numbers[k-1] + 1
		}
		if due < n {
			t.Report("missing", fmt.Sprintf("%d messages before message_%d.json", n-due, n))
		}
		if err := i.message(path.Join(dir, fmt.Sprintf("message_%d.json", n)), t, l, commit); err != nil {
			return err
		}
	}
	return nil
}

// message adds a message. Of one that a guardrail has redacted the framework reads the replacement alone, so it alone
// is imported.
func (i *importing) message(name string, t *importer.Thread, l *line, commit func() error) error {
	file, err := i.read(name)
	message := rawjson.Field(file, "message")
	if other := rawjson.Field(file, "redact_message"); rawjson.Walk(other).Closing == '}' {
		message = other
		t.Report("redacted", path.Base(name)+": the text that replaced it is imported")
	}
	switch {
	case err != nil:
		t.Bad("unreadable", fmt.Sprintf("%s: %v", path.Base(name), err))
		return nil
	case !isMessage(message):
		t.Bad("no-message", path.Base(name)+": it has no message with a role and content")
		return nil
	}
	return l.add(message, timeOf(file, "created_at"), commit)
}

// several imports the state of a graph or a swarm.
func (i *importing) several(ctx context.Context, dir, name string, from origin) error {
	key := "session_" + from.id + "/multi_agents/" + name
	o := describe(key, from.id+" "+strings.TrimPrefix(name, "multi_agent_"))
	return i.thread(ctx, sessionID(key+"@"+from.created), dir, o, func(t *importer.Thread) error {
		state, err := i.read(path.Join(dir, "multi_agent.json"))
		if err == nil {
			err = checkState(state)
		}
		if err != nil {
			t.Bad("unreadable", fmt.Sprintf("multi_agent.json: %v", err))
			return nil
		}
		return t.Commit(ctx, importer.Step{State: state})
	})
}

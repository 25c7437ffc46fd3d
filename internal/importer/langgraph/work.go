package langgraph

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/importer"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// maxEntry bounds the data of an entry, in bytes.
const maxEntry = 4<<20 - 4<<10

// state is the state of a session, as the adapter has it: the newest checkpoint of each namespace on this branch, and
// the greatest id of each on all branches.
type state struct {
	Latest map[string]string          `json:"latest"`
	Spaces map[string]json.RawMessage `json:"spaces"`
}

// raw returns the JSON of a state.
func (s state) raw() []byte {
	latest, spaces := []any(nil), []any(nil)
	for _, ns := range slices.Sorted(maps.Keys(s.Latest)) {
		latest = append(latest, ns, rawjson.AppendString(nil, s.Latest[ns]))
	}
	for _, ns := range slices.Sorted(maps.Keys(s.Spaces)) {
		spaces = append(spaces, ns, []byte(s.Spaces[ns]))
	}
	return rawjson.Object("latest", rawjson.Object(latest...), "spaces", rawjson.Object(spaces...))
}

// work is the import of one thread.
type work struct {
	d      *database
	t      *importer.Thread
	thread string
	now    state
	opaque map[string]int
	delta  bool // it was reported that a channel stores differences
}

// resume reads the state that an import before has left.
func (w *work) resume() error {
	if w.t.Session().Info().Commit != "" {
		if err := w.t.Session().State(&w.now); err != nil {
			return err
		}
	}
	if w.now.Latest == nil {
		w.now.Latest = map[string]string{}
	}
	return nil
}

// all imports the checkpoints in the order of their ids, but none before its parent.
func (w *work) all(ctx context.Context, list []ref) error {
	type name struct{ ns, id string }
	at, done := map[name]int{}, make([]bool, len(list))
	for k, r := range list {
		at[name{r.ns, r.id}] = k
	}
	above := func(r ref) (int, bool) { k, ok := at[name{r.ns, r.parent}]; return k, ok && r.parent != "" }
	for k := range list {
		var due []int // the checkpoint and those above it, the last one first
		for next, ok := k, true; ok && !done[next]; next, ok = above(list[next]) {
			due, done[next] = append(due, next), true
		}
		for _, k := range slices.Backward(due) {
			stored := func(r ref) (ref, bool) { // the nearest one above that is stored
				for range list {
					up, ok := above(r)
					if !ok {
						break
					}
					if r = list[up]; w.t.Has(entryOf(r.ns, r.id)) {
						return r, true
					}
				}
				return ref{}, false
			}
			parent, ok := stored(list[k])
			if !ok {
				parent = ref{}
			}
			if err := w.one(ctx, list[k], parent.id); err != nil {
				return err
			}
		}
	}
	return nil
}

// one imports a checkpoint and the writes to it. parent is the nearest one above it that is stored; "" = none.
func (w *work) one(ctx context.Context, r ref, parent string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !w.t.Has(entryOf(r.ns, r.id)) {
		step, next, err := w.checkpoint(ctx, r, parent)
		if err != nil || step.State == nil {
			return err
		}
		step.Reason = "checkpoint"
		if err := w.t.Commit(ctx, step); err != nil {
			return fmt.Errorf("checkpoint %s: %w", r.id, err)
		}
		w.now = next
	}
	// In a commit of their own: the state at an entry is that of the commit which ends with it.
	entries, err := w.writes(ctx, r)
	if err != nil {
		w.bad("writes to checkpoint "+r.id, err)
	}
	if len(entries) == 0 {
		return ctx.Err()
	}
	if err := w.t.Commit(ctx, importer.Step{Entries: entries, Reason: "writes"}); err != nil {
		return fmt.Errorf("writes to checkpoint %s: %w", r.id, err)
	}
	return nil
}

// bad reports what is not imported, and why.
func (w *work) bad(what string, err error) {
	kind := "unreadable"
	if _, ok := errors.AsType[sizeError](err); ok {
		kind = "too-large"
	}
	w.t.Bad(kind, fmt.Sprintf("%s: %v", what, err))
}

// checkpoint makes the step of a checkpoint, and the state after it. Without a state it is one that cannot be stored,
// which is reported.
func (w *work) checkpoint(ctx context.Context, r ref, parent string) (step importer.Step, next state, err error) {
	c, metadata, err := w.d.checkpoint(ctx, w.thread, r)
	var object, meta []byte
	if err == nil {
		object, err = w.json(c)
	}
	if err == nil && rawjson.Walk(object).Closing != '}' {
		err = fmt.Errorf("its type is %q, which cannot be read", c.typ)
	}
	if err == nil {
		if isJSON(metadata.value) { // as Python writes it, whatever the type of the checkpoint
			metadata.typ = "json"
		} else if metadata.value == nil {
			metadata = typed{"json", []byte("{}")}
		}
		meta, err = w.stored(metadata)
	}
	if err == nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		w.bad("checkpoint "+r.id, err)
		return step, next, ctx.Err()
	}
	base, from, err := w.base(ctx, r, parent)
	if err != nil {
		return step, next, err
	}
	channels, messages, err := w.channels(ctx, r, object)
	if err != nil {
		w.bad("checkpoint "+r.id, err)
		return step, next, ctx.Err()
	}
	at, _ := time.Parse(time.RFC3339Nano, rawjson.Text(rawjson.Field(object, "ts")))
	step = importer.Step{From: from, Time: at}
	shown, _ := strconv.Atoi(string(rawjson.Field(base[r.ns], "shown")))
	count := 0
	if r.ns == "" {
		step.Entries, count = w.messages(r, messages, shown, at)
	}
	data := rawjson.Object("thread", rawjson.AppendString(nil, w.thread), "ns", rawjson.AppendString(nil, r.ns),
		"id", rawjson.AppendString(nil, r.id), "metadata", meta)
	step.Entries = append(step.Entries, custom("langgraph.checkpoint", entryOf(r.ns, r.id), data, at))
	var named []byte
	if r.parent != "" {
		named = rawjson.AppendString(nil, r.parent)
	}
	next = state{Latest: maps.Clone(w.now.Latest), Spaces: maps.Clone(base)}
	if next.Spaces == nil {
		next.Spaces = map[string]json.RawMessage{}
	}
	next.Latest[r.ns] = max(next.Latest[r.ns], r.id)
	next.Spaces[r.ns] = rawjson.Object("id", rawjson.AppendString(nil, r.id), "parent", named,
		"checkpoint", rawjson.Object("json", rawjson.WithField(object, "channel_values", nil)), "metadata", meta,
		"channels", channels, "shown", strconv.AppendInt(nil, int64(count), 10))
	step.State = next.raw()
	if len(step.State) > checkpoint.MaxState {
		err = fmt.Errorf("%d bytes: a state has at most %d", len(step.State), checkpoint.MaxState)
	} else if err = checkpoint.CheckState("state", step.State); err == nil && len(data) > maxEntry {
		err = fmt.Errorf("%d bytes of metadata: at most %d are stored", len(data), maxEntry)
	}
	if err != nil {
		w.t.Bad("too-large", fmt.Sprintf("checkpoint %s: %v", r.id, err))
		return importer.Step{}, w.now, nil
	}
	return step, next, nil
}

// base returns the spaces that a checkpoint is made on, those of the newest commit or of its parent, and in the latter
// case the entry of that.
func (w *work) base(ctx context.Context, r ref, parent string) (map[string]json.RawMessage, *string, error) {
	is := rawjson.Text(rawjson.Field(w.now.Spaces[r.ns], "id"))
	if parent == "" || is == "" || is == parent {
		return w.now.Spaces, nil, nil
	}
	at := entryOf(r.ns, parent)
	v, err := w.t.Session().At(ctx, coppice.Target{Entry: at})
	if err != nil {
		return nil, nil, err
	}
	var old state
	if err := v.State(&old); err != nil {
		return nil, nil, err
	}
	if r.ns == "" {
		return old.Spaces, &at, nil
	}
	spaces := maps.Clone(w.now.Spaces) // the head is where the thread is, not a subgraph
	if spaces[r.ns] = old.Spaces[r.ns]; old.Spaces[r.ns] == nil {
		delete(spaces, r.ns)
	}
	return spaces, nil, nil
}

// channels returns the values of channels with their versions, and of those the messages.
func (w *work) channels(ctx context.Context, r ref, object []byte) (all, messages []byte, err error) {
	values := rawjson.Field(object, "channel_values")
	var list []any
	add := func(name string, version, val []byte) {
		if name == "messages" {
			messages = rawjson.Field(val, "json")
		}
		if w.isDelta(rawjson.Field(val, "json")) && !w.delta {
			w.delta = true
			w.t.Report("delta-channel", fmt.Sprintf("%q stores differences: its value is in the writes", name))
		}
		list = append(list, name, rawjson.WithField(val, "v", version))
	}
	versions := rawjson.Field(object, "channel_versions")
	for m := rawjson.Walk(versions); m.Next(); {
		name, version := string(m.Key), string(m.Val)
		if rawjson.IsString(m.Val) {
			version = rawjson.Text(m.Val)
		}
		blob, ok := typed{}, false
		if w.d.blobs {
			if blob, ok, err = w.d.blob(ctx, w.thread, r.ns, name, version); err != nil {
				return nil, nil, fmt.Errorf("channel %q: %w", name, err)
			}
		}
		if ok {
			val, err := w.stored(blob)
			if err != nil {
				return nil, nil, fmt.Errorf("channel %q: %w", name, err)
			}
			add(name, m.Val, val)
		} else if val := rawjson.Field(values, name); val != nil {
			add(name, m.Val, rawjson.Object("json", val))
		}
	}
	for m := rawjson.Walk(values); m.Next(); {
		if rawjson.Field(versions, string(m.Key)) == nil {
			add(string(m.Key), []byte("null"), rawjson.Object("json", m.Val))
		}
	}
	return rawjson.Object(list...), messages, nil
}

// isDelta reports whether a value is a snapshot of a channel that stores differences.
func (w *work) isDelta(val []byte) bool {
	return bytes.HasPrefix(val, []byte(`{"lc":2,`)) &&
		bytes.Contains(rawjson.Field(val, "id"), []byte(`"_DeltaSnapshot"`))
}

// messages returns the entries of the messages beyond those that are shown, and the number of all.
func (w *work) messages(r ref, list []byte, shown int, at time.Time) (entries []transcript.Draft, n int) {
	if rawjson.Walk(list).Closing != ']' {
		return nil, 0
	}
	for m := rawjson.Walk(list); m.Next(); n++ {
		if n < shown {
			continue
		}
		message := messageOf(m.Val)
		if len(message) > maxEntry {
			w.t.Report("too-large", fmt.Sprintf("message %d of checkpoint %s is in its state alone", n, r.id))
			continue
		}
		if message != nil {
			entries = append(entries, transcript.Draft{
				Type: "message", ID: fmt.Sprintf("%s.m%d", entryOf(r.ns, r.id), n), Time: at,
				Body: rawjson.Object("message", message),
			})
		}
	}
	return entries, n
}

// writes returns the entries of what the tasks of a checkpoint have written, which the session does not have.
func (w *work) writes(ctx context.Context, r ref) (entries []transcript.Draft, err error) {
	list, err := w.d.writes(ctx, w.thread, r)
	for len(list) > 0 {
		n := slices.IndexFunc(list, func(x write) bool { return x.task != list[0].task })
		if n < 0 {
			n = len(list)
		}
		data, derr := w.task(r, list[:n])
		task := list[0].task
		if list = list[n:]; derr == nil && len(data) > maxEntry {
			derr = fmt.Errorf("%d bytes: at most %d are stored", len(data), maxEntry)
		}
		if derr != nil {
			w.bad(fmt.Sprintf("writes of task %s to checkpoint %s", task, r.id), derr)
			continue
		}
		id := "w-" + digest([]byte{'['}, r.ns+"\x00"+r.id+"\x00"+task)[:24]
		id += "-" + digest([]byte{'['}, string(data))[:8]
		if !w.t.Has(id) {
			entries = append(entries, custom("langgraph.writes", id, data, time.Time{}))
		}
	}
	return entries, err
}

// task returns the data of the writes of one task.
func (w *work) task(r ref, list []write) ([]byte, error) {
	var all [][]byte
	for _, x := range list {
		err := checkSize(x.size)
		var val []byte
		if err == nil {
			val, err = w.stored(x.typed)
		}
		if err != nil {
			return nil, fmt.Errorf("channel %q: %w", x.channel, err)
		}
		head := rawjson.Object("i", strconv.AppendInt(nil, x.idx, 10), "ch", rawjson.AppendString(nil, x.channel))
		all = append(all, append(append(head[:len(head)-1], ','), val[1:]...))
	}
	return rawjson.Object("ns", rawjson.AppendString(nil, r.ns), "cp", rawjson.AppendString(nil, r.id),
		"task", rawjson.AppendString(nil, list[0].task), "path", rawjson.AppendString(nil, list[0].path),
		"writes", rawjson.List(all)), nil
}

func custom(kind, id string, data []byte, at time.Time) transcript.Draft {
	return transcript.Draft{Type: "custom", ID: id, Time: at, Body: rawjson.Object(
		"customType", rawjson.AppendString(nil, kind), "data", data)}
}

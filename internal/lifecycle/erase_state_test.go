package lifecycle_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/sessiontest"
	"github.com/coppice-go/coppice/transcript"
)

// plan is a state of which one value is a secret; it is long enough for patches.
func plan(turn int, secret any) json.RawMessage {
	p, err := json.Marshal(map[string]any{
		"plan": []any{turn, "two", map[string]any{"key": secret, "turn": turn}}, "same": secret != nil,
		"long": strings.Repeat("kept ", 1000), "a/b": turn,
	})
	if err != nil {
		panic(err)
	}
	return p
}

// Values within states, and small documents, go out of every commit, snapshot and fork.
func TestEraseStates(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		for turn := range 80 {
			var secret any = erasedWord
			if turn < 3 || turn > 70 {
				secret = nil
			}
			say(t, s, "turn")
			r := coppice.Turn{State: plan(turn, secret), Docs: map[string]any{"notes": erasedWord, "stay": turn}}
			must(s.Commit(bg, r))(t)
			if turn == 40 {
				must(s.Snapshot(bg, "tag"))(t)
			}
		}
		fork := must(s.Fork(bg, coppice.Target{Seq: 60}, "fork", nil))(t)
		ok(t, fork.Close())
		agent := create(t, store, "agent", &coppice.SessionOptions{Parent: "s"})
		must(agent.Commit(bg, coppice.Turn{State: plan(1, "its own")}))(t)

		paths := &coppice.EraseOptions{
			States: []string{"/plan/2/key", "/nothing", "/plan/7"}, Docs: []string{"notes", "none"}, Reason: "asked",
		}
		paths.DryRun = true
		dry := must(store.Erase(bg, "s", nil, paths))(t)
		paths.DryRun = false
		r := must(store.Erase(bg, "s", nil, paths))(t)
		for _, r := range []coppice.Erased{dry, r} {
			same(t, "states", strings.Join(r.States, " "), "/plan/2/key")
			same(t, "documents", strings.Join(r.Docs, " "), "notes")
			if len(r.Others) != 1 || r.Others[0].Session != "fork" || len(r.Others[0].States) != 1 {
				t.Errorf("others: %+v", r.Others)
			}
		}
		paths.Everywhere = true
		must(store.Erase(bg, "s", nil, paths))(t)
		unproven(t, store)

		must(s.Commit(bg, coppice.Turn{Docs: map[string]any{"stay": 200}}))(t) // the handle commits again
		unproven(t, store)
		h := open(t, store, "s")
		for _, seq := range []uint64{1, 3, 4, 41, 42, 43, 64, 71, 80} {
			v := must(h.At(bg, coppice.Target{Seq: seq}))(t)
			var got map[string]any
			ok(t, v.State(&got))
			turn := int(seq) - 1
			if got["a/b"] != float64(turn) {
				turn-- // the snapshot's own commit came between
			}
			want := map[string]any{}
			ok(t, json.Unmarshal(plan(turn, nil), &want))
			want["same"] = turn >= 3 && turn <= 70
			same(t, "state", got, want)
			for name := range v.Docs() {
				same(t, "document", name, "stay")
			}
		}
		same(t, "again", must(store.Erase(bg, "s", nil, paths))(t).Commit.Commit, "")
		if rep := must(store.Verify(bg, "s", true))(t); len(rep.Problems) > 0 {
			t.Errorf("%v", rep.Problems)
		}
		var own map[string]any
		ok(t, open(t, store, "agent").State(&own))
		if own["plan"] == nil || own["plan"].([]any)[2].(map[string]any)["key"] != "its own" {
			t.Errorf("the state of an agent's session is %v", own["plan"])
		}
	})
}

// A fork or a copy may share the state alone: it has no entry of the session, or only stubs. A session that is neither
// keeps the value in the same place, also if it has an entry of the same short id.
func TestEraseStatesWithoutAnEntry(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		must(s.Commit(bg, coppice.Turn{State: plan(1, erasedWord)}))(t)
		ok(t, must(s.Fork(bg, coppice.Target{}, "fork", nil))(t).Close())
		ok(t, must(store.Copy(bg, store, "s", "copy"))(t).Close())
		said := must(s.Append(bg, entry.User("said")))(t)
		must(s.Append(bg, named("a1", transcript.KnownError)))(t)
		must(s.Commit(bg, coppice.Turn{}))(t)
		between := must(s.Fork(bg, coppice.Target{}, "between", nil))(t)
		ok(t, must(between.Fork(bg, coppice.Target{}, "late", nil))(t).Close())
		ok(t, between.Close())
		ok(t, store.Delete(bg, "between"))
		must(store.Erase(bg, "late", said, nil))(t)
		for id, o := range map[string]*coppice.SessionOptions{"agent": {Parent: "s"}, "unrelated": nil} {
			h := create(t, store, id, o)
			must(h.Append(bg, named("a1", transcript.KnownError)))(t)
			must(h.Commit(bg, coppice.Turn{State: plan(1, "its own")}))(t)
		}
		paths := &coppice.EraseOptions{States: []string{"/plan/2/key"}}
		r := must(store.Erase(bg, "s", nil, paths))(t)
		if len(r.Others) != 1 || r.Others[0].Session != "fork" {
			t.Errorf("by links: %+v", r.Others)
		}
		paths.Everywhere = true
		same(t, "others", len(must(store.Erase(bg, "s", nil, paths))(t).Others), 3)
		unproven(t, store)
		for _, id := range []string{"agent", "unrelated"} {
			var own json.RawMessage
			ok(t, open(t, store, id).State(&own))
			same(t, id, string(own), string(plan(1, "its own")))
		}
	})
}

// A turn that was made before an erasure, and is kept as a branch after it, brings nothing back.
func TestEraseBeforeAKeptTurn(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		off := must(s.Append(bg, entry.User("one"), entry.Assistant(erasedWord)))(t)
		must(s.Commit(bg, coppice.Turn{}))(t)
		must(s.Edit(bg, off[0], entry.User("another")))(t)
		ok(t, s.SetContext(bg, itemFor(off[1]))) // the document brings it along: it is not on the path
		must(s.Commit(bg, coppice.Turn{State: plan(0, erasedWord)}))(t)
		late := open(t, store, "s")
		say(t, late, "late")
		say(t, s, "first")
		ok(t, s.SetContext(bg, itemOf(`{"role":"user","content":"explicit"}`)))
		must(s.Commit(bg, coppice.Turn{}))(t)

		must(store.Erase(bg, "s", off[1:], &coppice.EraseOptions{States: []string{"/plan/2/key"}}))(t)
		unproven(t, store)
		if r := must(late.Commit(bg, coppice.Turn{KeepBoth: true}))(t); r.Kept == "" {
			t.Errorf("it is no branch: %+v", r)
		}
		unproven(t, store)
		must(s.Switch(bg, off[1]))(t)
		unproven(t, store)
	})
}

// What an explicit context brings along of an entry goes with it; a handle that is open writes it in no later commit.
func TestEraseInAnExplicitContext(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		off := must(s.Append(bg, entry.User("one"), entry.Assistant(erasedWord)))(t)
		commit(t, s, state{Turns: 1})
		must(s.Edit(bg, off[0], entry.User("another")))(t)
		ok(t, s.SetContext(bg, itemFor(off[1])))
		commit(t, s, state{Turns: 2})
		must(s.Snapshot(bg, "tag"))(t)
		unsaved := open(t, store, "s")
		ok(t, unsaved.SetContext(bg, itemFor(off[1]), itemOf(`{"role":"user","content":"more"}`)))

		must(store.Erase(bg, "s", off[1:], nil))(t)
		unproven(t, store)
		commit(t, unsaved, state{Turns: 3})
		unproven(t, store)
		for _, h := range []*coppice.Session{unsaved, open(t, store, "s")} {
			same(t, "the context", texts(t, h), "[erased] more")
		}
		if err := s.Reload(bg); err != nil {
			t.Fatal(err)
		}
		commit(t, s, state{Turns: 4})
		unproven(t, store)
	})
}

// Labels and amendments have the same ids in a fork, so that an erasure finds them there.
func TestEraseNotesEverywhere(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		ids := must(s.Append(bg, entry.User("one"), entry.Assistant("two")))(t)
		commit(t, s, state{Turns: 1})
		must(s.Amend(bg, ids[0], entry.User("amended: "+erasedWord)))(t)
		must(s.Label(bg, ids[1], erasedWord))(t)
		ok(t, must(s.Fork(bg, coppice.Target{}, "fork", nil))(t).Close())
		var notes []string
		for e, err := range s.Entries(bg) {
			ok(t, err)
			if _, amends := e.Amendment(); amends || e.Type == "label" {
				notes = append(notes, e.ID)
			}
		}
		same(t, "notes", len(notes), 2)
		must(store.Erase(bg, "s", notes, &coppice.EraseOptions{Everywhere: true}))(t)
		unproven(t, store)
	})
}

// A fork is found also where the session between was deleted, and so is a copy under another id.
func TestEraseWithoutALink(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "a", nil)
		ids := must(s.Append(bg, entry.User(erasedWord)))(t)
		commit(t, s, state{Turns: 1})
		between := must(s.Fork(bg, coppice.Target{}, "b", nil))(t)
		ok(t, must(between.Fork(bg, coppice.Target{}, "c", nil))(t).Close())
		ok(t, between.Close())
		ok(t, store.Delete(bg, "b"))
		ok(t, must(store.Copy(bg, store, "a", "copy"))(t).Close())
		r := must(store.Erase(bg, "a", ids, &coppice.EraseOptions{Everywhere: true}))(t)
		same(t, "others", len(r.Others), 2)
		unproven(t, store)
	})
}

// Copies are found by a later call too, when the entries of the session itself are erased already. In another session
// an entry that only has the id of one that goes stays.
func TestEraseElsewhereLater(t *testing.T) {
	const header = `{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}` + "\n"
	first, second := sessiontest.PiLine("m1", "null", erasedWord), sessiontest.PiLine("m2", "m1", "two")
	file := []byte(header + first + "\n" + second + "\n")
	unrelated := bytes.ReplaceAll(file, []byte("00:00:01"), []byte("00:00:09"))
	unrelated = bytes.ReplaceAll(unrelated, []byte(erasedWord), []byte("of another"))
	onEach(t, func(t *testing.T, store *coppice.Store) {
		for id, raw := range map[string][]byte{"s": file, "again": file, "unrelated": unrelated} {
			lines, o := fileLines(raw)
			o.ID = id
			ok(t, must(store.Import(bg, lines, o))(t).Close())
		}
		r := must(store.Erase(bg, "s", []string{"m1"}, nil))(t)
		same(t, "others by links", len(r.Others), 0)
		r = must(store.Erase(bg, "s", []string{"m1", "m2"}, &coppice.EraseOptions{Everywhere: true}))(t)
		same(t, "others", len(r.Others), 1)
		unproven(t, store)
		same(t, "a session with equal ids", texts(t, open(t, store, "unrelated")), "of another two")
	})
}

// A session that cannot be read is named, and keeps no other one from being erased.
func TestEraseBesideADamagedSession(t *testing.T) {
	b := memory.New()
	store := newStore(t, b, nil)
	s := create(t, store, "s", nil)
	ids := must(s.Append(bg, entry.User(erasedWord)))(t)
	commit(t, s, state{Turns: 1})
	for _, id := range []string{"fork", "whole"} {
		ok(t, must(s.Fork(bg, coppice.Target{}, id, nil))(t).Close())
	}
	must(b.Put(bg, "checkpoint_latest/fork", []byte("damaged"), backend.Cond{}))(t)
	r, err := store.Erase(bg, "s", ids, &coppice.EraseOptions{Everywhere: true})
	if !errors.Is(err, coppice.ErrCorrupt) || !strings.Contains(err.Error(), "session fork") {
		t.Errorf("got %v", err)
	}
	same(t, "others", len(r.Others), 1)
	for _, id := range []string{"s", "whole"} {
		for key, object := range objects(t, b) {
			if strings.Contains(key, "/"+id) && strings.Contains(object, erasedWord) {
				t.Errorf("%s has the text", key)
			}
		}
		same(t, id, strings.Contains(texts(t, open(t, store, id)), erasedWord), false)
	}
}

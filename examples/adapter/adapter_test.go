package adapter

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/coppice-go/coppice"
	coppicebackend "github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
)

func TestEino(t *testing.T) {
	ctx := context.Background()
	store, err := coppice.New(memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	e := Eino{Store: store}
	get := func(id string, want []byte, there bool) {
		t.Helper()
		p, found, err := e.Get(ctx, id)
		if err != nil || found != there || !bytes.Equal(p, want) {
			t.Errorf("%q: %v, %v, %v", id, p, found, err)
		}
	}
	set := func(id string, p []byte) {
		t.Helper()
		if err := e.Set(ctx, id, p); err != nil {
			t.Error(err)
		}
	}
	const odd = "any id / will do: ä" // longer and stranger than a session id may be
	get(odd, nil, false)
	set(odd, []byte{0, 1, 255})
	get(odd, []byte{0, 1, 255}, true)
	set(odd, []byte("second"))
	get(odd, []byte("second"), true)
	for _, text := range []string{
		`{"messages":[1.50,2],"b":"\u00e4<"}`, `[1, 2]`, `[]`, `"text"`, `7`, `{"cut":`, "[\"\xff\"]",
	} {
		set("json", []byte(text))
		get("json", []byte(text), true)
	}
	set("empty", nil)
	get("empty", []byte{}, true)
	if err := e.Delete(ctx, odd); err != nil {
		t.Error(err)
	}
	get(odd, nil, false)
	if err := e.Delete(ctx, "never there"); err != nil {
		t.Error(err)
	}
	set(odd, []byte("again"))
	get(odd, []byte("again"), true)
}

// Each version of a growing JSON checkpoint stores only what was added since the one before.
func TestGrowingCheckpoint(t *testing.T) {
	ctx := context.Background()
	backend := memory.NewAppender()
	store, err := coppice.New(backend, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := Eino{Store: store}
	random := rand.New(rand.NewPCG(1, 2)) // text that does not compress
	var messages []string
	raw := 0
	for range 100 {
		message := make([]byte, 300)
		for i := range message {
			message[i] = byte('a' + random.IntN(26))
		}
		messages = append(messages, string(message))
		p, err := json.Marshal(map[string]any{"messages": messages})
		if err != nil {
			t.Fatal(err)
		}
		raw += len(p)
		if err := e.Set(ctx, "growing", p); err != nil {
			t.Fatal(err)
		}
	}
	stored := 0
	for info, err := range backend.List(ctx, coppicebackend.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		stored += int(info.Size)
	}
	if stored > raw/5 {
		t.Errorf("%d bytes are stored of %d", stored, raw)
	}
}

// A checkpoint that is set again makes no commit, and one whose session was deleted is set as a new one.
func TestSetAgain(t *testing.T) {
	ctx := t.Context()
	store, err := coppice.New(memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	e := Eino{Store: store}
	set := func(text string, want uint64) {
		t.Helper()
		if err := e.Set(ctx, "run", []byte(text)); err != nil {
			t.Fatal(err)
		}
		p, found, err := e.Get(ctx, "run")
		s, oerr := store.Open(ctx, key("run"), &coppice.SessionOptions{ReadOnly: true})
		if err != nil || oerr != nil || !found || string(p) != text || s.Head().Seq != want {
			t.Fatalf("%s: %s, %v, %v", text, p, err, oerr)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	set("one", 1)
	set("one", 1)
	set("two", 2)
	set("two", 2)
	set(`{"html":"<b> & more"}`, 3)
	set(`{"html":"<b> & more"}`, 3)
	if err := store.Delete(ctx, key("run")); err != nil {
		t.Fatal(err)
	}
	if p, found, err := e.Get(ctx, "run"); found || err != nil {
		t.Errorf("%s, %v", p, err)
	}
	if err := e.Delete(ctx, "run"); err != nil {
		t.Error(err)
	}
	set("three", 1)
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

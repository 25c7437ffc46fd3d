package adapter

import (
	"bytes"
	"context"
	"testing"

	"github.com/coppice-go/coppice"
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

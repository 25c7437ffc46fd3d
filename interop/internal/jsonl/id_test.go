package jsonl

import (
	"testing"
	"time"
)

// An id that is made has the time of what it is for, and depends on nothing but time, content and number.
func TestMadeID(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC)
	id := MadeID(at, []byte("line"), 1)
	if id != "019b7ca9-8c8e-7000-93c7-c338ed75f4da" {
		t.Errorf("id %s", id)
	}
	if id := MadeID(time.Time{}, []byte("line"), 1); id[:14] != "00000000-0000-" {
		t.Errorf("without a time: %s", id)
	}
	if again := MadeID(at, []byte("line"), 1); again != id {
		t.Errorf("%s, then %s", id, again)
	}
	for what, other := range map[string]string{
		"time": MadeID(at.Add(time.Millisecond), []byte("line"), 1), "content": MadeID(at, []byte("lines"), 1),
		"number": MadeID(at, []byte("line"), 2),
	} {
		if other == id {
			t.Errorf("another %s gives the same id", what)
		}
	}
}

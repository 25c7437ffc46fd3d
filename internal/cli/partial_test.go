package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice"
	_ "github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
)

// A program that stops in the middle of an answer leaves it to resume, and its commit to log.
func TestInterruptedAnswer(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	now := testutil.Clock(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), time.Second)
	store, err := coppice.Open(ctx, dir, &coppice.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Create("s", &coppice.SessionOptions{PartialEvery: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(ctx, entry.User("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(ctx, coppice.Turn{}); err != nil {
		t.Fatal(err)
	}
	if got := must(t, dir, "", "resume", "s"); strings.Contains(fmt.Sprint(got), "interrupted") {
		t.Errorf("nothing was interrupted: %s", got)
	}
	for range 3 {
		if err := s.Partial(ctx, json.RawMessage(`{"text":"hi th"}`)); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if got := value(t, must(t, dir, "", "resume", "s"), "interrupted.text"); got != "hi th" {
		t.Errorf("resume: %s", got)
	}
	if got := value(t, must(t, dir, "", "log", "s"), "commits.0.reason"); got != "partial" {
		t.Errorf("log: %s", got)
	}
	text, stderr, code := call(t, dir, "", "resume", "s")
	if code != 0 || !strings.Contains(text, `an answer of which 16 B was streamed  {"text":"hi th"}`) {
		t.Errorf("%s, %s, exit code %d", text, stderr, code)
	}
}

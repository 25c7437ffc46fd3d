package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// atOnce lets every wait be over, so that nothing here takes a second.
func atOnce(time.Duration) <-chan time.Time {
	ch := make(chan time.Time, 1)
	ch <- time.Time{}
	return ch
}

func lines(path string) bool { return strings.HasSuffix(path, ".jsonl") }

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// next returns the names of the files that changed next.
func next(t *testing.T, w *Watcher) string {
	t.Helper()
	files, err := w.Wait(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return names(files)
}

func names(files []string) string {
	for i, f := range files {
		files[i] = filepath.Base(f)
	}
	return strings.Join(files, " ")
}

func watcher(t *testing.T, o Options, folders, files int) *Watcher {
	t.Helper()
	o.Match = lines
	if o.After == nil {
		o.After = atOnce
	}
	w, err := bounded(o, folders, files)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// What is new, what grows and what is replaced is reported, once; what was there before, other files and links to
// folders are not. So it is with notification and without.
func TestChanges(t *testing.T) {
	for name, poll := range map[string]bool{"notified": false, "polling": true} {
		t.Run(name, func(t *testing.T) {
			root, elsewhere := t.TempDir(), t.TempDir()
			write(t, filepath.Join(root, "old.jsonl"), "1")
			if err := os.Symlink(elsewhere, filepath.Join(root, "link")); err != nil {
				t.Fatal(err)
			}
			w := watcher(t, Options{Roots: []string{root}, Poll: poll}, 100, 100)
			if w.Polls() != poll {
				t.Fatalf("polls %v", w.Polls())
			}
			for _, step := range []struct{ file, text, want string }{
				{"new.jsonl", "1", "new.jsonl"},
				{"old.jsonl", "1 and 2", "old.jsonl"},
				{"deep/er/still.jsonl", "1", "still.jsonl"},
				{"deep/er/still.jsonl", "1 2", "still.jsonl"},
			} {
				write(t, filepath.Join(elsewhere, "no.jsonl"), step.text)
				write(t, filepath.Join(root, "note.txt"), step.text)
				write(t, filepath.Join(root, step.file), step.text)
				got := next(t, w)
				for got != step.want && got == "" { // a file was seen before its first byte
					got = next(t, w)
				}
				if got != step.want {
					t.Errorf("after %s: %q", step.file, got)
				}
				if again, err := w.Scan(); err != nil || len(again) > 0 && names(again) != step.want {
					t.Errorf("after %s, again: %q, %v", step.file, again, err)
				}
			}
			if err := os.Remove(filepath.Join(root, "new.jsonl")); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(root, "new.jsonl"), "another")
			if got := next(t, w); got != "new.jsonl" {
				t.Errorf("a file that was replaced: %q", got)
			}
		})
	}
}

// A root may be a link to a folder.
func TestRootIsALink(t *testing.T) {
	folder, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	for _, poll := range []bool{false, true} {
		w := watcher(t, Options{Roots: []string{link}, Poll: poll}, 100, 100)
		name := fmt.Sprintf("poll-%v.jsonl", poll)
		write(t, filepath.Join(folder, "sub", name), "1")
		if got := next(t, w); got != name {
			t.Errorf("polling %v: got %q", poll, got)
		}
	}
}

// A root that does not exist is waited for.
func TestRootThatComes(t *testing.T) {
	root := filepath.Join(t.TempDir(), "later")
	w := watcher(t, Options{Roots: []string{root}}, 100, 100)
	write(t, filepath.Join(root, "a.jsonl"), "1")
	if got := next(t, w); got != "a.jsonl" {
		t.Errorf("%q", got)
	}
}

// A folder that is removed and made again is watched again, at once or later, be it a root or below one.
func TestFolderThatIsMadeAgain(t *testing.T) {
	for _, at := range []string{".", "deep/er"} {
		for _, seen := range []bool{true, false} {
			root := filepath.Join(t.TempDir(), "root")
			dir := filepath.Join(root, at)
			write(t, filepath.Join(dir, "sub", "a.jsonl"), "1")
			w := watcher(t, Options{Roots: []string{root}}, 100, 100)
			for round := range 3 {
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
				if seen { // the removal is noticed before the folder is there again
					for w.folders[dir] {
						if err := w.event(<-w.notify.Events); err != nil {
							t.Fatal(err)
						}
					}
				}
				text := strings.Repeat("x", round)
				write(t, filepath.Join(dir, "sub", "a.jsonl"), "2"+text)
				for got := next(t, w); got != "a.jsonl"; got = next(t, w) {
				}
				write(t, filepath.Join(dir, "sub", "b.jsonl"), "3"+text)
				for got := next(t, w); got != "b.jsonl"; got = next(t, w) {
				}
			}
		}
	}
}

// When the system has lost notifications everything is looked at once.
func TestLostNotifications(t *testing.T) {
	root := t.TempDir()
	w := watcher(t, Options{Roots: []string{root}}, 100, 100)
	if err := w.notify.Remove(root); err != nil { // so that nothing is heard of what comes
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "unheard.jsonl"), "1")
	lost := make(chan struct{})
	go func() {
		defer close(lost)
		w.notify.Errors <- fsnotify.ErrEventOverflow
	}()
	if got := next(t, w); got != "unheard.jsonl" {
		t.Errorf("%q", got)
	}
	<-lost
}

// Folders beyond the bound are looked at, files beyond theirs are an error.
func TestBounds(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"a", "b", "c", "d"} {
		write(t, filepath.Join(root, dir, dir+".jsonl"), "1")
	}
	w := watcher(t, Options{Roots: []string{root}}, 3, 5)
	if w.Folders() != 3 || !w.Polls() {
		t.Errorf("%d folders, polls %v", w.Folders(), w.Polls())
	}
	write(t, filepath.Join(root, "d", "d.jsonl"), "1 2")
	if got := next(t, w); got != "d.jsonl" {
		t.Errorf("beyond the bound: %q", got)
	}
	write(t, filepath.Join(root, "d", "e.jsonl"), "1")
	if got := next(t, w); got != "e.jsonl" {
		t.Errorf("the last file: %q", got)
	}
	write(t, filepath.Join(root, "d", "f.jsonl"), "1")
	if _, err := w.Scan(); !errors.Is(err, ErrTooMany) {
		t.Errorf("one file too many: %v", err)
	}
	if _, err := bounded(Options{Roots: []string{root}, Match: lines, After: atOnce}, 3, 5); !errors.Is(err, ErrTooMany) {
		t.Errorf("from the start: %v", err)
	}
}

// Wait ends with its context, and when nothing has changed for the time that was asked for.
func TestWaitEnds(t *testing.T) {
	never := func(d time.Duration) <-chan time.Time {
		if d == time.Hour {
			return atOnce(d)
		}
		return nil
	}
	w := watcher(t, Options{Roots: []string{t.TempDir()}, After: never}, 100, 100)
	if files, err := w.Wait(t.Context(), time.Hour); err != nil || len(files) > 0 {
		t.Errorf("after an hour: %q, %v", files, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if files, err := w.Wait(ctx, 0); err != nil || len(files) > 0 {
		t.Errorf("cancelled: %q, %v", files, err)
	}
}

package server_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/testutil"
)

const (
	backupSessions = 3
	backupRounds   = 10 // of copies; a session whose log went on to another file while it was copied is copied again
)

// writing commits to sessions until it is stopped, and knows what was acknowledged.
type writing struct {
	s    *site
	stop chan struct{}
	all  sync.WaitGroup

	mu    sync.Mutex
	acked map[string]map[uint64]string // by session: seq to commit
	more  chan struct{}                // closed at the next acknowledgement, and replaced
}

func commitsUntilStopped(s *site) *writing {
	w := &writing{s: s, stop: make(chan struct{}), acked: map[string]map[uint64]string{}, more: make(chan struct{})}
	long := strings.Repeat("w", 50_000) // so that a segment of the log is closed every twenty turns
	for i := range backupSessions {
		id := fmt.Sprintf("s%d", i)
		s.create(id)
		w.acked[id] = map[uint64]string{}
	}
	for i := range backupSessions {
		id := fmt.Sprintf("s%d", i)
		w.all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-w.stop:
					return
				default:
				}
				r, err := s.try(s.t.Context(), "POST", "/v1/sessions/"+id+"/commits", hello(fmt.Sprint(n, long)), "If-Match: *")
				if err != nil || r.StatusCode != http.StatusOK {
					s.t.Errorf("%s, turn %d: %v, %s", id, n, err, r.body)
					return
				}
				doc := r.want(s.t, http.StatusOK)
				w.mu.Lock()
				w.acked[id][uint64(doc["seq"].(float64))] = doc["commit"].(string)
				close(w.more)
				w.more = make(chan struct{})
				w.mu.Unlock()
			}
		})
	}
	return w
}

// now returns what was acknowledged so far, once there are n commits of each session.
func (w *writing) now(n int) map[string]map[uint64]string {
	for {
		w.mu.Lock()
		more, enough, out := w.more, true, map[string]map[uint64]string{}
		for id, acked := range w.acked {
			enough = enough && len(acked) >= n
			out[id] = map[uint64]string{}
			maps.Copy(out[id], acked)
		}
		w.mu.Unlock()
		if enough || w.s.t.Failed() {
			return out
		}
		<-more
	}
}

// checkpoints and others choose the two parts of a store, by the names of files or the keys of objects.
func checkpoints(name string) bool { return strings.HasPrefix(name, "checkpoint_latest") }
func others(name string) bool      { return !checkpoints(name) }

// backup copies a folder twice, the checkpoints first, as docs/http.md describes.
func backup(t *testing.T, from, to string) {
	t.Helper()
	for range 2 {
		mirror(t, from, to, checkpoints)
		mirror(t, from, to, others)
	}
}

// mirror makes the chosen files of a folder those of another one, as rsync --delete does. Files may come, go and grow
// meanwhile.
func mirror(t *testing.T, from, to string, chosen func(name string) bool) {
	t.Helper()
	have := map[string]bool{}
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		name, _ := filepath.Rel(from, path)
		if err != nil || d.IsDir() || !chosen(name) {
			return err
		}
		raw, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		have[name] = true
		target := filepath.Join(to, name)
		return errors.Join(err, os.MkdirAll(filepath.Dir(target), 0o700), os.WriteFile(target, raw, 0o600))
	})
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
		if name, _ := filepath.Rel(to, path); err == nil && !d.IsDir() && chosen(name) && !have[name] {
			return os.Remove(path)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

// A copy of the folder of a server, made while clients commit, has every commit that was acknowledged before, opens, is
// free of damage, and takes commits.
func TestBackup(t *testing.T) {
	testutil.SkipLong(t)
	dir := t.TempDir()
	w := commitsUntilStopped(newSite(t, "file://"+dir))
	for round := range 3 {
		acked := w.now(25 * (round + 1))
		var faults []*coppice.Error
		var to string
		for range backupRounds {
			to = t.TempDir()
			backup(t, dir, to)
			if faults = damage(t, newSite(t, "file://"+to).st); len(faults) == 0 {
				break
			}
			t.Logf("once more, because of %v", faults)
		}
		if len(faults) > 0 {
			t.Errorf("damage in each of %d copies: %v", backupRounds, faults)
		}
		restored := newSite(t, "file://"+to)
		for id, commits := range acked {
			log := logOf(t, restored, id)
			for seq, commit := range commits {
				if log[seq] != commit {
					t.Errorf("%s: commit %d was acknowledged as %s before the copy, which has %q", id, seq, commit, log[seq])
				}
			}
			for seq, commit := range logOf(t, w.s, id) {
				if log[seq] != "" && log[seq] != commit {
					t.Errorf("%s: commit %d is %s, in the copy %s", id, seq, commit, log[seq])
				}
			}
			restored.do("GET", "/v1/sessions/"+id+"/resume", "").want(t, 200)
			lost := w.s.do("POST", "/v1/sessions/"+id+"/commits", hello("lost"), "If-Match: *").etag()
			restored.do("POST", "/v1/sessions/"+id+"/commits", hello("on what is lost"), "If-Match: "+lost).want(t, 412)
			restored.do("POST", "/v1/sessions/"+id+"/commits", hello("restored"), "If-Match: *").want(t, 200)
		}
	}
	close(w.stop)
	w.all.Wait()
}

// With checkpoints that are older than the rest a copy is right, on a disk and on S3, but for the index of ids, which a repair
// makes again from the log. Newer ones name what the copy of the log has not: that is damage, and the reason for the order.
func TestBackupBeginsWithCheckpoints(t *testing.T) {
	for name, open := range map[string]func() backend.Backend{
		"replace": func() backend.Backend { return memory.New() },
		"append":  func() backend.Backend { return memory.NewAppender() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := open()
			s := siteOn(t, storeOn(t, live))
			s.create("s")
			more := func() {
				for range 25 { // a segment of the log is closed, and checkpoints are written
					s.do("POST", commits, hello(strings.Repeat("w", 50_000)), "If-Match: *").want(t, 200)
				}
			}
			for _, c := range []struct {
				first, then func(string) bool
				damaged     bool
			}{{checkpoints, others, false}, {others, checkpoints, true}} {
				more()
				saved := open()
				copyObjects(t, live, saved, c.first)
				more()
				copyObjects(t, live, saved, c.then)
				st := storeOn(t, saved)
				if !c.damaged {
					restored := siteOn(t, st)
					restored.do("GET", "/v1/sessions/s/resume", "").want(t, 200)
					restored.do("POST", commits, hello("restored"), "If-Match: *").want(t, 200)
				}
				found := damage(t, st)
				if !c.damaged && len(found) > 0 && onlyIDs(found) {
					if _, err := st.Repair(t.Context(), "s", false); err != nil {
						t.Fatal(err)
					}
					found = damage(t, st)
				}
				if (len(found) > 0) != c.damaged || c.damaged && onlyIDs(found) {
					t.Errorf("damage: want %v, found %v", c.damaged, found)
				}
			}
		})
	}
}

// onlyIDs reports whether all damage is to the index of ids, which a repair makes again from the log.
func onlyIDs(found []*coppice.Error) bool {
	return !slices.ContainsFunc(found, func(e *coppice.Error) bool { return !strings.Contains(e.Object, "/ids/") })
}

// storeOn returns a store on a backend, for as long as the test runs.
func storeOn(t *testing.T, b backend.Backend) *coppice.Store {
	t.Helper()
	st, err := coppice.New(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// copyObjects copies the chosen objects of a store to another one.
func copyObjects(t *testing.T, from, to backend.Backend, chosen func(key string) bool) {
	t.Helper()
	for info, err := range from.List(t.Context(), backend.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if !chosen(info.Key) {
			continue
		}
		raw, _, err := from.Get(t.Context(), info.Key, backend.Range{})
		if errors.Is(err, fs.ErrNotExist) { // removed since
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := to.Put(t.Context(), info.Key, raw, backend.Cond{}); err != nil {
			t.Fatal(err)
		}
	}
}

// damage reads every byte of a store.
func damage(t *testing.T, st *coppice.Store) (found []*coppice.Error) {
	t.Helper()
	report, err := st.Verify(t.Context(), "", true)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range report.Problems {
		if errors.Is(p, coppice.ErrCorrupt) {
			found = append(found, p)
		}
	}
	return found
}

// logOf returns the commits of a session by seq.
func logOf(t *testing.T, s *site, id string) map[uint64]string {
	t.Helper()
	h, err := s.st.Open(t.Context(), id, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	log := map[uint64]string{}
	for c, err := range h.Log(t.Context(), coppice.Target{}) {
		if err != nil {
			t.Fatal(err)
		}
		log[c.Seq] = c.Commit
	}
	return log
}

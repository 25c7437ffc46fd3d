package scenarios_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/parallel"
	"github.com/coppice-go/coppice/internal/vfs"
	"github.com/coppice-go/coppice/transcript"
)

// unsynced is a disk without syncs: a synthetic store need not survive power loss.
type unsynced struct{ vfs.FS }

type unsyncedFile struct{ vfs.File }

type unsyncedDir struct{ vfs.Dir }

func (u unsynced) OpenFile(name string, flag int) (vfs.File, error) {
	f, err := u.FS.OpenFile(name, flag)
	return unsyncedFile{f}, err
}

func (u unsynced) OpenDir(name string) (vfs.Dir, error) {
	d, err := u.FS.OpenDir(name)
	return unsyncedDir{d}, err
}

func (unsyncedFile) Datasync() error { return nil }
func (unsyncedFile) Sync() error     { return nil }
func (unsyncedDir) Sync() error      { return nil }

// manySessions returns a folder with n sessions of one turn. COPPICE_LIST_DIR names one that is kept for the next run.
func manySessions(tb testing.TB, n int) string {
	tb.Helper()
	dir := os.Getenv("COPPICE_LIST_DIR")
	if dir == "" {
		dir = tb.TempDir()
	}
	dir = filepath.Join(dir, strconv.Itoa(n))
	if _, err := os.Stat(dir); err == nil && os.Getenv("COPPICE_REDATE") != "" {
		tb.Log(backdate(dir))
	}
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	b, err := local.Open("", &local.Options{FS: unsynced{vfs.OS(dir)}})
	if err != nil {
		tb.Fatal(err)
	}
	defer b.Close()
	if err := fillStore(tb.Context(), b, n); err != nil {
		tb.Fatal(err)
	}
	if err := backdate(dir); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// backdate sets the times of the files of a synthetic store to those in the ids of their sessions.
func backdate(dir string) error {
	folders, err := os.ReadDir(filepath.Join(dir, "sessions"))
	for _, f := range folders {
		if f.Name()[0] == '.' || err != nil {
			continue
		}
		var ms int64
		if ms, err = strconv.ParseInt(f.Name()[:8]+f.Name()[9:13], 16, 64); err != nil {
			break
		}
		at := time.UnixMilli(ms)
		segments, _ := filepath.Glob(filepath.Join(dir, "sessions", f.Name(), "transcript", "*"))
		for _, name := range append(segments, filepath.Join(dir, "checkpoint_latest", f.Name())) {
			err = errors.Join(err, os.Chtimes(name, at, at))
		}
	}
	return err
}

// fillStore creates n sessions of one turn, a second apart, in 100 folders and with the metadata n of 1,000.
func fillStore(ctx context.Context, b backend.Backend, n int) error {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const part = 1000
	return parallel.Each(ctx, (n+part-1)/part, func(p int) error {
		for i := p * part; i < min(n, (p+1)*part); i++ {
			now := start.Add(time.Duration(i) * time.Second)
			st, err := coppice.New(b, &coppice.Options{Now: func() time.Time { return now }})
			if err != nil {
				return err
			}
			s, err := st.Create("", &coppice.SessionOptions{
				Title: fmt.Sprintf("Session %d: tide tables of the harbour", i),
				Cwd:   fmt.Sprintf("/home/x/project-%d", i%100),
				Meta:  map[string]string{"user": strconv.Itoa(i % 1000), "env": "prod"},
			})
			if err == nil {
				turn := coppice.Turn{
					Entries: []transcript.Draft{entry.User("When is high water?"), entry.Assistant("At 11:42.")},
					State:   map[string]any{"asked": i},
				}
				_, err = s.Commit(ctx, turn)
			}
			if err == nil {
				err = st.Close()
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func BenchmarkFill(b *testing.B) {
	n, _ := strconv.Atoi(os.Getenv("COPPICE_LIST"))
	b.Log(manySessions(b, n))
}

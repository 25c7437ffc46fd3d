package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
)

// smallDisk mounts a file system of 512 KiB.
func smallDisk(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=512k")
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("mounting a small tmpfs needs root: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Log(err)
		}
	})
	return dir
}

// fill writes ballast until not a byte more fits.
func fill(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for range 1 << 20 {
		if _, err = f.Write(make([]byte, 4096)); err != nil {
			break
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk does not get full: %v", err)
	}
}

// Sessions can be deleted on a disk that has not a byte free, one after the other, by processes of their own: each
// deletion frees all objects of its session. The lengths differ, so that the end of some fits in their last page.
func TestDeleteOnAFullDisk(t *testing.T) {
	dir := smallDisk(t)
	b, err := local.Open(filepath.Join(dir, "store"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	sessions := []string{"s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"}
	for i, id := range sessions {
		cfg := diskConfig(b)
		cfg.Session = id
		j := Create(cfg, state.Genesis{Header: header(id)})
		for n := range 8 {
			e := say(j, fmt.Sprintf("e%d", n), strings.Repeat("x", 4000+100*i))
			if _, err := j.Commit(t.Context(), &Step{Reason: "turn", Entries: []*Entry{e}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range sessions {
		fill(t, dir)
		other, err := local.Open(filepath.Join(dir, "store"), nil)
		if err != nil {
			t.Fatal(err)
		}
		cfg := diskConfig(other)
		cfg.Session = id
		if err := Delete(t.Context(), cfg); err != nil {
			t.Errorf("delete %s: %v", id, err)
		}
		for info, err := range other.List(t.Context(), backend.ListOptions{Prefix: layout.SessionPrefix(id)}) {
			t.Errorf("%s is left: %v", info.Key, err)
		}
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// The disk runs full in mid-turn: the commit reports it and is not applied, nothing acknowledged is lost, and the same
// handle continues once there is room.
func TestFullDisk(t *testing.T) {
	dir := smallDisk(t)
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 200<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := local.Open(filepath.Join(dir, "store"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	cfg := diskConfig(b)
	cfg.Limits = Limits{RollBytes: 64 << 10, PublishCommits: 4}
	j := Create(cfg, state.Genesis{Header: header("s1")})
	acked, full := []string{}, 0
	turn := func(i int) error {
		e := say(j, fmt.Sprintf("e%d", i), strings.Repeat("x", 3000))
		_, err := j.Commit(t.Context(), &Step{Reason: "turn", Entries: []*Entry{e}, Edit: setState(fmt.Sprintf(`{"turn":%d}`, i))})
		if err == nil {
			acked = append(acked, e.ID)
		}
		return err
	}
	for i := range 400 {
		err := turn(i)
		if err == nil {
			continue
		}
		if !errors.Is(err, syscall.ENOSPC) || backend.OutcomeOf(err) != backend.NotApplied {
			t.Fatalf("turn %d: %v, want ENOSPC, not applied", i, err)
		}
		if full++; full == 5 {
			break
		}
	}
	if full == 0 || len(acked) == 0 {
		t.Fatalf("%d turns acknowledged, %d refused", len(acked), full)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if err := turn(1000 + i); err != nil {
			t.Fatalf("with room again: %v", err)
		}
	}
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := onDisk(t, filepath.Join(dir, "store"))
	for _, id := range acked {
		if all[id] != 1 {
			t.Errorf("entry %s was acknowledged and stands %d times in the history", id, all[id])
		}
	}
	if len(all) != len(acked) {
		t.Errorf("%d entries in the history, %d acknowledged", len(all), len(acked))
	}
}

package flip

import (
	"context"
	"crypto/sha256"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/internal/testutil"
)

// TestLocalDisk reads damaged stores from folders of a real disk: the results are those of the frozen store, and
// nothing in the folder has changed afterwards (I14).
func TestLocalDisk(t *testing.T) {
	s := built(t)[1]
	truth := truthsOf(s)
	dir := t.TempDir()
	b := testutil.Must(local.Open(dir, nil))(t)
	defer b.Close()
	for key, p := range s.objects {
		testutil.Must(b.Put(context.Background(), key, p, backend.Cond{}))(t)
	}
	done := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		kind := kindOf(s, key)
		if done[kind] {
			continue
		}
		done[kind] = true
		p, id := s.objects[key], sessionOf(key)
		flipped := slices.Clone(p)
		flipped[len(p)/2] ^= 4
		for what, q := range map[string][]byte{"a bit": flipped, "cut in half": p[:len(p)/2], "nothing left": {}} {
			testutil.Must(b.Put(context.Background(), key, q, backend.Cond{}))(t)
			before := folder(t, dir)
			got := readAll(b, id)
			want := readAll(s.backend(s.frozen().With(key, q)), id)
			if name, _ := got.differs(&want); name != "" {
				t.Errorf("%s, %s: the disk gives another %s:\n%s", key, what, name, firstDifference(got.answers[name], want.answers[name]))
			}
			if got.named(truth.whole[id], key) != want.named(truth.whole[id], key) {
				t.Errorf("%s, %s: verify names %v on the disk, %v elsewhere", key, what, list(&got), list(&want))
			}
			if after := folder(t, dir); !maps.Equal(before, after) {
				t.Errorf("%s, %s: reading changed the folder", key, what)
			}
		}
		testutil.Must(b.Put(context.Background(), key, p, backend.Cond{}))(t)
	}
}

// folder returns the contents of a folder, by path: hash, mode and time of change.
func folder(t *testing.T, dir string) map[string]string {
	out := map[string]string{}
	testutil.OK(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil || d.IsDir() {
			out[path] = "folder"
			return err
		}
		p, err := os.ReadFile(path)
		sum := sha256.Sum256(p)
		out[path] = string(sum[:]) + info.Mode().String() + info.ModTime().String()
		return err
	}))
	return out
}

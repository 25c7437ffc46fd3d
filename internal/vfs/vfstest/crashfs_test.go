package vfstest

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/backendtest"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/internal/vfs"
)

var wide = Spread{Contents: 1000, States: 100_000}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, s *CrashFS, name, data string, sync bool) {
	t.Helper()
	f, err := s.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND)
	ok(t, err)
	_, err = f.Write([]byte(data))
	ok(t, err)
	if sync {
		ok(t, f.Sync())
	}
	ok(t, f.Close())
}

func syncDir(t *testing.T, s *CrashFS, name string) {
	t.Helper()
	d, err := s.OpenDir(name)
	ok(t, err)
	ok(t, d.Sync())
}

// outcomes returns the possible contents of a file after a crash now; "-" = it does not exist.
func outcomes(p *Point, name string) []string {
	var out []string
	for img := range p.States(wide, 1) {
		s, held := Boot(img), "-"
		if b, ok := s.Bytes(name); ok {
			held = string(b)
		}
		if !slices.Contains(out, held) {
			out = append(out, held)
		}
	}
	slices.Sort(out)
	return out
}

func want(t *testing.T, p *Point, name string, all ...string) {
	t.Helper()
	if got := outcomes(p, name); !slices.Equal(got, all) {
		t.Errorf("%s may be %q, want %q", name, got, all)
	}
}

// A local driver on it passes the suite that every driver passes: to a running program it is a file system.
func TestIsAFileSystem(t *testing.T) {
	var disks sync.Map
	open := func(t *testing.T, s *CrashFS) backend.Backend {
		b, err := local.Open("", &local.Options{FS: s})
		ok(t, err)
		t.Cleanup(func() { b.Close() })
		disks.Store(b, s)
		return b
	}
	backendtest.Run(t, backendtest.Harness{
		New: func(t *testing.T) backend.Backend { return open(t, NewCrashFS()) },
		Reopen: func(t *testing.T, b backend.Backend) backend.Backend {
			s, _ := disks.Load(b)
			return open(t, s.(*CrashFS))
		},
		Short: true,
	})
}

func TestNamesAreDurableWithTheirDirectory(t *testing.T) {
	s := NewCrashFS()
	write(t, s, "a", "x", true)
	want(t, s.Point(), "a", "-", "x")
	syncDir(t, s, ".")
	want(t, s.Point(), "a", "x")
	ok(t, s.Mkdir("d"))
	write(t, s, "d/b", "y", true)
	syncDir(t, s, "d")
	want(t, s.Point(), "d/b", "-", "y")
	syncDir(t, s, ".")
	want(t, s.Point(), "d/b", "y")
	ok(t, s.Remove("a"))
	want(t, s.Point(), "a", "-", "x")
	syncDir(t, s, ".")
	want(t, s.Point(), "a", "-")
}

func TestDataIsDurableWithItsFile(t *testing.T) {
	s := NewCrashFS()
	write(t, s, "a", "", true)
	syncDir(t, s, ".")
	write(t, s, "a", "12", false)
	got := outcomes(s.Point(), "a")
	for _, must := range []string{"", "12", "\x00\x00", "1"} {
		if !slices.Contains(got, must) {
			t.Errorf("%q is not among what is left of an unsynced write: %q", must, got)
		}
	}
	write(t, s, "a", "", true)
	want(t, s.Point(), "a", "12")
	write(t, s, "b", "z", false)
	syncDir(t, s, ".")
	want(t, s.Point(), "b", "", "\x00", "z")
}

func TestRenameIsLostDoneOrHalfDone(t *testing.T) {
	s := NewCrashFS()
	ok(t, s.Mkdir("t"))
	syncDir(t, s, ".")
	write(t, s, "a", "old", true)
	write(t, s, "t/a", "new", true)
	syncDir(t, s, ".")
	syncDir(t, s, "t")
	ok(t, s.Rename("t/a", "a"))
	p := s.Point()
	want(t, p, "a", "new", "old")
	want(t, p, "t/a", "-", "new")
	both := map[string]bool{}
	for img := range p.States(wide, 1) {
		f := Boot(img)
		b, _ := f.Bytes("a")
		_, still := f.Bytes("t/a")
		both[string(b)+map[bool]string{true: "+"}[still]] = true
	}
	if len(both) != 4 {
		t.Errorf("a rename across directories ends in %v, want four ways", both)
	}
	syncDir(t, s, ".")
	want(t, s.Point(), "a", "new")
}

func TestTornWritesKeepSectorsAndTruncationMayBeLost(t *testing.T) {
	s := NewCrashFS()
	first := bytes.Repeat([]byte("a"), 700)
	write(t, s, "a", string(first), true)
	syncDir(t, s, ".")
	write(t, s, "a", string(bytes.Repeat([]byte("b"), 2000)), false)
	holes, mixed := 0, 0
	for _, o := range outcomes(s.Point(), "a") {
		if len(o) < 700 || o[:700] != string(first) {
			t.Fatalf("a crash took bytes that were durable: %.20q of %d bytes", o, len(o))
		}
		if i := bytes.IndexByte([]byte(o), 0); i >= 0 {
			holes++
			if bytes.IndexByte([]byte(o)[i:], 'b') >= 0 {
				mixed++
			}
		}
	}
	if holes < 3 || mixed == 0 {
		t.Errorf("%d states with zeros, %d with data behind zeros", holes, mixed)
	}
	write(t, s, "a", "", true)
	f, err := s.OpenFile("a", os.O_RDWR)
	ok(t, err)
	ok(t, f.Truncate(700))
	whole, cut := false, false
	for _, o := range outcomes(s.Point(), "a") {
		whole, cut = whole || len(o) == 2700, cut || o == string(first)
	}
	if !whole || !cut {
		t.Errorf("a truncation may be lost and may be done: %v %v", whole, cut)
	}
	ok(t, f.Datasync())
	want(t, s.Point(), "a", string(first))
}

// A failed sync leaves pages that look clean: the next one succeeds and writes nothing, unless the bytes are written
// again.
func TestLostSync(t *testing.T) {
	s := NewCrashFS()
	write(t, s, "a", "", true)
	syncDir(t, s, ".")
	h, err := s.OpenFile("a", os.O_RDWR|os.O_CREATE)
	ok(t, err)
	_, err = h.Write([]byte("12"))
	ok(t, err)
	h.(*crashFile).Lose()
	ok(t, h.Sync())
	if b, _ := s.Bytes("a"); string(b) != "12" {
		t.Errorf("it reads %q", b)
	}
	want(t, s.Point(), "a", "\x00\x00")
	_, err = h.WriteAt([]byte("12"), 0)
	ok(t, err)
	ok(t, h.Sync())
	want(t, s.Point(), "a", "12")
}

func TestLocksEndWithTheirFile(t *testing.T) {
	s := NewCrashFS()
	write(t, s, "a", "x", true)
	open := func() vfs.File {
		f, err := s.OpenFile("a", os.O_RDWR)
		ok(t, err)
		return f
	}
	a, b := open(), open()
	take := func(f vfs.File, exclusive, want bool) {
		t.Helper()
		if got, err := f.TryLock(exclusive); err != nil || got != want {
			t.Errorf("lock: %v %v, want %v", got, err, want)
		}
	}
	take(a, false, true)
	take(b, false, true)
	take(b, true, false)
	ok(t, a.Close())
	take(b, true, true)
	take(open(), false, false)
	if _, err := a.Stat(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a closed file answers %v", err)
	}
	fork := s.Point().Fork()
	f, err := fork.OpenFile("a", os.O_RDWR)
	ok(t, err)
	take(f, true, true) // its holder is dead
}

// The same calls and the same seed result in the same images, and equal images have equal sums.
func TestDeterministic(t *testing.T) {
	run := func() (sums [][2]uint64) {
		s := NewCrashFS()
		var points []*Point
		s.Watch(func(_ Op, p *Point) { points = append(points, p) })
		for _, name := range []string{"a", "b", "c"} {
			write(t, s, name, string(bytes.Repeat([]byte(name), 3000)), name != "b")
			if name != "c" {
				syncDir(t, s, ".")
			}
		}
		for _, p := range points {
			for img := range p.States(Spread{Contents: 20, States: 30}, 7) {
				sums = append(sums, img.Sum())
				if again := Boot(img).Point().Kept(); again.Sum() != img.Sum() {
					t.Fatalf("an image that is started and stopped is another:\n%s%s", img, again)
				}
			}
		}
		return sums
	}
	if a, b := run(), run(); !slices.Equal(a, b) || len(a) < 50 {
		t.Errorf("two runs give %d and %d images, not the same", len(a), len(b))
	}
}

// A file that was extended, or created, and whose data did not arrive may contain the earlier content of its blocks:
// bytes of its own earlier part, or of a removed file.
func TestLostDataMayBeStale(t *testing.T) {
	s := NewCrashFS()
	own := string(bytes.Repeat([]byte("o"), 2*sector))
	write(t, s, "log", own, true)
	write(t, s, "log", string(bytes.Repeat([]byte("n"), 100)), false)
	if got := outcomes(s.Point(), "log"); !slices.Contains(got, own+own[:100]) {
		t.Errorf("the log never goes on with bytes of its own earlier part: %d contents", len(got))
	}
	gone := string(bytes.Repeat([]byte("g"), 300))
	write(t, s, "gone", gone, true)
	syncDir(t, s, ".")
	ok(t, s.Remove("gone"))
	write(t, s, "new", string(bytes.Repeat([]byte("n"), 200)), false)
	if got := outcomes(s.Point(), "new"); !slices.Contains(got, gone[:200]) {
		t.Errorf("the new file never holds bytes of the one that is gone: %q", got)
	}
}

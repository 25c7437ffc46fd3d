package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-go/coppice/internal/vfs"
	"github.com/coppice-go/coppice/internal/vfs/vfstest"
)

const file = "audit.jsonl"

func clock() time.Time { return time.Date(2026, 3, 2, 9, 15, 0, 0, time.UTC) }

func on(f vfs.FS) *Log { return &Log{fs: f, name: file, now: clock} }

// act does one act, and returns whether it was allowed.
func act(l *Log, name string) bool {
	end, err := l.Begin(context.Background(), Act{Who: "ci", Act: "delete", Session: name})
	if err != nil {
		return false
	}
	_ = end(context.Background(), Done, "", "x") // the act was done, whatever this returns
	return true
}

func verified(t testing.TB, log []byte) Report {
	t.Helper()
	rep, err := Verify(bytes.NewReader(log), "")
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	return rep
}

// logOf returns a log of some acts, with a torn line in the middle.
func logOf(t testing.TB) []byte {
	t.Helper()
	fs := vfstest.NewCrashFS()
	l := on(fs)
	act(l, "a")
	p, _ := fs.Bytes(file)
	fs.Overwrite(file, append(p, `{"prev":"torn`...))
	act(l, "b")
	if err := l.Note(t.Context(), Act{Act: "read", Session: "b"}, Done, ""); err != nil {
		t.Fatal(err)
	}
	p, _ = fs.Bytes(file)
	return p
}

func TestLog(t *testing.T) {
	log := logOf(t)
	rep := verified(t, log)
	if rep.Lines != 6 || rep.Torn != 1 || rep.Open != 0 || !rep.Ends {
		t.Errorf("%+v\n%s", rep, log)
	}
	if _, err := Verify(bytes.NewReader(log), rep.Head); err != nil {
		t.Error(err)
	}
}

// Whatever is done to one line, the log does not fit any more: with the anchor of the last line also if it is that one.
func TestTampering(t *testing.T) {
	log := logOf(t)
	head := verified(t, log).Head
	lines := bytes.SplitAfter(log, []byte("\n"))
	lines = lines[:len(lines)-1]
	join := func(l ...[]byte) []byte { return bytes.Join(l, nil) }
	forged := []byte(`{"prev":"` + strings.Repeat("0", 64) + `","act":"x","result":"done"}` + "\n")
	for i := range lines {
		before, line, after := join(lines[:i]...), lines[i], join(lines[i+1:]...)
		changed := map[string][]byte{
			"removed":    join(before, after),
			"twice":      join(before, line, line, after),
			"emptied":    join(before, []byte("\n"), after),
			"garbage":    join(before, []byte("garbage\n"), after),
			"line added": join(before, []byte("{}\n"), line, after),
			"forged":     join(before, forged, line, after),
			"no end":     join(before, bytes.TrimSuffix(line, []byte("\n")), after),
			"space":      join(before, []byte(" "), line, after),
		}
		if i+1 < len(lines) {
			changed["moved"] = join(before, lines[i+1], line, join(lines[i+2:]...))
		}
		for at := range line {
			for _, bit := range []byte{1, 1 << 6} {
				p := bytes.Clone(line)
				p[at] ^= bit
				changed[fmt.Sprintf("bit %d of byte %d", bit, at)] = join(before, p, after)
			}
			changed[fmt.Sprintf("without byte %d", at)] = join(before, line[:at], line[at+1:], after)
		}
		last := i+1 == len(lines)
		for what, p := range changed {
			// An end that is missing, and bytes after the last line, are what a crash leaves: they are reported.
			if rep, err := Verify(bytes.NewReader(p), ""); !isBroken(err) && rep.Ends && !last {
				t.Errorf("line %d, %s: %+v, %v", i+1, what, rep, err)
			}
			if rep, err := Verify(bytes.NewReader(p), head); !isBroken(err) && (rep.Ends || !last) {
				t.Errorf("line %d, %s, with the anchor: %+v, %v", i+1, what, rep, err)
			}
		}
	}
}

func isBroken(err error) bool {
	var b *Broken
	return errors.As(err, &b)
}

// Where the end of a log was removed, what is left fits. Only an anchor of a line that is gone finds it.
func TestTruncated(t *testing.T) {
	log := logOf(t)
	head := verified(t, log).Head
	for n := range len(log) - 1 {
		if _, err := Verify(bytes.NewReader(log[:n]), head); !isBroken(err) {
			t.Errorf("the first %d bytes: %v", n, err)
		}
	}
	whole := bytes.LastIndexByte(log[:len(log)-1], '\n') + 1
	if rep := verified(t, log[:whole]); !rep.Ends {
		t.Errorf("without the last line: %+v", rep)
	}
}

// Of each crash, before or after any call, the log is what it has to be: every act that was allowed has its line, and
// the next one follows it.
func TestCrashes(t *testing.T) {
	fs := vfstest.NewCrashFS()
	var allowed []string
	var images [][2]any
	fs.Watch(func(_ vfstest.Op, at *vfstest.Point) {
		for img := range at.States(vfstest.Spread{Contents: 64, States: 64}, 1) {
			images = append(images, [2]any{img, slices.Clone(allowed)})
		}
	})
	l := on(fs)
	for _, name := range []string{"a", "b", "c"} {
		end, err := l.Begin(t.Context(), Act{Act: "delete", Session: name})
		if err != nil {
			t.Fatal(err)
		}
		allowed = append(allowed, name)
		if err := end(t.Context(), Done, ""); err != nil {
			t.Fatal(err)
		}
	}
	if len(images) < 20 {
		t.Fatalf("%d images", len(images))
	}
	for i, c := range images {
		again := vfstest.Boot(c[0].(*vfstest.Image))
		l := on(again)
		for range 2 {
			if !act(l, "next") {
				t.Fatalf("image %d: the next act is refused", i)
			}
		}
		log, _ := again.Bytes(file)
		rep := verified(t, log)
		for _, name := range c[1].([]string) {
			if !bytes.Contains(log, []byte(`"session":"`+name+`"`)) {
				t.Errorf("image %d: no line of %s, which was allowed: %+v\n%s", i, name, rep, log)
			}
		}
	}
}

// A disk that is full, or fails in another way, refuses the act; what was allowed has its line; and when the disk works
// again the log continues.
func TestFullDisk(t *testing.T) {
	run := func(faults ...vfstest.Fault) (calls []vfstest.Call, allowed []string, log []byte) {
		inner := vfstest.NewCrashFS()
		f := vfstest.NewFaultFS(inner, faults...)
		l := on(f)
		for _, name := range []string{"a", "b"} {
			if act(l, name) {
				allowed = append(allowed, name)
			}
		}
		calls = f.Calls()
		if !act(on(inner), "last") {
			t.Fatalf("%v: the next act is refused", faults)
		}
		log, _ = inner.Bytes(file)
		return calls, allowed, log
	}
	calls, allowed, _ := run()
	if len(allowed) != 2 || len(calls) < 12 {
		t.Fatalf("%v of %d calls", allowed, len(calls))
	}
	for at, call := range calls {
		for _, kind := range call.Class.Kinds() {
			fault := vfstest.Fault{At: at, Kind: kind, Errno: syscall.ENOSPC}
			_, allowed, log := run(fault)
			verified(t, log)
			for _, name := range allowed {
				if !bytes.Contains(log, []byte(`"session":"`+name+`"`)) {
					t.Errorf("%v (%s): no line of %s, which was allowed", fault, call.Name, name)
				}
			}
		}
	}
}

// Several processes write one log: each append holds the lock, and no line is lost.
func TestSeveralWriters(t *testing.T) {
	name := filepath.Join(t.TempDir(), file)
	var all sync.WaitGroup
	for range 4 { // a Log each, as a process has
		all.Go(func() {
			l := Open(name, clock)
			defer func() { _ = l.Close() }()
			for range 10 {
				if !act(l, "s") {
					t.Error("an act is refused")
				}
			}
		})
	}
	all.Wait()
	log, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if rep := verified(t, log); rep.Lines != 80 || rep.Open != 0 {
		t.Errorf("%+v", rep)
	}
	if st, err := os.Stat(name); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
}

// A line is bounded, whatever the ids.
func TestLongLines(t *testing.T) {
	fs := vfstest.NewCrashFS()
	l := on(fs)
	ids := slices.Repeat([]string{strings.Repeat("i", 1000)}, 1000)
	end, err := l.Begin(t.Context(), Act{Act: "erase", Session: strings.Repeat("s", 1<<20), IDs: ids})
	if err == nil {
		err = end(t.Context(), Done, "", ids...)
	}
	if err != nil {
		t.Fatal(err)
	}
	log, _ := fs.Bytes(file)
	if rep := verified(t, log); rep.Lines != 2 || len(log) > 2*maxLine || !bytes.Contains(log, []byte(`"more":900`)) {
		t.Errorf("%+v of %d bytes", rep, len(log))
	}
	if !act(l, "next") {
		t.Error("the next act is refused")
	}
}

// A file that is no audit log is not written to once its end is too long for a line.
func TestForeignFile(t *testing.T) {
	fs := vfstest.NewCrashFS()
	l := on(fs)
	act(l, "a")
	fs.Overwrite(file, bytes.Repeat([]byte("x"), window+1))
	if act(l, "b") {
		t.Error("the act is allowed")
	}
	if _, err := Verify(strings.NewReader(strings.Repeat("x", 10*window)), ""); err == nil {
		t.Error("it is an audit log")
	}
}

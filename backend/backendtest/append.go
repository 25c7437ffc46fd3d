package backendtest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync/atomic"

	"github.com/coppice-go/coppice/backend"
)

var appendCases = []testCase{
	{name: "Append/Rules", needs: appender, run: testAppendRules},
	{name: "Append/Cut", needs: appender, run: testCut},
	{name: "Append/CutLarge", needs: appender, run: testCutLarge},
	{name: "Append/Resync", needs: appender, run: testResync},
	{name: "Append/Versions", needs: appender, run: testAppendVersions},
	{name: "Append/Race", needs: appender, run: func(e *env) { raceAppend(e, e.a, e.a) }},
	{name: "Append/RaceOfCuts", needs: appender, run: func(e *env) { raceCut(e, e.a) }},
}

func testAppendRules(e *env) {
	_, err := e.a.Append(e.ctx(), "log", 0, []byte("x"))
	e.refused(err, "append", "log", backend.ErrPrecondition) // Append never creates an object
	e.absent("log")

	e.put("log", nil, backend.IfAbsent())
	var want []byte
	for i, n := range []int{1, 0, 100, 4096, 70000, 3} {
		p := fill(fmt.Sprint("append", i), n)
		e.append("log", int64(len(want)), p)
		want = append(want, p...)
		e.holds("log", want)
	}
	size := int64(len(want))
	for _, off := range []int64{0, 1, size - 1, size + 1, size + 4096, -1, -size, 1<<63 - 1, -1 << 63} {
		for _, p := range [][]byte{[]byte("stale"), nil} {
			_, err := e.a.Append(e.ctx(), "log", off, p)
			e.refused(err, "append", "log", backend.ErrPrecondition)
		}
	}
	e.holds("log", want)
	tail, _ := e.get("log", backend.Tail(10))
	part, _ := e.get("log", backend.Bytes(90, 50))
	if !bytes.Equal(tail, want[size-10:]) || !bytes.Equal(part, want[90:140]) {
		e.Errorf("ranges of an appended object: %q, %q", tail, part)
	}
	if infos := e.list(backend.ListOptions{}); len(infos) != 1 || infos[0].Size != size {
		e.Errorf("list: %+v, want one object of %d bytes", infos, size)
	}
	e.put("log", []byte("replaced"), backend.Cond{})
	_, err = e.a.Append(e.ctx(), "log", size, []byte("stale"))
	e.refused(err, "append", "log", backend.ErrPrecondition)
	e.append("log", 8, []byte(" and extended"))
	e.holds("log", []byte("replaced and extended"))
	e.delete("log")
	_, err = e.a.Append(e.ctx(), "log", 21, []byte("x"))
	e.refused(err, "append", "log", backend.ErrPrecondition)
	e.absent("log")
}

// badCuts are arguments of Cut that an object of "abcdef" does not match.
var badCuts = []struct {
	off  int64
	torn string
}{
	{4, ""},
	{4, "e"},
	{4, "efg"},
	{0, ""},
	{0, "abcdefg"},
	{3, "ef"},
	{5, "ef"},
	{4, "eF"}, // the same number of bytes, but different ones
	{4, "Ef"},
	{4, "fe"},
	{0, "abcdeF"},
	{0, "Abcdef"},
	{6, "f"},
	{7, ""},
	{7, "g"},
	{-1, ""},
	{-1, "Xabcdef"},
	{-6, "abcdef"},
	{1<<63 - 1, ""},
	{1<<63 - 1, "ef"},
	{-1 << 63, "abcdef"},
}

func testCut(e *env) {
	for _, torn := range []string{"", "x"} {
		e.refused(e.a.Cut(e.ctx(), "log", 0, []byte(torn)), "cut", "log", backend.ErrPrecondition)
	}
	e.absent("log")
	before := e.put("log", []byte("abcdef"), backend.Cond{}).Version
	for _, c := range badCuts {
		torn := []byte(c.torn)
		e.refused(e.a.Cut(e.ctx(), "log", c.off, torn), "cut", "log", backend.ErrPrecondition)
		e.holds("log", []byte("abcdef"))
		if string(torn) != c.torn {
			e.Fatal("Cut modified its argument")
		}
	}
	if v := e.stat("log").Version; v != before {
		e.Errorf("version %q after refused cuts, want %q still", v, before)
	}
	for _, c := range []struct {
		off        int64
		torn, want string
	}{{6, "", "abcdef"}, {4, "ef", "abcd"}, {1, "bcd", "a"}, {0, "a", ""}, {0, "", ""}} {
		if err := e.a.Cut(e.ctx(), "log", c.off, []byte(c.torn)); err != nil {
			e.Fatalf("cut %q after %d: %v", c.torn, c.off, err)
		}
		e.holds("log", []byte(c.want))
	}
	e.append("log", 0, []byte("xyz")) // the removed bytes do not reappear
	e.holds("log", []byte("xyz"))
}

// testCutLarge: all bytes are compared, also if there are more than a driver reads at once.
func testCutLarge(e *env) {
	n := e.size(700_000, 70_000)
	base, torn := []byte("base"), fill("torn", n)
	want := append(bytes.Clone(base), torn...)
	e.put("log", want, backend.Cond{})
	for _, at := range []int{0, 1, n / 2, n - 1} {
		other := bytes.Clone(torn)
		other[at] ^= 1
		e.refused(e.a.Cut(e.ctx(), "log", 4, other), "cut", "log", backend.ErrPrecondition)
	}
	e.holds("log", want)
	if err := e.a.Cut(e.ctx(), "log", 4, torn); err != nil {
		e.Fatal(err)
	}
	e.holds("log", base)
}

// raceCut: in each round writers find the same torn tail. Each cuts it, appends a record of the same length, and cuts
// the tail once more, as a slow writer would. The tail is cut once, one append wins, and acknowledged records stay.
func raceCut(e *env, handles ...backend.Appender) {
	const writers = 6
	base := []byte("base")
	for round := range e.size(60, 10) {
		key := fmt.Sprintf("race/cut%03d", round)
		own := func(w int) []byte { return fmt.Appendf(nil, "writer %d in round %06d", w, round) }
		torn := bytes.Repeat([]byte("t"), len(own(0)))
		e.put(key, append(bytes.Clone(base), torn...), backend.IfAbsent())
		var cuts, winner atomic.Int64
		winner.Store(-1)
		cut := func(a backend.Appender) error {
			err := a.Cut(e.ctx(), key, int64(len(base)), torn)
			if err == nil {
				cuts.Add(1)
				return nil
			}
			if !errors.Is(err, backend.ErrPrecondition) || backend.OutcomeOf(err) != backend.NotApplied {
				return err
			}
			return nil
		}
		e.together(writers, func(w int) error {
			a := handles[w%len(handles)]
			if err := cut(a); err != nil {
				return err
			}
			_, err := a.Append(e.ctx(), key, int64(len(base)), own(w))
			switch {
			case err == nil:
				if !winner.CompareAndSwap(-1, int64(w)) {
					return fmt.Errorf("%s: writers %d and %d both appended at %d", key, winner.Load(), w, len(base))
				}
			case !errors.Is(err, backend.ErrPrecondition) || backend.OutcomeOf(err) != backend.NotApplied:
				return err
			}
			return cut(a)
		})
		if winner.Load() < 0 || cuts.Load() != 1 {
			e.Fatalf("%s: %d cuts, the append of writer %d; want one of each", key, cuts.Load(), winner.Load())
		}
		e.holds(key, append(bytes.Clone(base), own(int(winner.Load()))...))
	}
}

// badSpans are invalid arguments of Resync for an object of six bytes, with the reason.
var badSpans = []struct {
	off, size int64
	err       error
}{
	{2, 5, backend.ErrPrecondition},
	{2, 7, backend.ErrPrecondition},
	{0, 0, backend.ErrPrecondition},
	{0, 1<<63 - 1, backend.ErrPrecondition},
	{-1, 6, backend.ErrRange},
	{7, 6, backend.ErrRange},
	{1<<63 - 1, 6, backend.ErrRange},
}

func testResync(e *env) {
	_, err := e.a.Resync(e.ctx(), "log", 0, 0)
	e.refused(err, "resync", "log", backend.ErrPrecondition)
	e.put("log", []byte("abcdef"), backend.Cond{})
	for _, c := range badSpans {
		_, err := e.a.Resync(e.ctx(), "log", c.off, c.size)
		e.refused(err, "resync", "log", c.err)
	}
	want := []byte("abcdef")
	for _, extra := range []int{0, 3, 9000} {
		p := fill("resync", extra)
		e.append("log", int64(len(want)), p)
		want = append(want, p...)
		size := int64(len(want))
		for _, off := range []int64{0, 1, size / 2, size - 1, size} {
			info, err := e.a.Resync(e.ctx(), "log", off, size)
			if err != nil || info.Size != size || info.Key != "log" {
				e.Fatalf("resync from %d to %d: %+v, %v", off, size, info, err)
			}
			e.holds("log", want)
		}
	}
	e.append("log", int64(len(want)), []byte("!"))
	e.holds("log", append(want, '!'))
}

// A version from before an append or a cut no longer matches.
func testAppendVersions(e *env) {
	old := e.put("log", []byte("abc"), backend.Cond{}).Version
	step := func(name string, info backend.Info) {
		e.Helper()
		_, got := e.get("log", backend.Range{})
		if stat := e.stat("log"); got.Version != stat.Version || info.Version != "" && info.Version != stat.Version {
			e.Errorf("versions after %s: %q, get %q, stat %q; want one", name, info.Version, got.Version, stat.Version)
		}
		_, err := e.b.Put(e.ctx(), "log", []byte("late"), backend.IfMatch(old))
		e.refused(err, "put", "log", backend.ErrPrecondition)
		old = got.Version
	}
	step("append", e.append("log", 3, []byte("def")))
	if err := e.a.Cut(e.ctx(), "log", 5, []byte("f")); err != nil {
		e.Fatal(err)
	}
	step("cut", backend.Info{})
	step("append", e.append("log", 5, []byte("xyz")))
	_, got := e.get("log", backend.Range{})
	e.put("log", []byte("swapped"), backend.IfMatch(got.Version))
	e.holds("log", []byte("swapped"))
}

// record is a line of an append race: length, filling, CRC.
func record(tag string, n int) []byte {
	p := binary.LittleEndian.AppendUint32(nil, uint32(n))
	p = append(p, fill(tag, n)...)
	return binary.LittleEndian.AppendUint32(p, crc32.ChecksumIEEE(p))
}

// countRecords counts whole records; other bytes are an error.
func countRecords(p []byte) (int, error) {
	count := 0
	for rest := p; len(rest) > 0; count++ {
		if len(rest) < 8 {
			return count, fmt.Errorf("%d bytes of a record at %d", len(rest), len(p)-len(rest))
		}
		n := int(binary.LittleEndian.Uint32(rest)) + 8
		if n > len(rest) || crc32.ChecksumIEEE(rest[:n-4]) != binary.LittleEndian.Uint32(rest[n-4:]) {
			return count, fmt.Errorf("torn record at %d of %d", len(p)-len(rest), len(p))
		}
		rest = rest[n:]
	}
	return count, nil
}

// raceAppend: writers extend one object by compare-and-append while readers read it. No record is lost, duplicated or
// mixed with another; a reader sees only whole appends, and all that had returned.
func raceAppend(e *env, handles ...backend.Appender) {
	const key, writers, readers = "race/log", 6, 2
	each := e.size(25, 5)
	e.put(key, nil, backend.IfAbsent())
	var appended, running atomic.Int64
	running.Store(writers)
	e.together(writers+readers, func(w int) error {
		a := handles[w%len(handles)]
		if w >= writers {
			for i := 0; running.Load() > 0 && i < 40*each; i++ { // bounded: more would only delay writers
				if err := readLog(e, a, key, &appended); err != nil {
					return err
				}
			}
			return nil
		}
		defer running.Add(-1)
		for done, tries := 0, 0; done < each; tries++ {
			if tries > 1000*each {
				return fmt.Errorf("writer %d got through %d of %d times in %d tries", w, done, each, tries)
			}
			info, err := a.Stat(e.ctx(), key)
			if err != nil {
				return err
			}
			p := record(fmt.Sprintf("writer %d record %d", w, done), 10+(w*each+done)*311%12000)
			_, err = a.Append(e.ctx(), key, info.Size, p)
			switch {
			case err == nil:
				done++
				appended.Add(1)
			case !errors.Is(err, backend.ErrPrecondition) || backend.OutcomeOf(err) != backend.NotApplied:
				return err
			}
		}
		return nil
	})
	p, _ := e.get(key, backend.Range{})
	if n, err := countRecords(p); err != nil || n != writers*each {
		e.Fatalf("%d records after the race, %v; want %d", n, err, writers*each)
	}
	for w := range writers {
		for i := range each {
			tag := fmt.Sprintf("writer %d record %d", w, i)
			if n := bytes.Count(p, record(tag, 10+(w*each+i)*311%12000)); n != 1 {
				e.Errorf("%s is there %d times", tag, n)
			}
		}
	}
}

func readLog(e *env, a backend.Appender, key string, appended *atomic.Int64) error {
	least := appended.Load()
	p, info, err := a.Get(e.ctx(), key, backend.Range{})
	if err != nil {
		return err
	}
	n, err := countRecords(p)
	if err != nil {
		return fmt.Errorf("read beside appends: %w", err)
	}
	if int64(n) < least || info.Size != int64(len(p)) {
		return fmt.Errorf("read %d records (%d bytes, size %d) after %d had been appended", n, len(p), info.Size, least)
	}
	return nil
}

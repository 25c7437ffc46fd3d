package codec

import (
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// mixedRows has a row for every form of an id, a parent, a target and a time.
func mixedRows() []Row {
	const ms = 1_770_000_000_123
	v7 := uuid7(newRand(5), ms)
	return []Row{
		{ID: v7, Parent: NoParent, Type: "message", Role: "user", Flags: FlagText | FlagVisible, Size: 300, Time: ms, Preview: "hello, wörld"},
		{ID: "d703a1a9-1b7b-4fb1-b512-c9738b1fe617", Parent: 100, Type: "message", Role: "assistant", Flags: FlagCalls, Size: 1 << 31, Time: ms + 5},
		{ID: "a1b2c3d4", Parent: 101, Type: "message", Role: "toolResult", Flags: 0xff, Size: 7, Time: 0, Preview: strings.Repeat("x", 80)},
		{ID: "abc", Parent: 5, Target: "a1b2c3d4", Type: "label", Size: 1, Time: -1},
		{ID: "", Parent: 107, Target: v7, Type: "custom", Flags: FlagCommit, Time: 1<<62 - 1},
		{ID: "D703A1A9-1B7B-4FB1-B512-C9738B1FE617", Parent: 0, Target: "x", Type: "unheard/of", Role: "röle", Time: -1 << 62},
		{ID: strings.Repeat("long ", 100), Parent: 104, Target: strings.Repeat("t", 300), Type: "message", Role: "user", Time: ms},
		{ID: strings.Repeat("ab", 63), Parent: 1 << 40, Type: "", Role: "", Preview: " "},
		{ID: strings.Repeat("ab", 64), Parent: NoParent, Type: "message", Role: "user"},
	}
}

func checkRows(t testing.TB, s *Skeleton, first uint64, want []Row) {
	t.Helper()
	if s.First() != first || s.Len() != len(want) {
		t.Fatalf("%d rows from %d, want %d from %d", s.Len(), s.First(), len(want), first)
	}
	got := make([]Row, 0, len(want))
	for i := range s.Len() {
		got = append(got, s.Row(i))
		if typ, role := s.KindAt(s.KindIndex(i)); typ != want[i].Type || role != want[i].Role || s.KindIndex(i) >= s.Kinds() {
			t.Fatalf("row %d is of kind %d, %q %q", i, s.KindIndex(i), typ, role)
		}
		if a, b := s.AppendPackedID(nil, i), want[i].AppendPackedID([]byte("+")); string(a) != string(b[1:]) {
			t.Fatalf("row %d: packed id %x, by itself %x", i, a, b)
		}
	}
	if len(want) > 0 {
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	}
	if err := s.Verify(); err != nil {
		t.Fatal(err)
	}
}

func TestSkeletonRoundTrip(t *testing.T) {
	p, err := EncodeSkeleton(100, mixedRows())
	if err != nil {
		t.Fatal(err)
	}
	s, err := DecodeSkeleton(golden(t, "skeleton.bin", p))
	if err != nil {
		t.Fatal(err)
	}
	checkRows(t, s, 100, mixedRows())
	for _, n := range []int{0, 1, 2, 15, 16, 17, 1000} {
		_, rows := session(uint64(n), 1<<40, n, 200)
		p, err := EncodeSkeleton(1<<40, rows)
		if err != nil {
			t.Fatal(err)
		}
		s, err := DecodeSkeleton(p)
		if err != nil {
			t.Fatal(err)
		}
		checkRows(t, s, 1<<40, rows)
	}
}

func drawRow(t *rapid.T, ordinal int64) Row {
	id := rapid.OneOf(
		rapid.StringMatching(`[0-9a-f]{8}`), rapid.StringN(0, 20, 200), rapid.StringMatching(`[0-9a-f]{0,140}`),
		rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`))
	r := Row{
		ID: id.Draw(t, "id"), Type: rapid.SampledFrom([]string{"message", "custom", "odd"}).Draw(t, "type"),
		Parent: rapid.OneOf(rapid.Int64Range(-1, 2000), rapid.Int64Range(-1, 1<<60)).Draw(t, "parent"),
		Role:   rapid.SampledFrom([]string{"", "user", "?"}).Draw(t, "role"),
		Flags:  rapid.Byte().Draw(t, "flags"), Size: rapid.Uint32().Draw(t, "size"), Time: rapid.Int64().Draw(t, "time"),
	}
	if r.Parent == ordinal {
		r.Parent = NoParent
	}
	if rapid.Bool().Draw(t, "has target") {
		r.Target = id.Draw(t, "target")
	}
	if u := r.ID; len(u) == 36 && u[14] == '7' && rapid.Bool().Draw(t, "timed") {
		b := parseForTest(u)
		r.Time = int64(binary.BigEndian.Uint64(b[:8]) >> 16)
	}
	r.Preview = strings.ReplaceAll(rapid.StringN(0, 20, 80).Draw(t, "preview"), "\n", "")
	return r
}

// parseForTest reads a UUID digit by digit.
func parseForTest(s string) (u [16]byte) {
	n := 0
	for _, c := range strings.ReplaceAll(s, "-", "") {
		u[n/2] = u[n/2]<<4 | byte(strings.IndexRune("0123456789abcdef", c))
		n++
	}
	return u
}

func TestSkeletonProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		first := rapid.Uint64Range(0, 1000).Draw(rt, "first")
		n := rapid.IntRange(0, 40).Draw(rt, "n")
		rows := make([]Row, n)
		for i := range rows {
			rows[i] = drawRow(rt, int64(first)+int64(i))
		}
		p, err := EncodeSkeleton(first, rows)
		if err != nil {
			rt.Fatal(err)
		}
		s, err := DecodeSkeleton(p)
		if err != nil {
			rt.Fatal(err)
		}
		checkRows(t, s, first, rows)
		if again, _ := EncodeSkeleton(first, rows); string(again) != string(p) {
			rt.Fatal("equal rows, other bytes")
		}
	})
}

func TestSkeletonRefusesRows(t *testing.T) {
	tests := []struct {
		name string
		row  Row
		want error
	}{
		{"own parent", Row{Parent: 7}, ErrFormat},
		{"parent before all", Row{Parent: -2}, ErrFormat},
		{"long preview", Row{Preview: strings.Repeat("x", 81)}, ErrLimit},
		{"preview of two lines", Row{Preview: "a\nb"}, ErrFormat},
		{"preview is no text", Row{Preview: "\xff"}, ErrFormat},
		{"long id", Row{ID: strings.Repeat("x", 1<<20+1)}, ErrLimit},
		{"long type", Row{Type: strings.Repeat("x", 1<<20+1)}, ErrLimit},
	}
	for _, tt := range tests {
		if _, err := EncodeSkeleton(7, []Row{tt.row}); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	if _, err := EncodeSkeleton(0, make([]Row, 1<<20+1)); !errors.Is(err, ErrLimit) {
		t.Errorf("too many rows: %v", err)
	}
	if _, err := EncodeSkeleton(1<<61+1, nil); !errors.Is(err, ErrLimit) {
		t.Errorf("first ordinal out of range: %v", err)
	}
}

// The decoded previews may be dropped at any time and are decoded again; readers race safely.
func TestPreviewsUnderPressure(t *testing.T) {
	_, rows := session(8, 0, 500, 300)
	p, err := EncodeSkeleton(0, rows)
	if err != nil {
		t.Fatal(err)
	}
	s, err := DecodeSkeleton(p)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for round := range 5 {
				for i := range rows {
					if got := s.Preview(i); got != rows[i].Preview {
						t.Errorf("row %d: preview %q, want %q", i, got, rows[i].Preview)
						return
					}
				}
				if round%2 == 0 {
					runtime.GC()
				}
			}
		})
	}
	wg.Wait()
}

// sealSkeleton sets the checksum of a skeleton that was put together by hand.
func sealSkeleton(p []byte) []byte {
	return binary.LittleEndian.AppendUint32(p, CRC(p))
}

// rawSkeleton builds a skeleton by hand: flags, the numbers of its head, six column specs, its parts.
func rawSkeleton(flags byte, head [9]uint64, specs []byte, parts ...string) []byte {
	p := append([]byte(skeletonMagic), 1, 0, flags, 0)
	for _, n := range head {
		p = binary.AppendUvarint(p, n)
	}
	return sealSkeleton(append(append(p, specs...), strings.Join(parts, "")...))
}

func TestSkeletonRefusesBytes(t *testing.T) {
	flat := []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, byte(0x81), 1} // every column constant; ids are one letter
	one := [9]uint64{0, 1, 2, 0, 1, 0, 0, 0, 0}
	with := func(i int, v uint64) [9]uint64 { h := one; h[i] = v; return h }
	wide := append([]byte{8}, flat[1:]...)
	bomb := frameHead(false, 0x38, 1<<27)
	for i := range 1024 {
		bomb = append(bomb, block(i == 1023, 1, 128<<10, 'x')...)
	}
	if s, err := DecodeSkeleton(rawSkeleton(0, one, flat, "\x00\x00", "a")); err != nil || s.ID(0) != "a" || s.Parent(0) != NoParent {
		t.Fatalf("the base of the table is not valid: %v", err)
	}
	tests := []struct {
		name string
		p    []byte
		want error
	}{
		{"nothing", nil, ErrFormat},
		{"other magic", sealSkeleton([]byte("xxxx\x01\x00\x00\x00")), ErrFormat},
		{"newer format", sealSkeleton([]byte(skeletonMagic + "\x02\x00\x00\x00")), ErrVersion},
		{"unknown flag", rawSkeleton(4, one, flat, "\x00\x00", "a"), ErrFormat},
		{"no rest", sealSkeleton([]byte(skeletonMagic + "\x01\x00\x00\x00")), ErrFormat},
		{"2^20 rows in few bytes", rawSkeleton(0, with(1, 1<<20), flat, "\x00\x00", "a"), ErrLimit},
		{"2^63 rows", rawSkeleton(0, with(1, 1<<63), flat, "\x00\x00", "a"), ErrLimit},
		{"two rows, one id", rawSkeleton(0, with(1, 2), flat, "\x00\x00", "a"), ErrFormat},
		{"table over the rest", rawSkeleton(0, with(2, 40), flat, "\x00\x00", "a"), ErrLimit},
		{"table cut", rawSkeleton(0, with(2, 1), flat, "\x00", "a"), ErrFormat},
		{"no kinds", rawSkeleton(0, with(2, 0), flat, "a"), ErrFormat},
		{"more kinds than rows", rawSkeleton(0, with(2, 4), flat, "\x00\x00\x00\x00", "a"), ErrFormat},
		{"columns that are not there", rawSkeleton(0, one, wide, "\x00\x00", "a"), ErrFormat},
		{"column of 9 bytes", rawSkeleton(0, one, append([]byte{9}, flat[1:]...), "\x00\x00", "a"), ErrFormat},
		{"packed columns that are no frame", rawSkeleton(1, one, wide, "\x00\x00", "a"), ErrFormat},
		{"bomb of columns", rawSkeleton(1, with(3, uint64(len(bomb))), wide, "\x00\x00", string(bomb), "a"), ErrLimit},
		{"parent before all", rawSkeleton(0, one, append([]byte{0, 4}, flat[2:]...), "\x00\x00", "a"), ErrFormat},
		{"parent at 2^63", rawSkeleton(0, one, append([]byte{0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, flat[2:]...), "\x00\x00", "a"), ErrFormat},
		{"unknown id code", rawSkeleton(0, one, append(append([]byte{}, flat[:11]...), 5), "\x00\x00", "a"), ErrFormat},
		{"id code over a byte", rawSkeleton(0, one, append(append([]byte{}, flat[:11]...), 0x81, 3), "\x00\x00", "a"), ErrFormat},
		{"long id over the rest", rawSkeleton(0, one, append(append([]byte{}, flat[:11]...), 2), "\x00\x00", "\x7f"), ErrFormat},
		{"long id, its length not in the shortest form", rawSkeleton(0, with(4, 3), append(append([]byte{}, flat[:11]...), 2), "\x00\x00", "\x81\x00x"), ErrFormat},
		{"ids too many", rawSkeleton(0, with(4, 2), flat, "\x00\x00", "ab"), ErrFormat},
		{"more targets than rows", rawSkeleton(0, with(5, 2), flat, "\x00\x00", "a"), ErrLimit},
		{"target bytes without targets", rawSkeleton(0, with(6, 1), flat, "\x00\x00", "a", "t"), ErrFormat},
		{"target of no row", rawSkeleton(0, [9]uint64{0, 1, 2, 0, 1, 1, 6, 0, 0}, flat, "\x00\x00", "a", "\x00\x01\x00\x02\x81t"), ErrFormat},
		{"target by time", rawSkeleton(0, [9]uint64{0, 1, 2, 0, 1, 1, 15, 0, 0}, flat, "\x00\x00", "a", "\x00\x00\x00\x0b\x010123456789"), ErrFormat},
		{"target past the end", rawSkeleton(0, [9]uint64{0, 1, 2, 0, 1, 1, 6, 0, 0}, flat, "\x00\x00", "a", "\x00\x00\x00\x09\x81t"), ErrFormat},
		{"previews of two lengths", rawSkeleton(0, with(7, 3), flat, "\x00\x00", "a"), ErrFormat},
		{"previews of 2^40", rawSkeleton(2, with(7, 1<<40), flat, "\x00\x00", "a"), ErrLimit},
		{"a byte too many", rawSkeleton(0, one, flat, "\x00\x00", "ab"), ErrFormat},
		{"number not in its shortest form", sealSkeleton([]byte(skeletonMagic + "\x01\x00\x00\x00\x80\x00")), ErrFormat},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var err error
			taken := allocated(func() { _, err = DecodeSkeleton(tt.p) })
			if !errors.Is(err, tt.want) || !isOurs(err) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if taken > uint64(4<<10+128*len(tt.p)) {
				t.Errorf("%d bytes allocated for %d", taken, len(tt.p))
			}
		})
	}
}

// A hostile column of previews with correct checksums reads as empty, and Verify reports it.
func TestPreviewsThatLie(t *testing.T) {
	flat := []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x81, 1}
	for name, text := range map[string]string{"no line feed": "abc", "two lines": "a\n\n", "unended": "\nb", "no frame": "xx"} {
		flags := byte(0)
		if name == "no frame" {
			flags = previewsPacked
		}
		s, err := DecodeSkeleton(rawSkeleton(flags, [9]uint64{0, 1, 2, 0, 1, 0, 0, uint64(len(text)), uint64(len(text))}, flat, "\x00\x00", "a", text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if s.Preview(0) != "" || !errors.Is(s.Verify(), ErrFormat) {
			t.Errorf("%s: %q, %v", name, s.Preview(0), s.Verify())
		}
		// Decoding is tried once and not for each row, which would be quadratic: even a readable column is not read
		// later.
		s.previews, s.previewsRaw, s.previewsPacked = []byte("ab\n"), 3, false
		if s.Preview(0) != "" || s.Verify() != nil {
			t.Errorf("%s: %q is read after the column was unreadable, %v", name, s.Preview(0), s.Verify())
		}
	}
}

// TestSkeletonSize bounds the stored size of a skeleton; BenchmarkSkeletonHeap measures its memory.
func TestSkeletonSize(t *testing.T) {
	_, rows := session(1, 0, 256, 600)
	p, err := EncodeSkeleton(0, rows)
	if err != nil {
		t.Fatal(err)
	}
	if len(p) > 48*len(rows) {
		t.Errorf("%d bytes stored for %d rows", len(p), len(rows))
	}
}

// Ids that differ anywhere have packed forms that differ: an index by them cannot be filled with colliding ones,
// whatever the ids of a file are.
func TestPackedIDsDiffer(t *testing.T) {
	var rows []Row
	for i := range 16 {
		for _, digit := range "1f" {
			id := []byte("00000000-0000-7000-8000-000000000000")
			at := 2*i + min(max(i-2, 0)/2, 4)
			id[at] = byte(digit)
			rows = append(rows, Row{ID: string(id), Parent: NoParent, Type: "message", Time: int64(i)})
			if i == 5 { // of its row's time, so that the time is left out
				rows = append(rows, Row{ID: string(id), Parent: NoParent, Type: "message", Time: 1})
			}
		}
	}
	p, err := EncodeSkeleton(0, rows)
	if err != nil {
		t.Fatal(err)
	}
	s, err := DecodeSkeleton(p)
	if err != nil {
		t.Fatal(err)
	}
	byForm := map[string]string{}
	for i := range s.Len() {
		form := string(s.AppendPackedID(nil, i))
		if other, there := byForm[form]; there && other != s.ID(i) {
			t.Errorf("%s and %s have one packed form, %x", other, s.ID(i), form)
		}
		byForm[form] = s.ID(i)
	}
	if len(byForm) != 32 {
		t.Errorf("%d packed forms of 32 ids", len(byForm))
	}
}

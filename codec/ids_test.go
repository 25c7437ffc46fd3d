package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/internal/testutil"
)

// idRows are the rows of consecutive lines, each with its id; those that begin with "commit" are of commit lines.
func idRows(first uint64, ids ...string) []IDRow {
	rows := make([]IDRow, len(ids))
	for i, id := range ids {
		rows[i] = IDRow{Hash: HashID(id), Ord: first + uint64(i), Commit: bytes.HasPrefix([]byte(id), []byte("commit"))}
	}
	return rows
}

func mustIDs(t testing.TB, first uint64, ids ...string) *IDs {
	t.Helper()
	s, err := NewIDs(first, idRows(first, ids...))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func encodedIDs(t testing.TB, s *IDs) []byte {
	t.Helper()
	p, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestIDsRoundTrip(t *testing.T) {
	s := mustIDs(t, 100, "a", "b", "commit-1", "a", "", "019cadab-3a54-7c1e-9d42-6f0e8b7a51c3", "commit-2")
	got, err := DecodeIDs(golden(t, "ids.bin", encodedIDs(t, s)))
	if err != nil {
		t.Fatal(err)
	}
	if got.First() != 100 || got.Len() != 7 || got.End() != 107 {
		t.Errorf("it covers %d+%d to %d", got.First(), got.Len(), got.End())
	}
	for id, want := range map[string][]uint64{
		"a": {100, 103}, "b": {101}, "commit-1": {102}, "": {104}, "c": nil, "019cadab-3a54-7c1e-9d42-6f0e8b7a51c3": {105},
	} {
		var ords []uint64
		for _, r := range got.Find(HashID(id)) {
			if ords = append(ords, r.Ord); r.Commit != bytes.HasPrefix([]byte(id), []byte("commit")) {
				t.Errorf("%q: %+v", id, r)
			}
		}
		if !slices.Equal(ords, want) {
			t.Errorf("%q is at %v, want %v", id, ords, want)
		}
	}
}

// Two ids that share the first 8 bytes of their hashes are two ids.
func TestIDsTellHashesApart(t *testing.T) {
	rows := idRows(0, "a", "b", "c")
	rows[1].Hash = rows[0].Hash
	rows[1].Hash[15] ^= 1
	s, err := NewIDs(0, rows)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Find(rows[0].Hash); len(got) != 1 || got[0].Ord != 0 {
		t.Errorf("a: %v", got)
	}
	if got := s.Find(rows[1].Hash); len(got) != 1 || got[0].Ord != 1 {
		t.Errorf("its neighbour: %v", got)
	}
}

// Merged runs are the run of all their lines, byte for byte.
func TestMergeIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d", "commit"}), 1, 40).Draw(t, "ids")
		first := rapid.Uint64Range(0, 1<<40).Draw(t, "first")
		var runs []*IDs
		for at := 0; at < len(ids); {
			n := rapid.IntRange(1, len(ids)-at).Draw(t, "run")
			s, err := NewIDs(first+uint64(at), idRows(first+uint64(at), ids[at:at+n]...))
			if err != nil {
				t.Fatal(err)
			}
			runs, at = append(runs, s), at+n
		}
		got, err := MergeIDs(runs...)
		if err != nil {
			t.Fatal(err)
		}
		want, err := NewIDs(first, idRows(first, ids...))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.body, want.body) {
			t.Fatalf("%x\nwant %x", got.body, want.body)
		}
	})
}

func TestIDsRefuse(t *testing.T) {
	a, b := mustIDs(t, 0, "a", "b"), mustIDs(t, 3, "c")
	twice := idRows(0, "a", "b")
	twice[1].Ord = 0
	for name, run := range map[string]func() error{
		"none":         func() error { _, err := NewIDs(0, nil); return err },
		"too many":     func() error { _, err := emptyIDs(0, MaxIDs+1); return err },
		"twice":        func() error { _, err := NewIDs(0, twice); return err },
		"outside":      func() error { _, err := NewIDs(1, idRows(0, "a", "b")); return err },
		"a gap":        func() error { _, err := MergeIDs(a, b); return err },
		"nothing":      func() error { _, err := MergeIDs(); return err },
		"out of order": func() error { _, err := DecodeIDs(idObject(t, a, 0, func(p []byte) { swapRows(p) })); return err },
		"rows":         func() error { _, err := DecodeIDs(idObject(t, a, 8, func(p []byte) { p[0] = 9 })); return err },
		"a bomb": func() error {
			_, err := DecodeIDs(idObject(t, a, 8, func(p []byte) { copy(p, "\xff\xff\xff\xff") }))
			return err
		},
		"other ordinal": func() error { _, err := DecodeIDs(idObject(t, a, 12+32, func(p []byte) { p[0] = 7 })); return err },
	} {
		if err := run(); !isOurs(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := DecodeIDs(encodedIDs(t, a)[:40]); !errors.Is(err, ErrChecksum) {
		t.Errorf("cut: %v", err)
	}
}

// idObject returns an object with correct checksums and a changed body.
func idObject(t testing.TB, s *IDs, at int, edit func(p []byte)) []byte {
	t.Helper()
	body := bytes.Clone(s.body)
	edit(body[at:])
	return encodedIDs(t, &IDs{body: body})
}

func swapRows(body []byte) {
	n := int(binary.LittleEndian.Uint32(body[8:]))
	h := body[idHeader : idHeader+n*idHash]
	a := bytes.Clone(h[:idHash])
	copy(h[:idHash], h[idHash:2*idHash])
	copy(h[idHash:], a)
}

// A run takes 19 bytes a line, and its decoder no more than the bytes present.
func TestIDsSize(t *testing.T) {
	testutil.SkipLong(t)
	const n = 100_000
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint("id-", i)
	}
	p := encodedIDs(t, mustIDs(t, 0, ids...))
	if limit := 20 * n; len(p) > limit {
		t.Errorf("%d bytes for %d lines", len(p), n)
	}
	if took := allocated(func() { _, _ = DecodeIDs(p) }); took > 20*n+n/8+1<<16 {
		t.Errorf("decoding took %d bytes for %d", took, len(p))
	}
}

func FuzzDecodeIDs(f *testing.F) {
	seeds(f)
	f.Add(mustIDs(f, 100, "a", "b", "commit-1", "a", "").body)
	f.Fuzz(func(t *testing.T, p []byte) {
		_, err := DecodeIDs(p)
		check(t, err)
		whole, err := packContainer(KindIDs, nil, appendStoredForTest(p))
		if err != nil {
			t.Fatal(err)
		}
		s, err := DecodeIDs(whole)
		if check(t, err); err != nil {
			return
		}
		for i := range s.n {
			if found := s.Find(IDHash(append(bytes.Clone(s.hash(i)), s.check(i)...))); len(found) == 0 {
				t.Fatalf("row %d is not found", i)
			}
		}
	})
}

package codec

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
)

// IDHash is the part of an id in a run of the id index: the first 16 bytes of its SHA-256. Rows are sorted by the first
// 8; the others distinguish two ids that share those.
type IDHash [16]byte

// HashID returns the hash of an id.
func HashID(id string) IDHash {
	sum := sha256.Sum256([]byte(id))
	return IDHash(sum[:16])
}

// IDRow is one line of the transcript in a run of the id index.
type IDRow struct {
	Hash   IDHash
	Ord    uint64
	Commit bool // it is a commit line
}

// IDs is a run of the id index: the ids of consecutive lines, each line once, sorted by their hashes. It is immutable.
// The zero IDs is not a run.
type IDs struct {
	first  uint64
	n      int
	hashes []byte // 8 bytes a row
	checks []byte // 8 bytes a row
	places []byte // 3 bytes a row: ordinal - first, and 1<<23 for a commit line
	body   []byte
}

// MaxIDs is the maximum number of lines that one run covers.
const MaxIDs = 1 << 21

const (
	idHeader = 12 // first ordinal, rows
	idHash   = 8
	idPlace  = 3
	idRow    = 2*idHash + idPlace
	idCommit = 1 << 23 // in a place: a commit line
	maxIDs   = idHeader + MaxIDs*idRow
)

// NewIDs makes a run of lines that are consecutive from ordinal first: at most MaxIDs, in any order.
func NewIDs(first uint64, rows []IDRow) (*IDs, error) {
	sorted := slices.Clone(rows)
	slices.SortFunc(sorted, func(a, b IDRow) int {
		if c := bytes.Compare(a.Hash[:idHash], b.Hash[:idHash]); c != 0 {
			return c
		}
		if a.Ord < b.Ord {
			return -1
		}
		return 1
	})
	s, err := emptyIDs(first, len(sorted))
	if err != nil {
		return nil, err
	}
	for i, r := range sorted {
		if rel := r.Ord - first; rel >= uint64(len(sorted)) {
			return nil, fmt.Errorf("ids: ordinal %d in a run of %d+%d: %w", r.Ord, first, len(sorted), ErrFormat)
		}
		s.put(i, r.Hash[:idHash], r.Hash[idHash:], r.Ord, r.Commit)
	}
	return s, s.dense()
}

// emptyIDs allocates a run.
func emptyIDs(first uint64, n int) (*IDs, error) {
	if n < 1 || n > MaxIDs || first > ^uint64(0)-MaxIDs {
		return nil, fmt.Errorf("ids: a run of %d lines from ordinal %d, 1 to %d are allowed: %w", n, first, MaxIDs,
			ErrLimit)
	}
	body := make([]byte, idHeader+n*idRow)
	binary.LittleEndian.PutUint64(body, first)
	binary.LittleEndian.PutUint32(body[8:], uint32(n))
	return idView(body), nil
}

// idView is the run in a body of the right length.
func idView(body []byte) *IDs {
	n := (len(body) - idHeader) / idRow
	rest := body[idHeader:]
	return &IDs{
		first: binary.LittleEndian.Uint64(body), n: n, hashes: rest[:n*idHash], checks: rest[n*idHash : 2*n*idHash],
		places: rest[2*n*idHash:], body: body,
	}
}

func (s *IDs) put(i int, hash, check []byte, ord uint64, commit bool) {
	place := uint32(ord - s.first)
	if commit {
		place |= idCommit
	}
	copy(s.hashes[i*idHash:], hash)
	copy(s.checks[i*idHash:], check)
	s.places[i*idPlace], s.places[i*idPlace+1], s.places[i*idPlace+2] = byte(place), byte(place>>8), byte(place>>16)
}

// dense verifies that each ordinal of the run has one row, and that rows are in order. It takes a bit for each row.
func (s *IDs) dense() error {
	seen := make([]uint64, (s.n+63)/64)
	for i := range s.n {
		rel := s.place(i) &^ idCommit
		if int(rel) >= s.n || seen[rel/64]>>(rel%64)&1 == 1 {
			return fmt.Errorf("ids: row %d: ordinal %d+%d, of %d rows, is outside or there twice: %w", i, s.first, rel,
				s.n, ErrFormat)
		}
		seen[rel/64] |= 1 << (rel % 64)
		if i == 0 {
			continue
		}
		c := bytes.Compare(s.hash(i-1), s.hash(i))
		if c > 0 || c == 0 && s.place(i-1)&^idCommit >= rel {
			return fmt.Errorf("ids: row %d is out of order: %w", i, ErrFormat)
		}
	}
	return nil
}

func (s *IDs) hash(i int) []byte { return s.hashes[i*idHash : (i+1)*idHash] }

func (s *IDs) check(i int) []byte { return s.checks[i*idHash : (i+1)*idHash] }

func (s *IDs) place(i int) uint32 {
	p := s.places[i*idPlace:]
	return uint32(p[0]) | uint32(p[1])<<8 | uint32(p[2])<<16
}

// First returns the ordinal of the first line that the run covers.
func (s *IDs) First() uint64 { return s.first }

// Len returns the number of lines that it covers.
func (s *IDs) Len() int { return s.n }

// End returns the ordinal after the last line that it covers.
func (s *IDs) End() uint64 { return s.first + uint64(s.n) }

// Find returns the lines of the run with this hash, by ordinal. If there are none, no line of the run has the id.
func (s *IDs) Find(h IDHash) (found []IDRow) {
	from := sort.Search(s.n, func(i int) bool { return bytes.Compare(s.hash(i), h[:idHash]) >= 0 })
	for i := from; i < s.n && bytes.Equal(s.hash(i), h[:idHash]); i++ {
		if bytes.Equal(s.check(i), h[idHash:]) {
			p := s.place(i)
			found = append(found, IDRow{Hash: h, Ord: s.first + uint64(p&^idCommit), Commit: p&idCommit != 0})
		}
	}
	return found
}

// MergeIDs merges consecutive runs, which must not overlap: at most MaxIDs lines in all. It allocates only the result.
func MergeIDs(runs ...*IDs) (*IDs, error) {
	n := 0
	for i, r := range runs {
		if i > 0 && r.first != runs[i-1].End() {
			return nil, fmt.Errorf("ids: a run from ordinal %d where %d comes next: %w", r.first, runs[i-1].End(),
				ErrFormat)
		}
		n += r.n
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("ids: nothing to merge: %w", ErrFormat)
	}
	out, err := emptyIDs(runs[0].first, n)
	if err != nil {
		return nil, err
	}
	at := make([]int, len(runs))
	for i := range n {
		least := -1 // of equal hashes the older run's comes first: its ordinals are lower
		for k, r := range runs {
			if at[k] < r.n && (least < 0 || bytes.Compare(r.hash(at[k]), runs[least].hash(at[least])) < 0) {
				least = k
			}
		}
		r, row := runs[least], at[least]
		p := r.place(row)
		out.put(i, r.hash(row), r.check(row), r.first+uint64(p&^idCommit), p&idCommit != 0)
		at[least]++
	}
	return out, nil
}

// Encode returns the object of a run: a container of KindIDs. Hashes do not shrink, so its body is stored.
func (s *IDs) Encode() ([]byte, error) { return packContainer(KindIDs, nil, appendStored(nil, s.body)) }

// DecodeIDs decodes the output of Encode. It allocates the body, at most 19 bytes a line and 40 MiB, and a bit a line
// while it checks; declared sizes are compared with the bytes present first. The result shares no memory with p.
func DecodeIDs(p []byte) (*IDs, error) {
	_, body, err := DecodeContainer(p, KindIDs, maxIDs)
	if err != nil {
		return nil, err
	}
	if len(body) < idHeader+idRow || (len(body)-idHeader)%idRow != 0 {
		return nil, fmt.Errorf("ids: a body of %d bytes: %w", len(body), ErrFormat)
	}
	s := idView(body)
	if n := binary.LittleEndian.Uint32(body[8:]); int64(n) != int64(s.n) || s.first > ^uint64(0)-MaxIDs {
		return nil, fmt.Errorf("ids: %d rows from ordinal %d declared, %d are there: %w", n, s.first, s.n, ErrFormat)
	}
	if err := s.dense(); err != nil {
		return nil, err
	}
	return s, nil
}

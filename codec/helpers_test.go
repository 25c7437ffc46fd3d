package codec

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/testutil"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with testdata/name, or writes it under -update.
func golden(t *testing.T, name string, got []byte) []byte {
	t.Helper()
	return testutil.Golden(t, *update, filepath.Join("testdata", name), got)
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 7)) }

// uuid7 is a UUIDv7 of this time with random rest.
func uuid7(r *rand.Rand, ms int64) string {
	a, b := r.Uint64(), r.Uint64()
	return fmt.Sprintf("%08x-%04x-7%03x-%04x-%012x", uint64(ms)>>16, uint64(ms)&0xffff, a&0xfff, 0x8000|b&0x3fff, b>>16)
}

// words is text that compresses about as chat does.
func words(r *rand.Rand, n int) string {
	list := strings.Fields("the function returns an error when file is not found so we should check path first " +
		"and then read it again let me look at test output because build failed with exit code one in module")
	var b strings.Builder
	for b.Len() < n {
		if r.IntN(8) == 0 {
			fmt.Fprintf(&b, "%x ", r.Uint32())
			continue
		}
		b.WriteString(list[r.IntN(len(list))] + " ")
	}
	return strings.TrimSpace(b.String()[:n])
}

// session makes n consecutive lines of about size bytes, and their rows.
func session(seed uint64, first uint64, n, size int) (raw []byte, rows []Row) {
	r := newRand(seed)
	ms := int64(1_770_000_000_000)
	kinds := [][2]string{{"message", "user"}, {"message", "assistant"}, {"message", "toolResult"}, {"custom", ""}}
	parent := ""
	for i := range n {
		ms += int64(r.IntN(40_000))
		k := kinds[r.IntN(len(kinds))]
		text := words(r, size/2+r.IntN(size+1))
		id := uuid7(r, ms)
		line := fmt.Sprintf(`{"type":%q,"id":%q,"parentId":%q,"timestamp":"%d","message":{"role":%q,"content":%q}}`, k[0], id, parent, ms, k[1], text)
		row := Row{
			ID: id, Parent: int64(first) + int64(i) - 1, Type: k[0], Role: k[1],
			Flags: FlagText | FlagVisible, Size: uint32(len(line)), Time: ms, Preview: text[:min(len(text), 60)],
		}
		if k[0] == "custom" {
			row.Flags, row.Preview = FlagCommit, ""
		}
		parent = id
		raw = append(append(raw, line...), '\n')
		rows = append(rows, row)
	}
	return raw, rows
}

package repair

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/testutil"
)

// Each bit of a plain segment is flipped, one at a time: whatever it was, in the segment's own line, in an entry, in a
// commit line or between them, the lines come back as they were, and the damaged bytes are not touched. Where two
// adjacent bits are flipped, nothing is made up.
func TestMendEveryBit(t *testing.T) {
	testutil.SkipLong(t)
	at := time.UnixMilli(1_700_000_000_000).UTC()
	pre := checkpoint.Prelude{
		ID: "p", Time: at, Session: "s", First: 9, FirstSeq: 5, Epoch: 2, Key: 77, PrevName: fmt.Sprintf("%020d-%020d-%016x", 0, 1, 0), PrevBytes: 100,
		PrevSelf: 3,
	}
	line, err := pre.Line()
	if err != nil {
		t.Fatal(err)
	}
	raw, self := append(bytes.Clone(line), '\n'), pre.PrevSelf
	for seq := uint64(5); seq < 7; seq++ {
		var since []byte
		for i := range 2 {
			since = fmt.Appendf(since, `{"type":"message","id":"e%d-%d","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","message":{}}`+"\n", seq, i)
		}
		rec := checkpoint.Record{
			ID: fmt.Sprint("c", seq), Time: at, Seq: seq, Parent: "c4", Writer: "w", Reason: "turn", Branch: "main", HeadOrd: -1, Entries: 2,
			Doc: []byte(`{"branch":"main"}`),
		}
		if seq == 5 {
			rec.Base = &checkpoint.Base{Self: self, HeadOrd: -1, Created: at}
		}
		line, next, err := rec.AppendLine(nil, pre.Key, self, since)
		if err != nil {
			t.Fatal(err)
		}
		raw, self = append(append(append(raw, since...), line...), '\n'), next
	}
	for bit := range 8 * (len(raw) - 1) {
		q := bytes.Clone(raw)
		q[bit/8] ^= 1 << (bit % 8)
		damaged := bytes.Clone(q)
		if got := mend(q, false); !bytes.Equal(got, raw) {
			t.Errorf("bit %d, byte %d (%q) stays flipped", bit, bit/8, raw[max(0, bit/8-20):min(len(raw), bit/8+20)])
		}
		if !bytes.Equal(q, damaged) {
			t.Fatalf("bit %d: the damaged bytes were changed", bit)
		}
	}
	for i := 0; i+1 < len(raw); i += 7 {
		q := bytes.Clone(raw)
		q[i] ^= 1
		q[i+1] ^= 1
		if got := mend(q, false); !bytes.Equal(got, q) {
			t.Errorf("bytes %d and %d: something was made up", i, i+1)
		}
	}
}

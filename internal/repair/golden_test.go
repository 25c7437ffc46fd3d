package repair

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/internal/check"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/transcript"
)

// The records of losses have the bytes that docs/format/commit-line.md describes, and a skeleton shows them.
func TestRecordsOfLosses(t *testing.T) {
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	var got []byte
	var list []segment.Line
	add := func(line []byte, err error) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, segment.Line{Ord: uint64(len(list)), Parent: int64(len(list)) - 1, Raw: line})
		got = append(append(got, line...), '\n')
	}
	add(lostEntryLine("a1", "", at, 0, "torn/x"))
	add(lostObject(loss{name: "blobs/ab", how: check.Missing}, "b2", "a1", at))
	add(lostObject(loss{name: "originals/cd.zst", how: check.Damaged, torn: "torn/y"}, "c3", "a1", at))
	add(transcript.Draft{Raw: []byte(`{"type":"custom","id":"d4","parentId":null,"customType":"other","targetId":"a/b"}`)}.Line("", "", at))
	want, err := os.ReadFile("testdata/lost.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("the records changed (-golden +now):\n%s", diff)
	}
	for line := range bytes.Lines(want) {
		if isLost(line) != bytes.Contains(line, []byte("coppice.lost")) {
			t.Errorf("isLost of %s", line)
		}
	}
	sk, err := segment.Skeleton(list)
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for i := range sk.Len() {
		if segment.Lost(sk, i) {
			seen = append(seen, sk.ID(i)+"="+segment.LostObject(sk, i))
		}
	}
	if diff := cmp.Diff([]string{"a1=", "b2=blobs/ab", "c3=originals/cd.zst"}, seen); diff != "" {
		t.Errorf("what the skeleton shows:\n%s", diff)
	}
}

package snapshot_test

import (
	"fmt"
	"time"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/snapshot"
)

// A snapshot every ten commits, and one before each compaction.
func ExamplePolicy_When() {
	p := snapshot.Policy{Every: 10, BeforeCompaction: true}
	fmt.Println(p.When(3, "turn"), p.When(10, "turn"), p.When(3, "compaction"))
	// Output: false true true
}

// Keep the newest of each of the last two days, and all with a tag.
func ExampleRetention_Select() {
	day := func(d, hour int) time.Time { return time.Date(2026, 3, d, hour, 0, 0, 0, time.UTC) }
	var list []snapshot.Info
	for _, s := range []checkpoint.Summary{
		{Snapshot: "s1", Updated: day(1, 9), Tag: "released", Head: checkpoint.Head{Seq: 1}},
		{Snapshot: "s2", Updated: day(1, 18), Head: checkpoint.Head{Seq: 2}},
		{Snapshot: "s3", Updated: day(2, 9), Head: checkpoint.Head{Seq: 3}},
		{Snapshot: "s4", Updated: day(2, 18), Head: checkpoint.Head{Seq: 4}},
		{Snapshot: "s5", Updated: day(3, 9), Head: checkpoint.Head{Seq: 5}},
	} {
		list = append(list, snapshot.FromSummary(s, 1<<10)) // 1 KiB each
	}
	keep, drop := snapshot.Retention{Daily: 2, Tags: []string{"*"}}.Select(list)
	for _, i := range keep {
		fmt.Printf("keep %s of %s %q\n", i.ID, i.Time.Format(time.DateOnly), i.Tag)
	}
	for _, i := range drop {
		fmt.Println("drop", i.ID)
	}
	// Output:
	// keep s5 of 2026-03-03 ""
	// keep s4 of 2026-03-02 ""
	// keep s1 of 2026-03-01 "released"
	// drop s3
	// drop s2
}

// The order of snapshot names is the order of their commits.
func ExampleParseName() {
	name := snapshot.Name(1204, "0199a3b2-5f10-7c31-9e42-6a1b2c3d4e5f")
	fmt.Println(name)
	seq, id, ok := snapshot.ParseName(name)
	fmt.Println(seq, id, ok)
	// Output:
	// 00000000000000001204-2c3d4e5f
	// 1204 2c3d4e5f true
}

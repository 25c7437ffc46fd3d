package listing

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/layout"
)

// BenchmarkFilter chooses among the rows of 1,000,000 sessions in a catalogue those with a value of their metadata, of
// which there are none, ten, and one in a hundred, of which a page of 50 is wanted. The floor reads the blocks alone.
func BenchmarkFilter(b *testing.B) {
	const sessions = 1_000_000
	rows := make([]row, sessions)
	for i := range rows {
		id := fmt.Sprintf("session-%09d", i)
		sum := checkpoint.Summary{
			ID: id, Title: "Tides of the harbour", Cwd: "/home/user/src/harbour", Preview: "When is high water?",
			Meta: map[string]string{"user": fmt.Sprint("u", i%100_000), "team": fmt.Sprint("t", i%100)},
			Head: checkpoint.Head{Seq: 1, Epoch: 1, Commit: "0123456789abcdef", Entry: "fedcba98", Branch: "main"},
		}
		seen := stamp{size: 900, time: int64(i), version: "v1"}
		rows[i] = row{layout.Escape(id), known{checkpoint: seen, at: int64(sessions - i), sum: encodeSum(&sum, true)}}
	}
	blocks, at := cut(rows, blockRows), folder{b.TempDir()}
	for i := range blocks {
		if _, err := at.put(b.Context(), blockPrefix+blocks[i].name, blocks[i].p, "", false); err != nil {
			b.Fatal(err)
		}
		blocks[i].p, blocks[i].rows = nil, nil
	}
	b.Run("floor", func(b *testing.B) {
		for b.Loop() {
			for _, made := range blocks {
				if _, _, err := at.get(b.Context(), blockPrefix+made.name); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	for name, meta := range map[string]map[string]string{
		"found=0": {"user": "none"}, "found=10": {"user": "u777"}, "page=50": {"team": "t7"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				l := lister{b: memory.NewAppender(), o: Options{Meta: meta}, now: time.UnixMilli(sessions)}
				l.hints = l.o.hints()
				s := &source{at: at, ahead: 1, masked: map[string]bool{}, taken: map[string]bool{}}
				for _, made := range blocks {
					s.blocks = append(s.blocks, made.block)
				}
				found, err := s.take(context.Background(), &l, 50)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(len(found)), "found")
			}
		})
	}
}

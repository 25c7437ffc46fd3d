package listing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/layout"
)

// dated is a store that appends, whose objects were written at given times.
type dated struct {
	backend.Appender
	times map[string]time.Time
}

func (b dated) List(ctx context.Context, o backend.ListOptions) iter.Seq2[backend.Info, error] {
	return func(yield func(backend.Info, error) bool) {
		for info, err := range b.Appender.List(ctx, o) {
			if info.ModTime = b.times[info.Key]; !yield(info, err) {
				return
			}
		}
	}
}

// On a store that appends, a session is read from its log iff that does not end where the checkpoint does: it has
// more bytes or another segment, or the checkpoint has no end of the log. It is listed by its log, and read as early
// as the log was written.
func TestLogsAheadOfCheckpoints(t *testing.T) {
	b := dated{memory.NewAppender(), map[string]time.Time{}}
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	put := func(key string, p []byte, at time.Time) {
		t.Helper()
		if _, err := b.Put(t.Context(), key, p, backend.Cond{}); err != nil {
			t.Fatal(err)
		}
		b.times[key] = at
	}
	first := layout.Segment{Rnd: layout.FirstRandom}
	second := layout.Segment{First: 9, Epoch: 1, Rnd: "00000000000000aa"}
	checkpointed := func(id string, at time.Time, name string, bytes int64) {
		o := &checkpoint.Object{HeadOrd: -1, Document: []byte("{}")}
		o.Summary = checkpoint.Summary{ID: id, Updated: at, LogName: name, LogBytes: bytes, Title: "stored"}
		p, err := o.Encode()
		if err != nil {
			t.Fatal(err)
		}
		put(layout.CheckpointKey(id), p, at)
	}
	ago := func(minutes int) time.Time { return noon.Add(-time.Duration(minutes) * time.Minute) }

	checkpointed("clean", ago(1), first.Name(), 3)
	put(first.PlainKey("clean"), []byte("abc"), ago(1))
	checkpointed("rolled", ago(2), second.Name(), 4)
	put(first.SealedKey("rolled"), []byte("x"), ago(2))
	put(second.PlainKey("rolled"), []byte("abcd"), ago(2))
	checkpointed("grown", ago(90), first.Name(), 3)
	put(first.PlainKey("grown"), []byte("abcdef"), ago(0))
	checkpointed("next", ago(80), first.Name(), 3) // of the same size, but the log went on
	put(first.PlainKey("next"), []byte("abc"), ago(3))
	put(second.PlainKey("next"), []byte("abc"), ago(80))
	checkpointed("sealed", ago(70), first.Name(), 3) // as is what was active
	put(first.SealedKey("sealed"), []byte("abc"), ago(4))
	checkpointed("older", ago(5), "", 0) // as earlier releases wrote it
	put(first.PlainKey("older"), []byte("abc"), ago(5))
	checkpointed("broken", ago(6), first.Name(), 3)
	put(first.PlainKey("broken"), []byte("abcdef"), ago(6))
	checkpointed("gone", ago(7), first.Name(), 3)
	put(first.PlainKey("gone"), []byte("abcdef"), ago(7))
	put(first.PlainKey("lost"), []byte("abc"), ago(8))

	var mu sync.Mutex
	var read []string
	rebuild := func(_ context.Context, id string) (checkpoint.Summary, error) {
		mu.Lock()
		defer mu.Unlock()
		read = append(read, id)
		switch id {
		case "broken":
			return checkpoint.Summary{}, errors.New("damaged")
		case "gone":
			return checkpoint.Summary{}, fs.ErrNotExist
		}
		at := b.times[first.PlainKey(id)]
		if id == "sealed" {
			at = b.times[first.SealedKey(id)]
		}
		return checkpoint.Summary{ID: id, Updated: at, Title: "live"}, nil
	}
	var got []string
	for sum, err := range uncached.Sessions(t.Context(), b, Options{}, today, rebuild) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.TrimSuffix(sum.ID+" "+sum.Title, " "))
		if sum.LogName != "" {
			t.Errorf("%s says where its log ended", sum.ID)
		}
	}
	want := []string{"grown live", "clean stored", "rolled stored", "next live", "sealed live", "older live", "broken", "lost live"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	slices.Sort(read)
	if want := "broken gone grown lost next older sealed"; strings.Join(read, " ") != want {
		t.Errorf("read %v, want %s", read, want)
	}

	read = nil
	for sum, err := range uncached.Sessions(t.Context(), b, Options{Limit: 1}, today, rebuild) {
		if err != nil || sum.ID != "grown" {
			t.Errorf("the newest is %s, %v", sum.ID, err)
		}
	}
	if fmt.Sprint(read) != "[grown]" {
		t.Errorf("for the newest one %v were read", read)
	}
}

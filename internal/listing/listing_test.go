package listing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/layout"
)

// seconds is a store whose listing tells times to the second, as S3's does.
type seconds struct{ backend.Backend }

func (s seconds) List(ctx context.Context, o backend.ListOptions) iter.Seq2[backend.Info, error] {
	return func(yield func(backend.Info, error) bool) {
		for info, err := range s.Backend.List(ctx, o) {
			info.ModTime = time.Unix(1000+int64(len(info.Key)%2), 0)
			if !yield(info, err) {
				return
			}
		}
	}
}

// The order within one second is that of the commits, and pages of any size agree on it.
func TestOrderWithinASecond(t *testing.T) {
	b := seconds{memory.New()}
	var want []string
	for i := range 60 {
		id := fmt.Sprintf("s%02d", (i*37)%60)
		if i%3 == 0 {
			id += "x" // another second
		}
		o := &checkpoint.Object{HeadOrd: -1, Document: []byte("{}")}
		o.Summary = checkpoint.Summary{ID: id, Updated: time.UnixMilli(int64(i))}
		p, err := o.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Put(t.Context(), layout.CheckpointKey(id), p, backend.Cond{}); err != nil {
			t.Fatal(err)
		}
		want = append([]string{id}, want...)
	}
	var later, earlier []string
	for _, id := range want {
		if len(layout.CheckpointKey(id))%2 == 1 {
			later = append(later, id)
		} else {
			earlier = append(earlier, id)
		}
	}
	all := strings.Join(append(later, earlier...), " ")
	for _, limit := range []int{0, 1, 7, 16, 59, 60, 61} {
		var got []string
		for after := ""; len(got) < 60; after = got[len(got)-1] {
			n := len(got)
			for sum, err := range Sessions(t.Context(), b, Options{Limit: limit, After: after}) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, sum.ID)
			}
			if len(got) == n {
				break
			}
		}
		if strings.Join(got, " ") != all {
			t.Errorf("pages of %d: got %v, want %s", limit, got, all)
		}
	}
	for _, err := range Sessions(t.Context(), b, Options{After: "nosuch"}) {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v", err)
		}
	}
}

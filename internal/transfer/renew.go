package transfer

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
)

// Renew records size and time of the imported file of a session, in a commit without entries. A session whose newest
// commit is not an import's is unchanged: a writer may have it open, and its next commit would conflict.
func Renew(ctx context.Context, cfg journal.Config, size int64, changed time.Time) (err error) {
	j, err := journal.Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close(context.WithoutCancel(ctx))) }()
	st := j.State()
	if st.Source == nil || st.Source.Bytes == 0 {
		return nil
	}
	for c, err := range j.Log(ctx, st, st.Summary.Seq) {
		if err != nil || !slices.Contains(importReasons, c.Reason) {
			return err
		}
		if c.Reason == state.ReasonImport {
			break
		}
	}
	now := *st.Source
	now.Size, now.Changed = size, changed
	_, err = j.Commit(ctx, &journal.Step{Reason: state.ReasonImport, Time: st.Summary.Updated, Source: &now})
	return err
}

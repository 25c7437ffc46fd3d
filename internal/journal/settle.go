package journal

import (
	"context"
)

// Settle brings a session that was written in bulk to the shape in which a long life would have left it:
// everything sealed, the references folded into one, and a lineage that begins here, so that what a resume
// reads does not depend on how much was imported. It commits nothing that a reader sees.
func (j *Journal) Settle(ctx context.Context) error {
	st := j.State()
	refs := 0
	if len(st.Segments.Levels) > 0 {
		refs = len(st.Segments.Levels[0])
	}
	small := st.TailBytes < j.cfg.Limits.SealBytes && len(st.Tail) < j.cfg.Limits.SealEntries
	if len(st.Plain) == 0 && small && refs == 0 {
		return nil
	}
	s, ok := j.strategy.(settler)
	if !ok {
		_, err := j.Commit(ctx, Settling())
		return err
	}
	if err := j.takeLead(ctx); err != nil {
		return err
	}
	defer j.dropLead()
	return s.Settle(ctx)
}

// settler is a strategy that settles without a commit of the handle's, which leads meanwhile.
type settler interface {
	Settle(ctx context.Context) error
}

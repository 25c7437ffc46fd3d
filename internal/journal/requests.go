package journal

import (
	"context"
	"slices"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal/state"
)

// Result is what an acknowledged step became.
type Result struct {
	Commit   checkpoint.Commit
	State    *state.State // the state right after the step's batch
	Kept     string       // branch on which a losing turn lives now
	Bytes    int          // size of the checkpoint object or of the append that carried it
	Warnings []string     // soft limits passed, torn bytes moved aside
	Repeated bool         // the idempotency key was known: nothing was done
}

type request struct {
	step   *Step
	ctx    context.Context   //nolint:containedctx // a queued call: its leader publishes under the contexts of all
	rec    checkpoint.Record // as composed for the last attempt
	after  *state.State      // the state after that record
	doubts []attempted       // attempts of which it is not known what became of them
	result Result
	err    error
	done   chan struct{} // closed when result and err stand
	lead   chan struct{} // told to publish what is queued
}

// attempted is a request as it was composed for one attempt.
type attempted struct {
	rec    checkpoint.Record
	after  *state.State
	result Result
}

// inDoubt remembers that nobody knows what became of the last attempt of each.
func inDoubt(reqs []*request) {
	for _, r := range reqs {
		if r.rec.ID != "" {
			r.doubts = append(r.doubts, attempted{r.rec, r.after, r.result})
		}
	}
}

// inQuestion tells whether an attempt of any of them may still come to be.
func inQuestion(reqs []*request) bool {
	return slices.ContainsFunc(reqs, func(r *request) bool { return len(r.doubts) > 0 })
}

// queued tells the caller that the step stands in line.
func queued(s *Step) {
	if s.Queued != nil {
		s.Queued()
	}
}

// note remembers what the request's commit became.
func (r *request) note(c *Composer) {
	r.rec, r.after = *c.Record, c.Next
	r.result = Result{Commit: c.Record.Commit(), Kept: c.Record.Kept}
}

// draft is a batch and the requests whose steps it holds.
type draft struct {
	*Composer
	reqs []*request
}

// compose begins a batch on base; fresh: it takes the next epoch.
func (j *Journal) compose(base *state.State, fresh bool) *draft {
	return &draft{Composer: NewComposer(&j.cfg, base, fresh)}
}

// addAll composes the requests and returns those that are left: one whose idempotency key is known is
// settled with the receipt of then, one that cannot be composed with its error.
func (d *draft) addAll(session string, reqs []*request, from, base *state.State) []*request {
	kept := base != from && lostTo(from, base) != nil
	left := reqs[:0:0]
	for _, r := range reqs {
		if known, ok := d.Next.Known(r.step.Key); ok {
			r.result, r.err = Result{Commit: known, State: base, Repeated: true, Kept: known.Kept}, nil
			continue
		}
		var err error
		if kept {
			err = d.AddKept(r.step, from)
		} else {
			err = d.Add(r.step)
		}
		if err != nil {
			r.err = &backend.Error{Op: "commit", Key: session, Outcome: backend.NotApplied, Err: err}
			continue
		}
		r.note(d.Composer)
		d.reqs, left = append(d.reqs, r), append(left, r)
	}
	if kept && len(left) > 0 {
		if err := d.Back(base); err != nil {
			failAll(left, &backend.Error{Op: "commit", Key: session, Outcome: backend.NotApplied, Err: err})
			d.reqs, left = nil, nil
		}
	}
	return left
}

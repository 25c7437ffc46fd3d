// Timetravel restores an earlier state, and returns to the later one: nothing is lost.
//
//	go run ./examples/timetravel
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/snapshot"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

type state struct {
	Step int `json:"step"`
}

func run(ctx context.Context, out io.Writer) error {
	store, err := coppice.New(memory.New(), nil)
	if err != nil {
		return err
	}
	s, err := store.Create("", nil)
	if err != nil {
		return err
	}
	for i := 1; i <= 4; i++ {
		if _, err := s.Append(ctx, entry.User(fmt.Sprintf("step %d", i)), entry.Assistant("done")); err != nil {
			return err
		}
		if _, err := s.Commit(ctx, coppice.Turn{State: state{i}}); err != nil {
			return err
		}
		if i == 2 { // the tests pass: a state to return to
			if _, err := s.Snapshot(ctx, "green"); err != nil {
				return err
			}
		}
	}
	now, err := s.At(ctx, coppice.Target{}) // no request
	if err != nil {
		return err
	}
	then, err := s.At(ctx, coppice.Target{Tag: "green"}) // nothing moves
	if err != nil {
		return err
	}
	d, err := then.Diff(ctx, now)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "since green: %d entries, state %s\n", len(d.OnlyB), d.State)

	r, err := s.Rollback(ctx, coppice.Target{Tag: "green"}) // one commit
	if err != nil {
		return err
	}
	if err := show(out, "rolled back", s); err != nil {
		return err
	}
	if _, err := s.Switch(ctx, r.Kept); err != nil { // and back again
		return err
	}
	if err := show(out, "back again", s); err != nil {
		return err
	}
	side, err := s.Fork(ctx, coppice.Target{Seq: 1}, "", nil)
	if err != nil {
		return err
	}
	if err := show(out, "a fork", side); err != nil {
		return err
	}
	for c, err := range s.Log(ctx, coppice.Target{}) {
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%d %s on %s\n", c.Seq, c.Reason, c.Branch)
	}
	gone, err := s.Prune(ctx, snapshot.Retention{Last: 1, DryRun: true})
	fmt.Fprintf(out, "prune would drop %d snapshots\n", len(gone))
	return errors.Join(err, side.Close(), s.Close())
}

func show(out io.Writer, what string, s *coppice.Session) error {
	var st state
	err := s.State(&st)
	fmt.Fprintf(out, "%s: step %d on %s\n", what, st.Step, s.Head().Branch)
	return err
}

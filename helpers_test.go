package coppice_test

import (
	"context"
	"iter"
	"testing"

	"github.com/coppice-go/coppice/internal/sessiontest"
	"github.com/coppice-go/coppice/internal/testutil"
)

// What package sessiontest has, by the names that these tests use.
var (
	bg = context.Background()

	clockAt   = sessiontest.ClockAt
	newStore  = sessiontest.NewStore
	ok        = testutil.OK
	exported  = sessiontest.Exported
	create    = sessiontest.Create
	open      = sessiontest.Open
	say       = sessiontest.Say
	commit    = sessiontest.Commit
	texts     = sessiontest.Texts
	stateOf   = sessiontest.StateOf
	same      = sessiontest.Same
	itemOf    = sessiontest.Inline
	itemFor   = sessiontest.Item
	inline    = sessiontest.RunInline
	objects   = sessiontest.Objects
	fileLines = sessiontest.FileLines
	known     = sessiontest.Known
)

type state = sessiontest.State

func must[T any](v T, err error) func(t testing.TB) T { return testutil.Must(v, err) }

func collect[T any](t testing.TB, seq iter.Seq2[T, error]) []T {
	t.Helper()
	return sessiontest.Collect(t, seq)
}

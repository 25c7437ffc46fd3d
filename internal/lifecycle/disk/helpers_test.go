package disk_test

import (
	"context"
	"iter"
	"testing"

	"github.com/coppice-go/coppice/internal/sessiontest"
)

// What package sessiontest has, by the names that these tests use.
var (
	bg = context.Background()

	clockAt  = sessiontest.ClockAt
	backends = sessiontest.Backends
	newStore = sessiontest.NewStore
	ok       = sessiontest.OK
	create   = sessiontest.Create
	open     = sessiontest.Open
	say      = sessiontest.Say
	commit   = sessiontest.Commit
	texts    = sessiontest.Texts
	stateOf  = sessiontest.StateOf
	same     = sessiontest.Same
	setSleep = sessiontest.SetSleep
	objects  = sessiontest.Objects
	bulk     = sessiontest.Bulk
	image    = sessiontest.Image
	keysIn   = sessiontest.KeysIn
	putIn    = sessiontest.PutIn
	sound    = sessiontest.Sound
)

type state = sessiontest.State

func must[T any](v T, err error) func(t testing.TB) T { return sessiontest.Must(v, err) }

func collect[T any](t testing.TB, seq iter.Seq2[T, error]) []T {
	t.Helper()
	return sessiontest.Collect(t, seq)
}

package reading_test

import (
	"context"
	"iter"
	"testing"

	"github.com/coppice-go/coppice/internal/sessiontest"
	"github.com/coppice-go/coppice/internal/testutil"
)

// The helpers of package sessiontest, by the names that these tests use.
var (
	bg = context.Background()

	clock      = sessiontest.Clock
	backends   = sessiontest.Backends
	onEach     = sessiontest.OnEach
	newStore   = sessiontest.NewStore
	ok         = testutil.OK
	create     = sessiontest.Create
	open       = sessiontest.Open
	say        = sessiontest.Say
	commit     = sessiontest.Commit
	texts      = sessiontest.Texts
	stateOf    = sessiontest.StateOf
	same       = sessiontest.Same
	itemOf     = sessiontest.Inline
	itemFor    = sessiontest.Item
	setSleep   = sessiontest.SetSleep
	bulk       = sessiontest.Bulk
	image      = sessiontest.Image
	keysIn     = sessiontest.KeysIn
	putIn      = sessiontest.PutIn
	sound      = sessiontest.Sound
	cost       = sessiontest.Cost
	piLine     = sessiontest.PiLine
	grown      = sessiontest.Grown
	known      = sessiontest.Known
	importFile = sessiontest.ImportFile
)

const (
	header    = sessiontest.Header
	latestKey = sessiontest.LatestKey
)

type state = sessiontest.State

func must[T any](v T, err error) func(t testing.TB) T { return testutil.Must(v, err) }

func collect[T any](t testing.TB, seq iter.Seq2[T, error]) []T {
	t.Helper()
	return sessiontest.Collect(t, seq)
}

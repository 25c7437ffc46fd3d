package lifecycle_test

import (
	"context"
	"iter"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/sessiontest"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/snapshot"
)

// The helpers of package sessiontest, by the names that these tests use.
var (
	bg = context.Background()

	clock        = sessiontest.Clock
	clockAt      = sessiontest.ClockAt
	fixedOptions = sessiontest.Options
	backends     = sessiontest.Backends
	onEach       = sessiontest.OnEach
	newStore     = sessiontest.NewStore
	ok           = testutil.OK
	setInfo      = sessiontest.SetInfo
	known        = sessiontest.Known
	create       = sessiontest.Create
	open         = sessiontest.Open
	say          = sessiontest.Say
	commit       = sessiontest.Commit
	texts        = sessiontest.Texts
	stateOf      = sessiontest.StateOf
	same         = sessiontest.Same
	ids          = sessiontest.IDs
	itemOf       = sessiontest.Inline
	itemFor      = sessiontest.Item
	setSleep     = sessiontest.SetSleep
	inline       = sessiontest.RunInline
	everything   = sessiontest.Everything
	history      = sessiontest.History
	isErr        = sessiontest.IsErr
	line         = sessiontest.Line
	objects      = sessiontest.Objects
	bulk         = sessiontest.Bulk
	image        = sessiontest.Image
	keysIn       = sessiontest.KeysIn
	putIn        = sessiontest.PutIn
	sound        = sessiontest.Sound
	faulty       = sessiontest.Faulty
	writes       = sessiontest.Writes
	cost         = sessiontest.Cost
	fileLines    = sessiontest.FileLines
	grown        = sessiontest.Grown
	fileOf       = sessiontest.FileOf
	inMemory     = sessiontest.InMemory
	drafts       = sessiontest.Drafts
	onBase       = sessiontest.OnBase
)

var noSnapshots = &coppice.SessionOptions{Snapshots: snapshot.Policy{Every: -1}}

type state = sessiontest.State

func must[T any](v T, err error) func(t testing.TB) T { return testutil.Must(v, err) }

func collect[T any](t testing.TB, seq iter.Seq2[T, error]) []T {
	t.Helper()
	return sessiontest.Collect(t, seq)
}

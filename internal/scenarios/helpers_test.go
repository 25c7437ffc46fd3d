package scenarios_test

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

	backends      = sessiontest.Backends
	onEach        = sessiontest.OnEach
	newStore      = sessiontest.NewStore
	ok            = testutil.OK
	create        = sessiontest.Create
	open          = sessiontest.Open
	say           = sessiontest.Say
	commit        = sessiontest.Commit
	texts         = sessiontest.Texts
	stateOf       = sessiontest.StateOf
	same          = sessiontest.Same
	itemFor       = sessiontest.Item
	inline        = sessiontest.RunInline
	cost          = sessiontest.Cost
	grown         = sessiontest.Grown
	appends       = sessiontest.Appends
	isErr         = sessiontest.IsErr
	objects       = sessiontest.Objects
	onEachBackend = sessiontest.OnEachBackend
	onBase        = sessiontest.OnBase
	clock         = sessiontest.Clock
	itemOf        = sessiontest.Inline
	setSleep      = sessiontest.SetSleep
	bulk          = sessiontest.Bulk
	image         = sessiontest.Image
	keysIn        = sessiontest.KeysIn
	putIn         = sessiontest.PutIn
	sound         = sessiontest.Sound
	piLine        = sessiontest.PiLine
	known         = sessiontest.Known
	importFile    = sessiontest.ImportFile
	fixedOptions  = sessiontest.Options
	exported      = sessiontest.Exported
	history       = sessiontest.History
	fileLines     = sessiontest.FileLines
	fileOf        = sessiontest.FileOf
	inMemory      = sessiontest.InMemory
	drafts        = sessiontest.Drafts
	setInfo       = sessiontest.SetInfo
	ids           = sessiontest.IDs
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

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

	clock         = sessiontest.Clock
	fixedOptions  = sessiontest.Options
	backends      = sessiontest.Backends
	onEach        = sessiontest.OnEach
	newStore      = sessiontest.NewStore
	ok            = testutil.OK
	exported      = sessiontest.Exported
	cost          = sessiontest.Cost
	keysIn        = sessiontest.KeysIn
	create        = sessiontest.Create
	open          = sessiontest.Open
	say           = sessiontest.Say
	commit        = sessiontest.Commit
	texts         = sessiontest.Texts
	stateOf       = sessiontest.StateOf
	same          = sessiontest.Same
	itemOf        = sessiontest.Inline
	itemFor       = sessiontest.Item
	setSleep      = sessiontest.SetSleep
	inline        = sessiontest.RunInline
	appends       = sessiontest.Appends
	history       = sessiontest.History
	objects       = sessiontest.Objects
	onEachBackend = sessiontest.OnEachBackend
	fileLines     = sessiontest.FileLines
	piLine        = sessiontest.PiLine
	grown         = sessiontest.Grown
	fileOf        = sessiontest.FileOf
	inMemory      = sessiontest.InMemory
	drafts        = sessiontest.Drafts
	setInfo       = sessiontest.SetInfo
	importFile    = sessiontest.ImportFile
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

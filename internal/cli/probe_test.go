package cli

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/backend/memory"
)

func TestGoodStoresPass(t *testing.T) {
	disk, err := local.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]backend.Backend{"memory": memory.New(), "appender": memory.NewAppender(), "local": disk} {
		checks, err := probeStore(t.Context(), backend.WithPrefix(b, "scratch"), clock)
		if err != nil {
			t.Fatal(err)
		}
		if !allPassed(checks) {
			t.Errorf("%s: %+v", name, checks)
		}
		for info, err := range b.List(t.Context(), backend.ListOptions{}) {
			t.Errorf("%s: %s is left, %v", name, info.Key, err)
		}
	}
}

// forgetful acknowledges and stores nothing.
type forgetful struct{ backend.Backend }

func (f forgetful) Put(context.Context, string, []byte, backend.Cond) (backend.Info, error) {
	return backend.Info{Version: "1"}, nil
}

func TestBadStoresAreFoundOut(t *testing.T) {
	for name, tt := range map[string]struct {
		b    backend.Backend
		want []string
	}{
		"careless":  {careless{memory.New()}, []string{"stale", "create", "replace"}},
		"forgetful": {forgetful{memory.New()}, []string{"read back", "ranges", "listing"}},
	} {
		checks, err := probeStore(t.Context(), tt.b, clock)
		if err != nil {
			t.Fatal(err)
		}
		if allPassed(checks) {
			t.Errorf("%s passes", name)
		}
		for _, want := range tt.want {
			i := slices.IndexFunc(checks, func(c probeCheck) bool { return strings.Contains(c.Name, want) })
			if i < 0 || checks[i].OK || checks[i].Detail == "" {
				t.Errorf("%s: the check %q did not find it: %+v", name, want, checks)
			}
		}
	}
}

// What cannot be taken away is an error of the run.
func TestLeftoversAreReported(t *testing.T) {
	b := stuck{memory.New()}
	if _, err := probeStore(t.Context(), b, clock); err == nil {
		t.Error("no error")
	}
}

type stuck struct{ backend.Backend }

func (s stuck) Delete(_ context.Context, key string) error {
	return &backend.Error{Op: "delete", Key: key, Err: backend.ErrBusy}
}

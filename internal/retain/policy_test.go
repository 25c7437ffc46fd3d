package retain_test

import (
	"context"
	"errors"
	"flag"
	"reflect"
	"strings"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/retain"
	"github.com/coppice-go/coppice/internal/sessiontest"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/snapshot"
)

var update = flag.Bool("update", false, "write the golden file")

// The stored form is that of the golden file, and is read again.
func TestPolicyGolden(t *testing.T) {
	var all []byte
	policies := []retain.Policy{
		{},
		{KeepWithin: 30 * day},
		{KeepLast: 3, GroupBy: "team"},
		{KeepWithin: time.Second, KeepLast: 1, MaxBytes: 1 << 40},
		{Snapshots: snapshot.Retention{Last: -1}},
		{KeepLast: 1, Snapshots: snapshot.Retention{Last: 3, Daily: 7, Weekly: 4, Tags: []string{"release", "*"}}},
	}
	for _, p := range policies {
		all = append(all, testutil.Must(p.Encode())(t)...)
	}
	golden := testutil.Golden(t, *update, "testdata/policy.golden", all)
	lines := strings.SplitAfter(string(golden), "\n")
	for i, p := range policies {
		if got, err := retain.Decode([]byte(lines[i])); err != nil || !reflect.DeepEqual(got, p) {
			t.Errorf("%s: %+v, %v", lines[i], got, err)
		}
	}
}

// A policy that is not understood to its last field is refused: it may keep what would be removed.
func TestDecodeRefuses(t *testing.T) {
	for _, text := range []string{
		"", "x", "null", "{}", `{"version":0}`, `{"version":2}`, `{"version":1,"keepTag":"x"}`, `{"version":1} {}`,
		`{"version":1,"keepWithin":-1}`, `{"version":1,"keepWithin":9223372037}`, `{"version":1,"keepLast":-1}`,
		`{"version":1,"keepLast":2000000000}`, `{"version":1,"maxBytes":-1}`, `{"version":1,"groupBy":"x"}`,
		`{"version":1,"keepLast":1,"groupBy":"a b"}`, `{"version":1,"keepLast":1.5}`,
		`{"version":1,"snapshots":{}}`, `{"version":1,"snapshots":{"keepLast":-2}}`,
		`{"version":1,"snapshots":{"keepTags":[""]}}`, `{"version":1,"snapshots":{"keepLast":1,"keepYearly":1}}`,
		`{"version":1}` + strings.Repeat(" ", 1<<12),
	} {
		if p, err := retain.Decode([]byte(text)); err == nil {
			t.Errorf("%.60q is %+v", text, p)
		}
	}
	for _, p := range []retain.Policy{
		{KeepWithin: time.Millisecond},
		{KeepWithin: -day},
		{KeepLast: -1},
		{MaxBytes: -1},
		{GroupBy: "x"},
		{Snapshots: snapshot.Retention{Daily: -2}},
		{Snapshots: snapshot.Retention{Tags: make([]string, 65)}},
	} {
		if raw, err := p.Encode(); err == nil {
			t.Errorf("%+v is stored as %s", p, raw)
		}
	}
}

// between stores another policy after each read of one.
type between struct {
	backend.Backend
	on bool
}

func (b *between) Get(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	raw, info, err := b.Backend.Get(ctx, key, r)
	if b.on {
		_, perr := b.Put(ctx, key, []byte(`{"version":1,"keepLast":9}`), backend.Cond{})
		err = errors.Join(err, perr)
	}
	return raw, info, err
}

func TestLoadAndSave(t *testing.T) {
	ctx := t.Context()
	b := &between{Backend: memory.New()}
	st := sessiontest.NewStore(t, b, nil)
	put := func(text string) {
		t.Helper()
		if _, err := b.Put(ctx, layout.RetentionKey, []byte(text), backend.Cond{}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(want retain.Policy) {
		t.Helper()
		if p, err := retain.Load(ctx, st); err != nil || !reflect.DeepEqual(p, want) {
			t.Fatalf("%+v, %v", p, err)
		}
	}
	want(retain.Policy{})
	p := retain.Policy{KeepWithin: day, MaxBytes: 7}
	testutil.OK(t, retain.Save(ctx, st, p))
	want(p)
	testutil.OK(t, retain.Save(ctx, st, retain.Policy{}))
	want(retain.Policy{})

	put("damaged")
	if _, err := retain.Load(ctx, st); !errors.Is(err, coppice.ErrCorrupt) {
		t.Fatalf("a damaged policy: %v", err)
	}
	testutil.OK(t, retain.Save(ctx, st, p))
	want(p)
	b.on = true
	if err := retain.Save(ctx, st, p); !errors.Is(err, coppice.ErrConflict) {
		t.Fatalf("beside another writer: %v", err)
	}
	b.on = false
	want(retain.Policy{KeepLast: 9})

	put(`{"version":2}`)
	if err := retain.Save(ctx, st, p); err == nil {
		t.Fatal("the policy of a later release was replaced")
	}
}

package backend_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/backendtest"
	"github.com/coppice-go/coppice/backend/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPrefixContract(t *testing.T) {
	backendtest.Run(t, backendtest.Harness{
		Short: testing.Short(), // the full size runs on the inner backend
		New: func(t *testing.T) backend.Backend {
			m := memory.New()
			plant(t, m)
			return backend.WithPrefix(backend.WithPrefix(m, "tenants/t1/"), "stores")
		},
	})
}

func TestPrefixAppenderContract(t *testing.T) {
	under := map[backend.Backend]*memory.Appender{}
	wrap := func(m *memory.Appender) backend.Backend {
		b := backend.WithPrefix(m, "p")
		under[b] = m
		return b
	}
	backendtest.Run(t, backendtest.Harness{
		Short: testing.Short(), // the full size runs on the inner backend
		New: func(t *testing.T) backend.Backend {
			m := memory.NewAppender()
			plant(t, m)
			return wrap(m)
		},
		Reopen: func(_ *testing.T, b backend.Backend) backend.Backend { return wrap(under[b].Share()) },
	})
}

// plant puts objects where a view must never see them.
func plant(t *testing.T, b backend.Backend) {
	t.Helper()
	for _, key := range []string{"a", "o/x", "p-/x", "p.x", "p0", "tenants/t1/a", "tenants/t1/stores-x", "tenants/t10/a", "z"} {
		if _, err := b.Put(t.Context(), key, []byte("foreign"), backend.Cond{}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPrefixIsAppenderIffInnerIs(t *testing.T) {
	if _, ok := backend.WithPrefix(memory.New(), "p").(backend.Appender); ok {
		t.Error("an Appender over a backend that is none")
	}
	nested := backend.WithPrefix(backend.WithPrefix(memory.NewAppender(), "p"), "q")
	if _, ok := nested.(backend.Appender); !ok {
		t.Error("no Appender over one")
	}
}

func TestPrefixForms(t *testing.T) {
	for _, c := range []struct{ outer, inner, want string }{
		{"", "", "key"},
		{"a", "", "a/key"},
		{"a/", "", "a/key"},
		{"", "a/b", "a/b/key"},
		{"a", "b", "a/b/key"},
		{"a/", "a/", "a/a/key"},
		{"a/b/", "c", "a/b/c/key"},
	} {
		m := memory.New()
		v := backend.WithPrefix(backend.WithPrefix(m, c.outer), c.inner)
		info, err := v.Put(t.Context(), "key", []byte("x"), backend.Cond{})
		if err != nil || info.Key != "key" {
			t.Errorf("put through %q, %q: %+v, %v", c.outer, c.inner, info, err)
		}
		if got := keysOf(t, m); !slices.Equal(got, []string{c.want}) {
			t.Errorf("put through %q, %q made %q, want %q", c.outer, c.inner, got, c.want)
		}
	}
}

func keysOf(t *testing.T, b backend.Backend) (keys []string) {
	t.Helper()
	for info, err := range b.List(t.Context(), backend.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

func TestPrefixThatIsNoKey(t *testing.T) {
	for _, prefix := range []string{"/", "..", "../x", "a/../b", "/a", "a//", ".a", "a b", strings.Repeat("x", 256)} {
		m := memory.New()
		plant(t, m)
		v := backend.WithPrefix(m, prefix)
		_, err := v.Put(t.Context(), "key", nil, backend.Cond{})
		if !errors.Is(err, backend.ErrKey) || backend.OutcomeOf(err) != backend.NotApplied {
			t.Errorf("put below %q: %v", prefix, err)
		}
		listed := error(nil)
		for _, err := range v.List(t.Context(), backend.ListOptions{}) {
			listed = err
		}
		if !errors.Is(listed, backend.ErrKey) {
			t.Errorf("list below %q: %v", prefix, listed)
		}
	}
}

func TestPrefixCloseLeavesTheBackendOpen(t *testing.T) {
	m := memory.New()
	v := backend.WithPrefix(m, "p")
	if _, err := v.Put(t.Context(), "key", []byte("x"), backend.Cond{}); err != nil {
		t.Fatal(err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Stat(t.Context(), "key"); !errors.Is(err, backend.ErrClosed) {
		t.Errorf("stat on a closed view: %v", err)
	}
	if _, err := m.Stat(t.Context(), "p/key"); err != nil {
		t.Errorf("stat below a closed view: %v", err)
	}
	if _, err := backend.WithPrefix(m, "p").Stat(t.Context(), "key"); err != nil {
		t.Errorf("stat through another view: %v", err)
	}
}

func TestPrefixTakesPartOfTheKeyLimit(t *testing.T) {
	v := backend.WithPrefix(memory.New(), strings.Repeat("p", 99))
	_, err := v.Put(t.Context(), strings.Repeat("ab/", 266)+"ab", nil, backend.Cond{}) // 100 + 800
	if err != nil {
		t.Error(err)
	}
	long := strings.Repeat("ab/", 266) + "abc"
	_, err = v.Put(t.Context(), long, nil, backend.Cond{})
	var e *backend.Error
	if !errors.Is(err, backend.ErrKey) || !errors.As(err, &e) || e.Key != long {
		t.Errorf("901 bytes with the prefix: %v", err)
	}
}

package manager_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/transcript"
)

var bg = context.Background()

// clock advances by a second with each call.
func clock() func() time.Time {
	return testutil.Clock(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), time.Second)
}

func storeOn(t testing.TB, b backend.Backend) *coppice.Store {
	t.Helper()
	s, err := coppice.New(b, &coppice.Options{Now: clock(), Rand: rand.NewChaCha8([32]byte{3}), Writer: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// begin returns a manager with a session of these texts, those that begin with a from an assistant, and ids by text.
func begin(t *testing.T, o *manager.Options, texts ...string) (*manager.Manager, map[string]string) {
	t.Helper()
	m := manager.New(storeOn(t, memory.New()), o)
	testutil.Must(m.Create(bg, "/w", ""))(t)
	return m, say(t, m, texts...)
}

func say(t *testing.T, m *manager.Manager, texts ...string) map[string]string {
	t.Helper()
	var drafts []transcript.Draft
	for _, text := range texts {
		if strings.HasPrefix(text, "a") {
			drafts = append(drafts, entry.Assistant(text))
		} else {
			drafts = append(drafts, entry.User(text))
		}
	}
	list := testutil.Must(m.Session().Append(bg, drafts...))(t)
	testutil.Must(m.Session().Commit(bg, coppice.Turn{State: map[string]int{"said": len(texts)}}))(t)
	ids := map[string]string{}
	for i, text := range texts {
		ids[text] = list[i]
	}
	return ids
}

// context is the model's context, by text.
func contextOf(t *testing.T, s *coppice.Session) string {
	t.Helper()
	var list []string
	for _, m := range testutil.Must(s.Context(bg))(t).Messages {
		text := m.Text()
		if i := strings.LastIndex(text, "<summary>\n"); i >= 0 {
			text = "[" + strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text[i+10:]), "</summary>")) + "]"
		}
		list = append(list, text)
	}
	return strings.Join(list, " ")
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// count returns the number of sessions in a store.
func count(t *testing.T, store *coppice.Store) (n int) {
	t.Helper()
	for _, err := range store.List(bg, coppice.ListOptions{}) {
		testutil.OK(t, err)
		n++
	}
	return n
}

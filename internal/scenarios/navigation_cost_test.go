package scenarios_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/sessiontest"
	"github.com/coppice-go/coppice/internal/testutil"
)

// The bytes that a move reads are the window at its target, however long the path to it is.
func TestMovesReadTheWindow(t *testing.T) {
	testutil.SkipLong(t)
	costs := map[int]backend.IO{}
	for _, n := range []int{4_500, 9_000} {
		store := newStore(t, backends["local"](t), nil)
		imported := sessiontest.ImportFile(t, store, randomFile(n))
		ok(t, imported.Close())
		s := must(store.Open(bg, imported.ID(), &coppice.SessionOptions{ContextBytes: 64 << 10}))(t)
		must(s.Tree(bg))(t)
		for _, move := range []func() (coppice.Receipt, error){
			func() (coppice.Receipt, error) { return s.Edit(bg, fmt.Sprintf("e%d", n-3), entry.User("edited")) },
			func() (coppice.Receipt, error) { return s.Switch(bg, fmt.Sprintf("e%d", n-1)) },
			func() (coppice.Receipt, error) { return s.Branch(bg, fmt.Sprintf("e%d", n-5), nil) },
		} {
			before := s.IO()
			must(move())(t)
			costs[n] = costs[n].Add(s.IO().Sub(before))
			c := must(s.Context(bg))(t)
			if c.Window.Complete || len(c.Messages)+c.Window.OmittedEntries < n-5 {
				t.Errorf("%d of %d messages, %d omitted", len(c.Messages), n, c.Window.OmittedEntries)
			}
		}
		ok(t, s.Close())
	}
	short, long := costs[4_500], costs[9_000]
	if long.BytesRead > short.BytesRead+1<<20 {
		t.Errorf("moves read %d bytes, and %d of a path twice as long", short.BytesRead, long.BytesRead)
	}
}

// randomFile returns a session file of a chain of messages of 1,000 letters that compress badly.
func randomFile(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	b.WriteString(`{"type":"session","version":3,"id":"long","timestamp":"2026-01-01T00:00:00Z","cwd":"/w"}` + "\n")
	parent := "null"
	for i := range n {
		text := make([]byte, 1000)
		for k := range text {
			text[k] = byte('a' + r.IntN(26))
		}
		role := [...]string{"user", "assistant"}[i%2]
		fmt.Fprintf(&b, `{"type":"message","id":"e%d","parentId":%s,"timestamp":"2026-01-01T00:00:00Z",`+
			`"message":{"role":%q,"content":[{"type":"text","text":%q}]}}`+"\n", i, parent, role, text)
		parent = fmt.Sprintf(`"e%d"`, i)
	}
	return []byte(b.String())
}

package lifecycle_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/testutil"
)

// A commit that changes one key of a state of over 1 MiB writes the change, on a store that appends, and neither the
// state nor a new segment. Each state can be restored.
func TestOneKeyOfAWideState(t *testing.T) {
	testutil.SkipLong(t)
	store := newStore(t, memory.NewAppender(), nil)
	s := create(t, store, "s", nil)
	wide := map[string]any{}
	for i := range 60_000 {
		wide[fmt.Sprintf("key-%06d", i)] = i
	}
	commit(t, s, wide)
	for turn := range 6 {
		wide["key-000700"] = fmt.Sprint("turn ", turn)
		if turn == 3 {
			delete(wide, "key-000701")
			wide["key-000701b"] = turn
		}
		r := must(s.Commit(bg, coppice.Turn{State: wide}))(t)
		if r.Bytes > 1<<10 {
			t.Errorf("turn %d writes %d bytes", turn, r.Bytes)
		}
	}
	ok(t, s.Close())
	back := open(t, store, "s")
	var now json.RawMessage
	ok(t, back.State(&now))
	same(t, "restored", string(now), string(must(json.Marshal(wide))(t)))
	v := must(back.At(bg, coppice.Target{Seq: 3}))(t)
	var then map[string]any
	ok(t, v.State(&then))
	same(t, "then", fmt.Sprintln(then["key-000700"], then["key-000701"], len(then)), "turn 1 701 60000\n")
	ok(t, back.Close())
}

package lifecycle_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
)

// beforeCut runs a function before the first Cut that reaches the store.
type beforeCut struct {
	backend.Appender
	run func()
}

func (b *beforeCut) Cut(ctx context.Context, key string, off int64, torn []byte) error {
	if run := b.run; run != nil {
		b.run = nil
		run()
	}
	return b.Appender.Cut(ctx, key, off, torn)
}

// Two writers find the same torn tail. One is about to cut it when the other cuts it and commits exactly as many bytes
// as were torn: that commit stays (I1).
func TestTwoWritersMendOneTail(t *testing.T) {
	for _, kind := range []string{"append", "local"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			length := mendTogether(t, backends[kind](t), 100) // any length: the first run measures the commit
			same(t, "length of the commit", mendTogether(t, backends[kind](t), length), length)
		})
	}
}

// mendTogether runs the race with a tail of torn bytes, and returns the length of the commit in between.
func mendTogether(t *testing.T, b backend.Backend, torn int) int {
	t.Helper()
	log := func() (key, text string) {
		t.Helper()
		for key, text := range objects(t, b) {
			if strings.HasSuffix(key, ".jsonl") {
				return key, text
			}
		}
		t.Fatal("no log")
		return "", ""
	}
	first, _ := grown(t, newStore(t, b, nil), "s", 1, nil)
	ok(t, first.Close())
	key, whole := log()
	a := b.(backend.Appender)
	must(a.Append(bg, key, int64(len(whole)), bytes.Repeat([]byte("x"), torn)))(t)

	slow := &beforeCut{Appender: a}
	loser := open(t, newStore(t, slow, nil), "s")
	var acked coppice.Receipt
	added := 0
	slow.run = func() {
		winner := open(t, newStore(t, b, nil), "s")
		say(t, winner, "u2")
		acked = commit(t, winner, state{Turns: 2})
		_, now := log()
		added = len(now) - len(whole)
	}
	say(t, loser, "u3")
	if _, err := loser.Commit(bg, coppice.Turn{State: state{Turns: 3}}); err == nil {
		t.Error("the commit of a stale base was taken")
	}
	if acked.Seq == 0 {
		t.Fatal("nothing was cut")
	}
	again := open(t, newStore(t, b, nil), "s")
	same(t, "head", again.Head(), acked.Head)
	same(t, "state", stateOf(t, again), state{Turns: 2})
	same(t, "context", texts(t, again), "u1 a1 u2")
	return added
}

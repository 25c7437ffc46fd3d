package server

import (
	"context"
	"fmt"
	"testing"

	coppice "github.com/coppice-go/coppice"
	_ "github.com/coppice-go/coppice/backend/memory"
)

// readable returns a store with sessions, and the keys of these.
func readable(t *testing.T, n int) (keys []writerKey) {
	t.Helper()
	st, err := coppice.Open(t.Context(), "mem:", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	for i := range n {
		keys = append(keys, writerKey{st, fmt.Sprintf("s%d", i)})
		h, err := st.Create(keys[i].id, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Commit(t.Context(), coppice.Turn{}); err != nil {
			t.Fatal(err)
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return keys
}

func mustAcquire(t *testing.T, rs *readers, key writerKey) *reader {
	t.Helper()
	r, err := rs.acquire(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// closed reports whether a handle is closed.
func (r *reader) isClosed() bool { _, err := r.s.Tree(context.Background()); return err != nil }

// Requests for one session share its handle. Of many sessions those used last are kept; a handle that is in use is
// closed by its last user.
func TestReadersAreShared(t *testing.T) {
	keys := readable(t, maxReaders+2)
	var rs readers
	a, b := mustAcquire(t, &rs, keys[0]), mustAcquire(t, &rs, keys[0])
	if a != b || a.users != 2 {
		t.Fatalf("%v and %v", a, b)
	}
	rs.release(b)
	for _, key := range keys[1:] {
		rs.release(mustAcquire(t, &rs, key))
	}
	if len(rs.list) != maxReaders || rs.find(keys[0]) != nil || a.isClosed() {
		t.Errorf("%d kept; closed: %v", len(rs.list), a.isClosed())
	}
	rs.release(a)
	if !a.isClosed() {
		t.Error("the last user has left, and the handle is open")
	}
	last := mustAcquire(t, &rs, keys[5])
	if err := rs.close(); err != nil {
		t.Fatal(err)
	}
	if last.isClosed() {
		t.Error("closed in use")
	}
	rs.release(last)
	late := mustAcquire(t, &rs, keys[6])
	rs.release(late)
	if !last.isClosed() || !late.isClosed() || len(rs.list) != 0 {
		t.Errorf("open after close: %v %v, %d kept", last.isClosed(), late.isClosed(), len(rs.list))
	}
}

// What another handle commits is read by the next request, and what was deleted is gone.
func TestReadersAreNew(t *testing.T) {
	key := readable(t, 1)[0]
	var rs readers
	before := mustAcquire(t, &rs, key)
	rs.release(before)
	h, err := key.store.Open(t.Context(), key.id, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := h.Commit(t.Context(), coppice.Turn{Reason: "more"})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	after := mustAcquire(t, &rs, key)
	if after != before || after.s.Head().Commit != r.Commit {
		t.Errorf("at %s, committed %s", after.s.Head().Commit, r.Commit)
	}
	rs.release(after)
	if err := key.store.Delete(t.Context(), key.id); err != nil {
		t.Fatal(err)
	}
	if _, err := rs.acquire(t.Context(), key); err == nil {
		t.Error("a deleted session was found")
	}
	if len(rs.list) != 0 || !before.isClosed() {
		t.Errorf("%d kept, closed: %v", len(rs.list), before.isClosed())
	}
}

package trace_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/backendtest"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/trace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestContract(t *testing.T) {
	backendtest.Run(t, backendtest.Harness{
		Short: testing.Short(), // what it passes on is tried at length where it is kept
		New:   func(*testing.T) backend.Backend { return trace.New(memory.New()) },
	})
}

func TestAppenderContract(t *testing.T) {
	under := map[backend.Backend]*memory.Appender{}
	wrap := func(m *memory.Appender) backend.Backend {
		b := trace.New(m)
		under[b] = m
		return b
	}
	backendtest.Run(t, backendtest.Harness{
		Short:  testing.Short(), // what it passes on is tried at length where it is kept
		New:    func(*testing.T) backend.Backend { return wrap(memory.NewAppender()) },
		Reopen: func(_ *testing.T, b backend.Backend) backend.Backend { return wrap(under[b].Share()) },
	})
}

func TestIsAppenderIffInnerIs(t *testing.T) {
	if _, ok := trace.New(memory.New()).(backend.Appender); ok {
		t.Error("an Appender over a backend that is none")
	}
	if _, ok := trace.New(memory.NewAppender()).(backend.Appender); !ok {
		t.Error("no Appender over one")
	}
	if _, ok := trace.New(trace.New(memory.NewAppender())).(backend.Appender); !ok {
		t.Error("no Appender over a traced one")
	}
}

// script does one of everything, well and badly.
func script(t *testing.T, f fault.Backend, b trace.Backend) {
	t.Helper()
	ctx := t.Context()
	a := b.(backend.Appender)
	info, _ := b.Put(ctx, "checkpoint_latest/x", []byte("one"), backend.IfAbsent())
	_, _ = b.Put(ctx, "checkpoint_latest/x", []byte("two!"), backend.IfMatch(info.Version))
	_, _ = b.Put(ctx, "checkpoint_latest/x", []byte("three"), backend.IfMatch(info.Version))
	_, _ = b.Put(ctx, "sessions/x/log", []byte("12345"), backend.Cond{})
	_, _, _ = b.Get(ctx, "sessions/x/log", backend.Range{})
	_, _, _ = b.Get(ctx, "sessions/x/log", backend.Bytes(1, 2))
	_, _, _ = b.Get(ctx, "sessions/x/log", backend.Bytes(5, 2))
	_, _, _ = b.Get(ctx, "sessions/x/log", backend.Tail(9))
	_, _, _ = b.Get(ctx, "nothing", backend.Range{})
	_, _ = a.Append(ctx, "sessions/x/log", 5, []byte("678"))
	_, _ = a.Append(ctx, "sessions/x/log", 5, []byte("678"))
	_, _ = a.Resync(ctx, "sessions/x/log", 0, 8)
	_ = a.Cut(ctx, "sessions/x/log", 6, []byte("78"))
	_, _ = b.Stat(ctx, "sessions/x/log")
	_, _ = b.Stat(ctx, "nothing")
	for range b.List(ctx, backend.ListOptions{}) {
	}
	for range b.List(ctx, backend.ListOptions{Prefix: "sessions/", After: "sessions/a", Delimiter: "/", Limit: 9}) {
		break
	}
	_ = b.Delete(ctx, "sessions/x/log")
	_ = b.Delete(ctx, "../bad")
	f.Add(fault.Rule{Count: 3}, fault.Rule{When: fault.On("put", ""), Outcome: backend.NotApplied})
	_ = b.Delete(ctx, "y")
	_, _, _ = b.Get(ctx, "y", backend.Range{})
	_, _ = a.Append(ctx, "y", 0, []byte("1"))
	_, _ = b.Put(ctx, "y", []byte("1"), backend.Cond{})
	_ = b.Close()
	_, _ = b.Stat(ctx, "y")
}

func TestCounts(t *testing.T) {
	f := fault.New(memory.NewAppender(), 1)
	b := trace.New(f)
	script(t, f, b)
	want := backend.IO{
		Get: 6, Put: 5, Append: 5, Stat: 3, List: 2, Delete: 3,
		BytesRead: 5 + 2 + 5, BytesWritten: 3 + 4 + 5 + 5 + 1 + 3 + 3 + 1,
	}
	if diff := cmp.Diff(want, b.IO()); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	b.Reset()
	if got := b.IO(); got != (backend.IO{}) {
		t.Errorf("after Reset: %+v", got)
	}
}

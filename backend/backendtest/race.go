package backendtest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"sync/atomic"

	"github.com/coppice-go/coppice/backend"
)

var raceCases = []testCase{
	{name: "Race/IfAbsent", run: func(e *env) { raceIfAbsent(e, e.b, e.b) }},
	{name: "Race/IfMatch", run: func(e *env) { raceIfMatch(e, e.b, e.b) }},
	{name: "Race/Overwrite", run: func(e *env) { raceOverwrite(e, e.b, e.b) }},
	{name: "Race/DeleteAndCreate", run: raceDelete},
}

// retryMax bounds the retries of one write after a NotApplied that is not due to its condition: a busy store may answer
// that (S3: 409, 429, 503).
const retryMax = 100

func putHard(ctx context.Context, b backend.Backend, key string, p []byte, c backend.Cond) (backend.Info, error) {
	var info backend.Info
	var err error
	for range retryMax {
		info, err = b.Put(ctx, key, p, c)
		if err == nil || errors.Is(err, backend.ErrPrecondition) || backend.OutcomeOf(err) != backend.NotApplied {
			break
		}
	}
	return info, err
}

// raceIfAbsent: of 8 callers for each of 200 keys exactly one wins, and its bytes are stored.
func raceIfAbsent(e *env, handles ...backend.Backend) {
	const callers = 8
	rounds := e.size(200, 20)
	for round := range rounds {
		key := fmt.Sprintf("race/%03d", round)
		body := func(caller int) []byte { return fill(fmt.Sprintf("round %d caller %d", round, caller), 300) }
		var winner atomic.Int64
		winner.Store(-1)
		e.together(callers, func(caller int) error {
			_, err := putHard(e.ctx(), handles[caller%len(handles)], key, body(caller), backend.IfAbsent())
			switch {
			case err == nil:
				if !winner.CompareAndSwap(-1, int64(caller)) {
					return fmt.Errorf("%s: callers %d and %d both won", key, winner.Load(), caller)
				}
			case !errors.Is(err, backend.ErrPrecondition) || backend.OutcomeOf(err) != backend.NotApplied:
				return fmt.Errorf("%s, caller %d: %w", key, caller, err)
			}
			return nil
		})
		if winner.Load() < 0 {
			e.Fatalf("%s: nobody won", key)
		}
		e.holds(key, body(int(winner.Load())))
	}
	if n := len(e.list(backend.ListOptions{})); n != rounds {
		e.Errorf("%d objects after the race, want %d", n, rounds)
	}
}

// raceIfMatch: 8 callers increment one object by compare-and-set. No update is lost, and the writes that succeeded form
// one chain: no version was replaced twice.
func raceIfMatch(e *env, handles ...backend.Backend) {
	const callers = 8
	turns := e.size(25, 5)
	key := "race/counter"
	first := e.put(key, counterBody(0, -1, 0), backend.IfAbsent()).Version
	var mu sync.Mutex
	next := map[backend.Version]backend.Version{}
	e.together(callers, func(caller int) error {
		b := handles[caller%len(handles)]
		for done, tries := 0, 0; done < turns; tries++ {
			if tries > 1000*turns {
				return fmt.Errorf("caller %d got through %d of %d times in %d tries", caller, done, turns, tries)
			}
			p, info, err := b.Get(e.ctx(), key, backend.Range{})
			if err != nil {
				return err
			}
			n := binary.LittleEndian.Uint64(p)
			put, err := putHard(e.ctx(), b, key, counterBody(n+1, caller, tries), backend.IfMatch(info.Version))
			if errors.Is(err, backend.ErrPrecondition) {
				continue
			}
			if err != nil {
				return err
			}
			done++
			mu.Lock()
			_, twice := next[info.Version]
			next[info.Version] = put.Version
			mu.Unlock()
			if twice {
				return fmt.Errorf("version %q was replaced twice", info.Version)
			}
		}
		return nil
	})
	p, last := e.get(key, backend.Range{})
	if n := binary.LittleEndian.Uint64(p); n != uint64(callers*turns) {
		e.Errorf("the counter stands at %d after %d increments", n, callers*turns)
	}
	v := first
	for range callers * turns {
		v = next[v]
	}
	if v != last.Version {
		e.Errorf("the chain of versions ends at %q, the object has %q", v, last.Version)
	}
}

func counterBody(n uint64, caller, try int) []byte {
	return fmt.Appendf(binary.LittleEndian.AppendUint64(nil, n), " by %d, try %d", caller, try)
}

// raceOverwrite: readers concurrent with a writer see whole objects, and never one older than a write that had returned
// before they began.
func raceOverwrite(e *env, writer, reader backend.Backend) {
	const key = "race/object"
	writes := e.size(120, 20)
	var durable atomic.Int64
	put := func(i int) error {
		if _, err := putHard(e.ctx(), writer, key, stamped(int64(i), 100+i*997%40000), backend.Cond{}); err != nil {
			return err
		}
		durable.Store(int64(i))
		return nil
	}
	if err := put(1); err != nil {
		e.Fatal(err)
	}
	var stop atomic.Bool
	e.together(4, func(w int) error {
		if w == 0 {
			defer stop.Store(true)
			for i := 2; i <= writes; i++ {
				if err := put(i); err != nil {
					return err
				}
			}
			return nil
		}
		for last := int64(0); !stop.Load(); {
			least := max(durable.Load(), last)
			p, info, err := reader.Get(e.ctx(), key, backend.Range{})
			if err != nil {
				return err
			}
			n, err := checkStamped(p)
			if err != nil {
				return fmt.Errorf("read of %s: %w", show(p), err)
			}
			if n < least || info.Size != int64(len(p)) {
				return fmt.Errorf("read write %d (%d bytes, size %d) after write %d was seen or had returned", n,
					len(p), info.Size, least)
			}
			last = n
		}
		return nil
	})
}

// stamped returns a body that can be checked alone: number, filling, CRC.
func stamped(n int64, size int) []byte {
	p := binary.LittleEndian.AppendUint64(nil, uint64(n))
	p = append(p, fill(fmt.Sprint("write ", n), size)...)
	return binary.LittleEndian.AppendUint32(p, crc32.ChecksumIEEE(p))
}

func checkStamped(p []byte) (int64, error) {
	if len(p) < 12 {
		return 0, errors.New("short object")
	}
	body, sum := p[:len(p)-4], binary.LittleEndian.Uint32(p[len(p)-4:])
	if crc32.ChecksumIEEE(body) != sum {
		return 0, errors.New("torn object")
	}
	return int64(binary.LittleEndian.Uint64(body)), nil
}

// raceDelete: creators and deleters of one key. Every success of IfAbsent is a separate creation, and readers see
// nothing or a whole object.
func raceDelete(e *env) {
	const key = "race/come-and-go"
	rounds := e.size(60, 10)
	e.together(6, func(w int) error {
		for i := range rounds {
			switch w {
			case 0, 1, 2:
				p := stamped(int64(w*rounds+i), 2000)
				if _, err := putHard(e.ctx(), e.b, key, p, backend.IfAbsent()); err != nil &&
					!errors.Is(err, backend.ErrPrecondition) {
					return err
				}
			case 3:
				if err := e.b.Delete(e.ctx(), key); err != nil {
					return err
				}
			default:
				p, _, err := e.b.Get(e.ctx(), key, backend.Range{})
				if errors.Is(err, backend.ErrNotExist) {
					continue
				}
				if err != nil {
					return err
				}
				if _, err := checkStamped(p); err != nil {
					return fmt.Errorf("read of %s: %w", show(p), err)
				}
			}
		}
		return nil
	})
	e.delete(key)
	e.absent(key)
	e.put(key, bytes.Repeat([]byte("z"), 10), backend.IfAbsent())
}

package sim

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Seeds are played in processes of their own, one bubble each: the pooled compressors of package codec hold channels,
// and a channel belongs to the bubble in which it was made. This also makes one processor enough for a seed, and
// attributes a crash to one seed.

// jobEnv holds a job as JSON: the process is a worker and does nothing else.
const jobEnv = "COPPICE_SIM"

// job is the task of a worker: seeds First, First+Step, … below End, or those of List.
type job struct {
	First, End, Step uint64
	List             []Knobs
	Twice            bool // and once more, with an identical result
	Trace            bool
	Shrink           bool // violations are reduced before they are reported
}

// totals are the sums of a worker.
type totals struct {
	Seeds, Events, Acked, Doubt int
	Hash                        uint64 // of all seeds
}

func (t *totals) add(o totals) {
	t.Seeds += o.Seeds
	t.Events += o.Events
	t.Acked += o.Acked
	t.Doubt += o.Doubt
	t.Hash ^= o.Hash
}

const (
	sayAt  = "sim at "  // a seed begins
	sayBad = "sim bad " // a result as JSON
	saySum = "sim sum " // totals as JSON
)

// TestWorker is not a test: it is the worker process of work.
func TestWorker(t *testing.T) {
	text := os.Getenv(jobEnv)
	if text == "" {
		t.Skip("no job")
	}
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		t.Fatal(err)
	}
	list := j.List
	for seed := j.First; j.Step > 0 && seed < j.End; seed += j.Step {
		list = append(list, Knobs{Seed: seed})
	}
	synctest.Test(t, func(*testing.T) {
		var sum totals
		for _, k := range list {
			fmt.Fprintf(os.Stdout, "%s%d\n", sayAt, k.Seed)
			r := j.play(k)
			sum.add(totals{1, r.Events, r.Acked, r.Doubt, r.Hash * (2*k.Seed + 1)})
			if len(r.Bad) > 0 {
				tell(sayBad, r)
			}
			if r.Stuck {
				break // its goroutines still run
			}
		}
		tell(saySum, sum)
	})
}

func tell(what string, v any) {
	p, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(os.Stdout, "%s%s\n", what, p)
}

// play runs one seed with the options of the job.
func (j *job) play(k Knobs) result {
	var trace io.Writer
	if j.Trace {
		trace = os.Stdout
	}
	r := play(k, trace)
	if j.Twice && len(r.Bad) == 0 {
		if again := play(k, nil); again.Hash != r.Hash || again.Events != r.Events {
			r.Bad = append(r.Bad, fmt.Sprintf("two runs differ: %d and %d events", r.Events, again.Events))
		}
	}
	if j.Shrink && len(r.Bad) > 0 && !r.Stuck {
		r = shrink(r)
	}
	return r
}

// shrink searches for a smaller run of the same seed that fails as well: fewer operations, fewer writers, fewer kinds
// of faults.
func shrink(r result) result {
	best := r
	try := func(k Knobs) bool {
		if s := play(k, nil); len(s.Bad) > 0 && !s.Stuck {
			best = s
			return true
		}
		return false
	}
	for ops := 1; ops < planOf(r.Knobs).ops && ops < 24; ops++ {
		k := best.Knobs
		if k.Ops = ops; try(k) {
			break
		}
	}
	for seats := 1; seats < planOf(best.Knobs).seats; seats++ {
		k := best.Knobs
		if k.Seats = seats; try(k) {
			break
		}
	}
	for f := fault(1); f < lastFault; f <<= 1 {
		k := best.Knobs
		if k.Drop |= f; planOf(best.Knobs).faults&f != 0 {
			try(k)
		}
	}
	return best
}

// hanging is the maximum real time of a worker for one seed.
const hanging = 90 * time.Second

// work has workers do a job, and passes their findings on. The death of a worker is a finding too; another one
// continues after the seed that killed it.
func work(t *testing.T, j job, procs int, bad func(result), out io.Writer) totals {
	t.Helper()
	if procs == 0 {
		procs = runtime.GOMAXPROCS(0)
	}
	var mu sync.Mutex
	var sum totals
	var all sync.WaitGroup
	for i := range procs {
		part := j
		if j.Step > 0 {
			part.First, part.Step = j.First+uint64(i)*j.Step, j.Step*uint64(procs)
		} else if i > 0 {
			break
		}
		all.Go(func() {
			for range 5 {
				last, got, err := worker(t.Context(), part, &mu, bad, out)
				mu.Lock()
				sum.add(got)
				mu.Unlock()
				if err == nil {
					return
				}
				mu.Lock()
				bad(result{Knobs: Knobs{Seed: last}, Bad: []string{"the process died: " + err.Error()}})
				mu.Unlock()
				if part.Step == 0 {
					return
				}
				part.First = last + part.Step
			}
		})
	}
	all.Wait()
	return sum
}

// worker runs one process until it ends; last is its last seed.
func worker(ctx context.Context, j job, mu *sync.Mutex, bad func(result), out io.Writer) (last uint64, sum totals, err error) {
	text, err := json.Marshal(j)
	if err != nil {
		return 0, sum, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch := time.AfterFunc(hanging, cancel)
	defer watch.Stop()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestWorker$", "-test.timeout=0") //nolint:gosec // this program
	cmd.Env = append(os.Environ(), jobEnv+"="+string(text), "GOMAXPROCS=1", "GOGC=400")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return 0, sum, err
	}
	if err := cmd.Start(); err != nil {
		return 0, sum, err
	}
	whole := false
	var other strings.Builder
	lines := bufio.NewScanner(pipe)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		watch.Reset(hanging)
		line := lines.Text()
		if n, ok := strings.CutPrefix(line, sayAt); ok {
			_, _ = fmt.Sscan(n, &last)
		} else if p, ok := strings.CutPrefix(line, sayBad); ok {
			var r result
			if json.Unmarshal([]byte(p), &r) == nil {
				mu.Lock()
				bad(r)
				mu.Unlock()
			}
		} else if p, ok := strings.CutPrefix(line, saySum); ok {
			whole = json.Unmarshal([]byte(p), &sum) == nil
		} else if out != nil {
			fmt.Fprintln(out, line)
		} else if other.Len() < 1<<16 {
			fmt.Fprintln(&other, line)
		}
	}
	if err = cmd.Wait(); whole && err == nil {
		return last, sum, nil
	}
	return last, sum, fmt.Errorf("%w %.2000s %.2000s", err, stderr.String(), other.String())
}

package handle

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Schedules are played in processes of their own, one bubble each: the pooled compressors of package codec hold
// channels, and a channel belongs to the bubble in which it was made. One processor for each makes the order of
// goroutines deterministic.

// workerEnv is set: the process is a worker and does nothing else.
const workerEnv = "COPPICE_HANDLE_WORKER"

// task is the next task of a worker.
type task struct {
	Replay      string // one schedule to play
	Program     string // else schedules of this program are searched, up to Limit
	Limit       int
	First, Last uint64 // else random programs of these seeds
	Verbose     bool   // every schedule is printed before it is played
}

// result is the result of a worker's task.
type result struct {
	Hashes   []uint64
	Counts   map[string]int
	Found    []violation
	Complete bool // all schedules of the program were played
	Stuck    bool // the worker ends here: goroutines remain
}

const (
	sayAt     = "handle at "
	sayResult = "handle result "
)

// TestWorker is not a test: it is the worker process of pool.
func TestWorker(t *testing.T) {
	if os.Getenv(workerEnv) == "" {
		t.Skip("no worker")
	}
	synctest.Test(t, func(t *testing.T) {
		s, err := newSearcher()
		if err != nil {
			t.Fatal(err)
		}
		tasks := json.NewDecoder(os.Stdin)
		for {
			var job task
			if err := tasks.Decode(&job); err != nil {
				return
			}
			r := s.work(job)
			p, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(os.Stdout, "%s%s\n", sayResult, p)
			if r.Stuck {
				os.Exit(0)
			}
		}
	})
}

// work does one task.
func (s *searcher) work(job task) (r result) {
	s.found, s.counts, s.hashes, s.at = map[string]violation{}, map[string]int{}, nil, nil
	if job.Verbose {
		s.at = func(p program, choices []int) {
			fmt.Fprintf(os.Stdout, "%s%s\n", sayAt, recipe(p.String(), choices))
		}
	}
	p, choices, err := parseRecipe(job.Replay + job.Program)
	switch {
	case job.Replay != "":
		s.count(p, s.replay(p, choices))
	case job.Program == "":
		for seed := job.First; seed < job.Last && !s.stuck; seed++ {
			s.wander(seed)
		}
	case err != nil:
		panic(err)
	default:
		r.Complete = s.search(p, job.Limit, func(r *run) bool {
			s.count(p, r)
			return true
		})
	}
	for _, v := range s.found {
		r.Found = append(r.Found, v)
	}
	r.Hashes, r.Counts, r.Stuck = s.hashes, s.counts, s.stuck
	return r
}

// recipe is a schedule as text: the program, a semicolon, the choices.
func recipe(program string, choices []int) string {
	return program + "; " + strings.Trim(fmt.Sprint(choices), "[]")
}

func parseRecipe(text string) (p program, choices []int, err error) {
	head, rest, _ := strings.Cut(text, ";")
	if p, err = parse(head); err != nil {
		return p, nil, err
	}
	for word := range strings.FieldsSeq(rest) {
		var c int
		if _, err := fmt.Sscan(word, &c); err != nil {
			return p, nil, fmt.Errorf("choice %q: %w", word, err)
		}
		choices = append(choices, c)
	}
	return p, choices, nil
}

// hanging is the maximum real time of a worker for one task.
const hanging = time.Minute

// process is a running worker.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
	watch *time.Timer
	end   context.CancelFunc
	noise strings.Builder
}

func startWorker(ctx context.Context) (w *process, err error) {
	ctx, cancel := context.WithCancel(ctx)
	w = &process{end: cancel}
	w.cmd = exec.CommandContext(ctx, os.Args[0], "-test.run=^TestWorker$", "-test.timeout=0") //nolint:gosec // this program
	w.cmd.Env = append(os.Environ(), workerEnv+"=1", "GOMAXPROCS=1", "GOGC=400")
	w.cmd.Stderr = &w.noise
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		cancel()
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err == nil {
		err = w.cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	w.lines = bufio.NewScanner(out)
	w.lines.Buffer(nil, 64<<20)
	w.watch = time.AfterFunc(hanging, cancel)
	return w, nil
}

// do makes the worker do a task. last is the last printed schedule.
func (w *process) do(job task) (r result, last string, err error) {
	w.watch.Reset(hanging)
	if err := json.NewEncoder(w.in).Encode(job); err != nil {
		return r, "", err
	}
	for w.lines.Scan() {
		w.watch.Reset(hanging)
		line := w.lines.Text()
		if at, ok := strings.CutPrefix(line, sayAt); ok {
			last = at
		} else if p, ok := strings.CutPrefix(line, sayResult); ok {
			return r, last, json.Unmarshal([]byte(p), &r)
		} else if w.noise.Len() < 1<<16 {
			fmt.Fprintln(&w.noise, line)
		}
	}
	return r, last, fmt.Errorf("the process died: %w", w.stop())
}

func (w *process) stop() error {
	_ = w.in.Close()
	err := w.cmd.Wait()
	w.watch.Stop()
	w.end()
	if err != nil {
		return fmt.Errorf("%w\n%.6000s", err, w.noise.String())
	}
	return nil
}

// pool distributes tasks to workers and passes on their results, one at a time, until next has none left.
func pool(
	ctx context.Context, workers int, next func() (task, bool), take func(task, result), died func(task, error),
) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			var w *process
			for {
				mu.Lock()
				job, ok := next()
				mu.Unlock()
				if !ok {
					break
				}
				var err error
				if w == nil {
					if w, err = startWorker(ctx); err != nil {
						died(job, err)
						return
					}
				}
				r, _, err := w.do(job)
				mu.Lock()
				if err != nil {
					died(job, err)
				} else {
					take(job, r)
				}
				mu.Unlock()
				if err != nil || r.Stuck {
					if err == nil {
						_ = w.stop()
					}
					w = nil
				}
			}
			if w != nil {
				_ = w.stop()
			}
		})
	}
	all.Wait()
}

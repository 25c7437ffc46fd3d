package cli

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/cli/term"
)

// counted is a store that counts what is read.
type counted struct {
	backend.Backend
	reads *atomic.Int64
}

func (c counted) Get(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	c.reads.Add(1)
	return c.Backend.Get(ctx, key, r)
}

func (c counted) Close() error { return nil } // it is opened again

// paper notes how much was read when each line came.
type paper struct {
	reads *atomic.Int64
	lines []string
	at    []int64
}

func (p *paper) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		p.lines, p.at = append(p.lines, line), append(p.at, p.reads.Load())
	}
	return len(text), nil
}

// The first lines of a long list come while the rest is read, and a short id in them names one session of them all.
func TestALongListComesWhileItIsRead(t *testing.T) {
	const sessions = 300
	mem, reads := memory.New(), new(atomic.Int64)
	st, err := coppice.New(mem, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range sessions {
		id := fmt.Sprintf("%04d-and-more", i)
		if i == 3 || i == sessions-1 { // the oldest and the newest are alike for longer
			id = "alike-for-long-" + id
		}
		s, err := st.Create(id, &coppice.SessionOptions{Title: "t"})
		if err == nil {
			_, err = s.Commit(t.Context(), coppice.Turn{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	backend.Register("counted", func(context.Context, *url.URL) (backend.Backend, error) { return counted{mem, reads}, nil })
	p, none := &paper{reads: reads}, func(string) string { return "" }
	reads.Store(0)
	c := newCLI(Env{Stdin: strings.NewReader(""), Stdout: p, Stderr: p, Getenv: none, Now: clock})
	if code := c.run(t.Context(), []string{"--store", "counted:", "list"}); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if len(p.lines) != sessions+1 || p.at[0] > sessions/4 || p.at[sessions] < sessions {
		t.Fatalf("%d lines, the first after %d reads, the last after %d", len(p.lines), p.at[0], p.at[len(p.at)-1])
	}
	seen := map[string]bool{}
	for _, line := range p.lines[1:] {
		seen[strings.Fields(line)[0]] = true
	}
	if len(seen) != sessions {
		t.Errorf("%d names for %d sessions", len(seen), sessions)
	}
}

// A person who waits for a listing at a terminal sees how many sessions were looked at, and of how many; the answer is
// the same. Elsewhere there is no bar.
func TestListProgress(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	const sessions = 40
	for i := range sessions {
		must(t, store, "", "create", "--session", fmt.Sprint("s", i))
	}
	for _, command := range []string{"list", "pick"} {
		plain, stderr, code := call(t, store, "", "--json", command)
		if code != 0 || stderr != "" {
			t.Fatalf("%s: exit code %d\n%s", command, code, stderr)
		}
		var out, errs bytes.Buffer
		none := func(string) string { return "" }
		now := clock()
		c := newCLI(Env{
			Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Getenv: none,
			Now: func() time.Time { now = now.Add(time.Second); return now }, // a slow store
		})
		c.stderr = term.NewTerminal(&errs, 80)
		if code := c.run(t.Context(), []string{"--store", store, "--json", command}); code != 0 || out.String() != plain {
			t.Errorf("%s: exit code %d\n%s\nwant\n%s", command, code, out.String(), plain)
		}
		shown := regexp.MustCompile(`(\d+) of 40`).FindAllStringSubmatch(errs.String(), -1)
		if len(shown) == 0 {
			t.Errorf("%s: no bar: %q", command, errs.String())
			continue
		}
		if first, err := strconv.Atoi(shown[0][1]); err != nil || first >= sessions {
			t.Errorf("%s: the bar came when all was done: %q", command, errs.String())
		}
	}
}

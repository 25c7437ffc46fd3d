package browser

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/runtime"

	"github.com/coppice-go/coppice/internal/cli/demostore"
	"github.com/coppice-go/coppice/web/browser/fixture"
)

// messages is the size of the large session: 20,000, or COPPICE_BENCH_MESSAGES, such as 1000000.
var messages = func() int {
	if n, err := strconv.Atoi(os.Getenv("COPPICE_BENCH_MESSAGES")); err == nil {
		return n
	}
	return 20_000
}()

var (
	million = written{write: func(ctx context.Context, dir string) error { return fixture.Million(ctx, dir, messages) }}
	broad   = written{write: fixture.Wide}
)

// sessions are those that the benchmarks open.
func sessions(b *testing.B, run func(b *testing.B, s *site, id string)) {
	b.Helper()
	b.Run("entries=305", func(b *testing.B) { run(b, withBundled(b), bundled) })
	b.Run(fmt.Sprintf("entries=%d", messages), func(b *testing.B) { run(b, made(b, &million), fixture.MillionID) })
	b.Run("wide", func(b *testing.B) { run(b, made(b, &broad), fixture.WideID) })
}

// mapped keeps when the map has rows.
const mapped = `(() => {
	const look = () => {
		if (document.querySelector(".map .row:not(.empty)")) window.__mapped = performance.now();
		else requestAnimationFrame(look);
	};
	requestAnimationFrame(look);
})()`

// BenchmarkFirstPaint: from the navigation to the first message and to the first rows of the map, in ms. floor-ms is
// what an empty page of this server takes in the same browser.
func BenchmarkFirstPaint(b *testing.B) {
	sessions(b, func(b *testing.B, s *site, id string) {
		var paint, rows, floor []float64
		for b.Loop() {
			p := newTab(b, s, wide)
			before(p, mapped)
			p.allow("favicon")
			p.navigate("/v1/health")
			floor = append(floor, eval[float64](p, `performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd`))
			p.navigate("/s/" + id)
			p.wait(`window.__mapped > 0 && __seen.painted > 0`)
			paint = append(paint, eval[float64](p, `__seen.painted`))
			rows = append(rows, eval[float64](p, `window.__mapped`))
		}
		b.ReportMetric(median(paint), "message-ms")
		b.ReportMetric(median(rows), "map-ms")
		b.ReportMetric(median(floor), "floor-ms")
	})
}

// BenchmarkScroll: the wheel over the conversation and the map, and a drag along the minimap from end to end. Long tasks
// are those over 50 ms, as browsers define them.
func BenchmarkScroll(b *testing.B) {
	sessions(b, func(b *testing.B, s *site, id string) {
		p := arrive(b, s, "/s/"+id, ".map .row")
		elements := 0
		eval[bool](p, `(() => {
			__seen.tasks = [];
			const frames = (window.__frames = []);
			let was = performance.now();
			const tick = (now) => { frames.push(now - was); was = now; requestAnimationFrame(tick); };
			requestAnimationFrame(tick);
			return true;
		})()`)
		for b.Loop() {
			for range 20 {
				p.wheel(".talk .scroller", -600)
			}
			for range 20 {
				p.wheel(".map-rows", -900)
			}
			places := make([][2]float64, 60)
			for i := range places {
				places[i] = at(0.5, 0.01+0.98*float64(i)/float64(len(places)))
			}
			p.drag(".minimap", 0, places...)
			p.until("the rows", func() (bool, error) { return p.count(".map .row.empty") == 0, nil })
			elements = max(elements, p.count("*"))
		}
		tasks := eval[[]float64](p, `__seen.tasks`)
		frames := eval[[]float64](p, `window.__frames`)
		slices.Sort(frames)
		b.ReportMetric(slices.Max(append(tasks, 0)), "longest-task-ms")
		b.ReportMetric(frames[len(frames)*95/100], "p95-frame-ms")
		b.ReportMetric(float64(elements), "elements")
	})
}

// BenchmarkAppend: from when an event of a commit is in the page to when its message is drawn, in ms.
func BenchmarkAppend(b *testing.B) {
	sessions(b, func(b *testing.B, s *site, id string) {
		p := newTab(b, s, wide)
		before(p, followed)
		before(p, `(() => {
			window.__drawn = [];
			addEventListener("DOMContentLoaded", () => new MutationObserver(() => {
				const end = [...document.querySelectorAll(".talk article")].at(-1)?.innerText ?? "";
				const n = /Appended (\d+)\./.exec(end)?.[1];
				if (n === undefined || n === window.__last) return;
				window.__last = n;
				requestAnimationFrame(() => setTimeout(() => window.__drawn.push(performance.now() - window.__came), 0));
			}).observe(document.body, { childList: true, subtree: true }));
		})()`)
		p.navigate("/s/" + id)
		p.see(".talk article")
		p.settled()
		eval[bool](p, `(() => { __seen.tasks = []; const push = __commits.push.bind(__commits);
			__commits.push = (x) => { window.__came = performance.now(); return push(x); }; return true; })()`)
		n := 0
		for b.Loop() {
			n++
			s.says(id, fmt.Sprintf("Appended %d.", n))
			p.until("it is drawn", func() (bool, error) { return try[bool](p, fmt.Sprintf(`window.__drawn.length >= %d`, n)) })
		}
		b.ReportMetric(median(eval[[]float64](p, `window.__drawn`)), "drawn-ms")
		b.ReportMetric(slices.Max(append(eval[[]float64](p, `__seen.tasks`), 0)), "longest-task-ms")
	})
}

// BenchmarkSessionChanges: the heap after 50 changes of the session, by what it was after the first ten.
func BenchmarkSessionChanges(b *testing.B) {
	d := withDemo(b)
	p := arrive(b, d.site, "/", ".sessions a")
	heap := func() float64 {
		call(p, heapprofiler.CollectGarbage, cdp.Empty{})
		return call(p, runtime.GetHeapUsage, cdp.Empty{}).UsedSize
	}
	change := func(n int) {
		for i := range n {
			name := []string{"tideline 0.2", "watch the gauge"}[i%2]
			p.click(".sessions a|" + name)
			p.see("h1|" + name)
			p.see(".talk article")
			p.see(".map .row")
			p.settled()
		}
	}
	var ratio float64
	for b.Loop() {
		change(10)
		first := heap()
		change(50)
		ratio = heap() / first
	}
	b.ReportMetric(ratio, "heap-ratio")
}

// BenchmarkIdle: what an untouched page does in a while (COPPICE_BENCH_IDLE, 5 s).
func BenchmarkIdle(b *testing.B) {
	while, err := time.ParseDuration(os.Getenv("COPPICE_BENCH_IDLE"))
	if err != nil {
		while = 5 * time.Second
	}
	d := withDemo(b)
	p := arrive(b, d.site, "/s/"+demostore.Main, ".map .row")
	call(p, performance.Enable, performance.EnableParams{})
	busy := func() (task, at float64) {
		for _, m := range call(p, performance.GetMetrics, cdp.Empty{}).Metrics {
			switch m.Name {
			case "TaskDuration":
				task = m.Value
			case "Timestamp":
				at = m.Value
			}
		}
		return task, at
	}
	d.forget()
	var cpu float64
	for b.Loop() {
		task, at := busy()
		ctx, end := context.WithTimeout(b.Context(), while)
		<-ctx.Done()
		end()
		after, now := busy()
		cpu = 100 * (after - task) / (now - at)
	}
	all, _, _ := d.traffic()
	b.ReportMetric(cpu, "cpu-%")
	b.ReportMetric(float64(all), "requests")
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

func TestMain(m *testing.M) {
	code := m.Run()
	chromium.stop()
	for _, f := range []*written{&million, &broad} {
		_ = os.RemoveAll(f.dir)
	}
	os.Exit(code)
}

// chromium is the browser of all tests. It is started by the first one.
var chromium process

type process struct {
	once sync.Once
	ctx  context.Context
	end  context.CancelFunc
	err  error

	mu   sync.Mutex
	idle []context.Context // tabs that a test has left as it found them, in the order in which they were
}

// needless are features that cost more processor time than the page of a test. A tab in a profile of its own has a
// window, and the address bar of each window loads two pages. Each page also starts an idle process for the next page.
const needless = "Translate,BlinkGenPropertyTrees,WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup," +
	"SpareRendererForSitePerProcess"

// start returns the context of the browser. Without a browser the test is skipped.
func (b *process) start(t testing.TB) context.Context {
	t.Helper()
	path := os.Getenv("CHROMIUM")
	if path == "" {
		path = "chromium"
	}
	path, err := exec.LookPath(path)
	if err != nil {
		if os.Getenv("REQUIRE_CHROMIUM") == "1" {
			t.Fatalf("there is no browser: %v", err)
		}
		t.Skipf("there is no browser: %v; install chromium, or name one in CHROMIUM", err)
	}
	b.once.Do(func() {
		options := append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-quic", true),
			chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-extensions", true),
			chromedp.Flag("disable-features", needless), chromedp.Flag("js-flags", "--expose-gc"),
			chromedp.Flag("hide-scrollbars", false), chromedp.Flag("enable-precise-memory-info", true))
		allocator, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, endBrowser := chromedp.NewContext(allocator)
		b.ctx, b.end = ctx, func() { endBrowser(); endAllocator() }
		if err := chromedp.Do(ctx); err != nil {
			b.err = fmt.Errorf("start %s: %w", path, err)
		}
	})
	if b.err != nil {
		t.Fatal(b.err)
	}
	return b.ctx
}

// tab returns the context of an empty tab in a profile of its own. A new one costs as much as loading the page, so that
// tests take what others left. Benchmarks measure new ones.
func (b *process) tab(t testing.TB) (context.Context, error) {
	t.Helper()
	browser := b.start(t)
	if _, test := t.(*testing.T); test {
		b.mu.Lock()
		defer b.mu.Unlock()
		if last := len(b.idle) - 1; last >= 0 {
			ctx := b.idle[last]
			b.idle = b.idle[:last]
			return ctx, nil
		}
	}
	return equipped(chromedp.NewContext(browser, chromedp.WithNewBrowserContext()))
}

// release keeps a tab for another test, if it is as new, or closes it.
func (b *process) release(ctx context.Context, t testing.TB, again bool) {
	if _, test := t.(*testing.T); test && again {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.idle = append(b.idle, ctx)
		return
	}
	_ = chromedp.Cancel(ctx)
}

// equipped makes the tab of a context report what its pages do, for as long as it is open.
func equipped(ctx context.Context, end context.CancelFunc) (context.Context, error) {
	err := chromedp.Do(ctx)
	for _, source := range []string{watch, rests} {
		_, failed := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument,
			page.AddScriptToEvaluateOnNewDocumentParams{Source: source})
		err = errors.Join(err, failed)
	}
	_, logs := chromedp.Call(ctx, log.Enable, cdp.Empty{})
	_, requests := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	_, issues := chromedp.Call(ctx, audits.Enable, cdp.Empty{})
	_, focus := chromedp.Call(ctx, emulation.SetFocusEmulationEnabled,
		emulation.SetFocusEmulationEnabledParams{Enabled: true})
	if err = errors.Join(err, logs, requests, issues, focus); err != nil {
		end()
	}
	return ctx, err
}

// stop ends the browser, and waits until it is gone.
func (b *process) stop() {
	if b.ctx == nil {
		return
	}
	_ = chromedp.Cancel(b.ctx)
	b.end()
}

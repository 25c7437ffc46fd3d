package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

func TestMain(m *testing.M) {
	code := m.Run()
	chromium.stop()
	for _, f := range []*written{&hostile, &million, &broad} {
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

// stop ends the browser, and waits until it is gone.
func (b *process) stop() {
	if b.ctx == nil {
		return
	}
	_ = chromedp.Cancel(b.ctx)
	b.end()
}

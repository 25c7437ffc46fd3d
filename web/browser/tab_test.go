package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long a tab waits for what does not come. Only a test that fails waits so long.
const patience = 20 * time.Second

// watch runs in each page before its own scripts. It keeps what the page does not show.
const watch = `(() => {
  const seen = (window.__seen = { violations: [], tasks: [], painted: 0, input: [] });
  addEventListener("securitypolicyviolation", (e) =>
    seen.violations.push(e.violatedDirective + " " + e.blockedURI + " " + e.sample + " " + e.sourceFile));
  new PerformanceObserver((list) => {
    for (const e of list.getEntries()) seen.tasks.push(Math.round(e.duration));
  }).observe({ type: "longtask", buffered: true });
  const frame = requestAnimationFrame.bind(window);
  const look = () => {
    if (document.querySelector(".talk article.entry")) seen.painted ||= performance.now();
    else frame(look);
  };
  frame(look);
  for (const kind of ["pointermove", "pointerdown", "pointerup", "click", "keydown"]) {
    addEventListener(kind, (e) => {
      seen.input.push(kind + " " + (e.key ?? e.clientX + "," + e.clientY) + " " + e.target.outerHTML?.slice(0, 60));
      seen.input = seen.input.slice(-6);
    }, { capture: true, passive: true });
  }
})();`

// rests runs in each page before its own scripts. It defines a function that returns why the page is not at rest. "" = in
// two frames in a row nothing changed, and no frame, timer of at most 500 ms, idle callback or answer was outstanding.
const rests = `(() => {
  const frame = requestAnimationFrame.bind(window), after = setTimeout.bind(window), waits = new Map();
  let last = 0, asked = 0;
  const counted = (start, end) => {
    const [begins, ends] = [window[start], window[end]];
    window[start] = (f, ...args) => {
      const wait = ++last;
      const id = begins.call(window, (...a) => (waits.delete(wait), f(...a)), ...args);
      if (!(args[0] > 500)) waits.set(wait, start + id);
      return id;
    };
    window[end] = (id) => {
      for (const [wait, of] of waits) if (of === start + id) waits.delete(wait);
      ends.call(window, id);
    };
  };
  counted("setTimeout", "clearTimeout");
  counted("requestAnimationFrame", "cancelAnimationFrame");
  counted("requestIdleCallback", "cancelIdleCallback");
  // An answer is outstanding until its body was read. Streams of events are not counted.
  const answered = (f) => function (...args) {
    asked++;
    return f.apply(this, args).finally(() => asked--);
  };
  window.fetch = answered(fetch);
  const whole = Response.prototype;
  for (const read of ["text", "json", "blob", "arrayBuffer"]) whole[read] = answered(whole[read]);
  const body = Object.getOwnPropertyDescriptor(whole, "body").get;
  Object.defineProperty(whole, "body", { get() {
    const stream = body.call(this);
    if (stream && this.url && !this.url.includes("/events?")) { // "" = a test made the answer
      stream.getReader = () => {
        const reader = ReadableStream.prototype.getReader.call(stream);
        reader.read = answered(reader.read);
        return reader;
      };
    }
    return stream;
  } });
  let changed = false;
  const change = () => (changed = true);
  window.__after = after;
  window.__rests = async () => {
    const seen = new MutationObserver(change);
    seen.observe(document, { childList: true, subtree: true, attributes: true, characterData: true });
    addEventListener("scroll", change, true);
    let calm = 0;
    for (let i = 0; calm < 2 && i < 60; i++) {
      changed = false;
      await new Promise((done) => frame(() => after(done)));
      calm = changed || waits.size > 0 || asked > 0 ? 0 : calm + 1;
    }
    seen.disconnect();
    removeEventListener("scroll", change, true);
    return calm === 2 ? "" : [...waits.values(), asked + " requests", changed && "changes"].join(", ");
  };
})();`

// tab is a page of the viewer.
type tab struct {
	t       testing.TB
	site    *site
	ctx     context.Context
	scripts []page.ScriptIdentifier // that run before those of the page, for this test alone
	shared  bool                    // another tab has the same profile

	mu      sync.Mutex
	faults  []string
	allowed []*regexp.Regexp
}

// look is how a page is looked at.
type look struct {
	width, height int
	dark, phone   bool
}

// The looks of the tests.
var (
	wide  = look{width: 1440, height: 900}
	dark  = look{width: 1440, height: 900, dark: true}
	phone = look{width: 390, height: 844, phone: true}
	night = look{width: 390, height: 844, phone: true, dark: true}
)

// visit opens a path of a site in a new tab, in a profile of its own.
func visit(t testing.TB, s *site, path string) *tab { t.Helper(); return visitAs(t, s, path, wide) }

func visitAs(t testing.TB, s *site, path string, as look) *tab {
	t.Helper()
	p := newTab(t, s, as)
	p.navigate(path)
	return p
}

// arrive opens a path in a new tab, and waits until an element is there and the page is at rest.
func arrive(t testing.TB, s *site, path, selector string) *tab {
	t.Helper()
	p := visit(t, s, path)
	p.see(selector)
	p.settled()
	return p
}

// newTab returns an empty tab. When the test ends it checks what the page did.
func newTab(t testing.TB, s *site, as look) *tab {
	t.Helper()
	ctx, err := chromium.tab(t)
	ok(t, err)
	return prepared(ctx, t, s, as)
}

// prepared returns the tab of a context, for a test.
func prepared(of context.Context, t testing.TB, s *site, as look) *tab {
	t.Helper()
	ctx, end := context.WithCancel(of)
	p := &tab{t: t, site: s, ctx: ctx}
	t.Cleanup(func() {
		p.check()
		again := !t.Failed() && !p.shared && p.clear() == nil
		end()
		chromium.release(of, t, again)
	})
	ok(t, chromedp.Listen(ctx, p.note))
	p.resize(as)
	scheme := "light"
	if as.dark {
		scheme = "dark"
	}
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
	return p
}

// clear leaves the page, and removes what the test left in the tab and its profile.
func (p *tab) clear() error {
	ctx, end := within(p.ctx, patience)
	defer end()
	_, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`(localStorage.clear(), sessionStorage.clear(), true)`))
	for _, id := range p.scripts {
		_, failed := chromedp.Call(ctx, page.RemoveScriptToEvaluateOnNewDocument,
			page.RemoveScriptToEvaluateOnNewDocumentParams{Identifier: id})
		err = errors.Join(err, failed)
	}
	err = errors.Join(err, chromedp.Do(ctx, chromedp.Navigate("about:blank")))
	for _, c := range []cdp.Command[cdp.Empty, cdp.Empty]{
		page.ResetNavigationHistory, network.ClearBrowserCookies, network.ClearBrowserCache,
	} {
		_, failed := chromedp.Call(ctx, c, cdp.Empty{})
		err = errors.Join(err, failed)
	}
	return err
}

// before runs a script in each page before its own.
func before(p *tab, script string) {
	p.t.Helper()
	added := call(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
	p.scripts = append(p.scripts, added.Identifier)
}

// call does a command of the protocol.
func call[P, R any](p *tab, c cdp.Command[P, R], params P) R {
	p.t.Helper()
	ctx, end := within(p.ctx, patience)
	defer end()
	r, err := chromedp.Call(ctx, c, params)
	if err != nil {
		p.t.Fatalf("%s: %v", c.Method, err)
	}
	return r
}

func (p *tab) navigate(path string) {
	p.t.Helper()
	ctx, end := within(p.ctx, patience)
	defer end()
	ok(p.t, chromedp.Do(ctx, chromedp.Navigate(p.site.url+path)))
}

// turn shows a path without loading the page, as "back" does. A dialog is closed before; a page that has a form is
// loaded.
func (p *tab) turn(path string) {
	p.t.Helper()
	if p.count("dialog[open]") > 0 {
		p.press("Escape")
		p.miss("dialog[open]")
	}
	if !eval[bool](p, `Boolean(document.querySelector(".app")) && !document.querySelector("dialog, form.ask") && (
		document.activeElement.blur(), history.pushState(null, "", %s),
		dispatchEvent(new PopStateEvent("popstate")))`, path) {
		p.navigate(path)
	}
}

// resize makes the page as large as a look is.
func (p *tab) resize(as look) {
	p.t.Helper()
	call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: int64(as.width), Height: int64(as.height), DeviceScaleFactor: 1, Mobile: as.phone,
	})
}

// reload loads the page of the URL again.
func (p *tab) reload() {
	p.t.Helper()
	p.flush()
	p.navigate(p.location())
}

// note keeps what the page did wrong.
func (p *tab) note(event any) {
	fault := func(format string, args ...any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.faults = append(p.faults, fmt.Sprintf(format, args...))
	}
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		fault("exception: %s", text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning || e.Type == runtime.ConsoleAPICalledTypeAssert {
			words := make([]string, len(e.Args))
			for i, a := range e.Args {
				words[i] = string(a.Value) + a.Description
			}
			fault("console.%s: %s", e.Type, strings.Join(words, " "))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			fault("log: %s %s", e.Entry.Text, e.Entry.URL)
		}
	case *audits.EventIssueAdded:
		if e.Issue.Code == audits.InspectorIssueCodeContentSecurityPolicyIssue {
			text, _ := json.Marshal(e.Issue.Details)
			fault("policy: %s", text)
		}
	case *page.EventJavascriptDialogOpening:
		fault("dialog: %s", e.Message)
	case *page.EventWindowOpen:
		fault("window: %s", e.URL)
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err != nil || u.Scheme != "blob" && "http://"+u.Host != p.site.url {
			fault("request to another origin: %.300s", e.Request.URL)
		}
	}
}

// allow lets the page log or report what matches, because the test causes it.
func (p *tab) allow(pattern string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allowed = append(p.allowed, regexp.MustCompile(pattern))
}

// check reports what the page did wrong.
func (p *tab) check() {
	p.t.Helper()
	p.flush()
	p.mu.Lock()
	defer p.mu.Unlock()
next:
	for _, f := range p.faults {
		for _, a := range p.allowed {
			if a.MatchString(f) {
				continue next
			}
		}
		p.t.Errorf("%.600s", f)
	}
	p.faults = nil
}

// flush takes what the page itself kept, before it is left.
func (p *tab) flush() {
	ctx, end := within(p.ctx, patience)
	defer end()
	seen, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](`window.__seen?.violations.splice(0) ?? []`))
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.faults = append(p.faults, "the page does not answer: "+err.Error())
	}
	for _, v := range seen {
		p.faults = append(p.faults, "violation: "+v)
	}
}

// eval returns the value of an expression, which may be a promise.
func eval[T any](p *tab, expression string, args ...any) T {
	p.t.Helper()
	v, err := try[T](p, filled(expression, args))
	if err != nil {
		p.t.Fatalf("%.300s: %v", expression, err)
	}
	return v
}

func try[T any](p *tab, expression string) (T, error) {
	ctx, end := within(p.ctx, patience)
	defer end()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// filled puts arguments into an expression, as literals, in place of %s.
func filled(expression string, args []any) string {
	if len(args) == 0 {
		return expression
	}
	literals := make([]any, len(args))
	for i, a := range args {
		text, err := json.Marshal(a)
		if err != nil {
			panic(err) // only texts and numbers are
		}
		literals[i] = string(text)
	}
	return fmt.Sprintf(expression, literals...)
}

// wait waits until an expression is true.
func (p *tab) wait(expression string, args ...any) {
	p.t.Helper()
	p.until(filled(expression, args), func() (bool, error) { return p.soon(filled(expression, args)) })
}

// soon reports whether an expression is true within a quarter of a second. The page looks, every 15 ms: each question
// from here is one for the browser too.
func (p *tab) soon(expression string) (bool, error) {
	return try[bool](p, `(async () => {
		const after = window.__after ?? setTimeout, end = performance.now() + 250;
		for (;;) {
			const late = performance.now() > end;
			try {
				if (`+expression+`) return true;
			} catch (err) {
				if (late) throw err;
			}
			if (late) return false;
			await new Promise((done) => after(done, 15));
		}
	})()`)
}

// until waits until a condition holds. An error is one more time that it does not.
func (p *tab) until(what string, holds func() (bool, error)) {
	p.t.Helper()
	ctx, end := within(p.ctx, patience)
	defer end()
	pause := time.NewTicker(15 * time.Millisecond)
	defer pause.Stop()
	for {
		yes, err := holds()
		if yes && err == nil {
			return
		}
		select {
		case <-ctx.Done():
			at, _ := try[string](p, `location.href + "\n" + __seen.input.join("\n") + "\n" + document.body.innerText.slice(0, 600)`)
			p.picture("failed.png")
			_, under, streams := p.site.traffic()
			p.t.Fatalf("waited in vain for %.400s: %.600v\nunanswered: %q, streams: %d\nat %s", what, err, under, streams, at)
		case <-pause.C:
		}
	}
}

// picture keeps how the page looks: go test -artifacts.
func (p *tab) picture(name string) {
	p.t.Helper()
	data := call(p, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng}).Data
	if err := os.WriteFile(filepath.Join(p.t.ArtifactDir(), name), data, 0o600); err != nil {
		p.t.Error(err)
	}
}

// settled waits until the page draws nothing, and no answer and no timer is outstanding.
func (p *tab) settled() {
	p.t.Helper()
	p.until("the page to come to rest", func() (bool, error) {
		was, _, _ := p.site.traffic()
		why, err := try[string](p, `window.__rests()`)
		all, under, _ := p.site.traffic()
		if err == nil && why != "" {
			err = errors.New(why)
		}
		return all == was && len(under) == 0, err
	})
}

// location returns the path and query of the page.
func (p *tab) location() string {
	p.t.Helper()
	return eval[string](p, `location.pathname + location.search`)
}

// query returns a parameter of the URL; "" = it is not there.
func (p *tab) query(name string) string {
	p.t.Helper()
	return eval[string](p, `new URLSearchParams(location.search).get(%s) ?? ""`, name)
}

// waitQuery waits until a parameter of the URL has a value.
func (p *tab) waitQuery(name, value string) {
	p.t.Helper()
	p.wait(`(new URLSearchParams(location.search).get(%s) ?? "") === %s`, name, value)
}

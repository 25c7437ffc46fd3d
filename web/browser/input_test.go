package browser

import (
	"errors"
	"strings"

	"github.com/chromedp/cdproto/input"
)

// find is the element that a selector names: CSS, then "|" and a text that the element contains, if any; ">>" continues
// below what was found so far. Of several it is the first one that has a box.
const find = `((selector) => {
  let found = [document];
  for (const step of selector.split(" >> ")) {
    const at = step.lastIndexOf("|"), css = at < 0 ? step : step.slice(0, at), text = at < 0 ? "" : step.slice(at + 1);
    found = found.flatMap((e) => [...e.querySelectorAll(css)]).filter((e) => !text || e.textContent.includes(text));
  }
  return found.find((e) => e.getClientRects().length > 0) ?? null;
})(%s)`

// box is where an element is, in CSS pixels.
type box struct{ X, Y, Width, Height float64 }

// box waits until an element is there, at rest, and nothing is over its middle. Where it is out of sight it is scrolled
// into sight.
func (p *tab) box(selector string) (b box) {
	p.t.Helper()
	type place struct {
		box
		Over string // what is over it, "" = nothing
	}
	p.until(selector+" in sight", func() (bool, error) {
		is, err := try[place](p, filled(`(async () => {
			const frame = () => new Promise(requestAnimationFrame);
			let e = `+find+`;
			if (!e) return { Over: "nothing is found" };
			const at = () => { const r = e.getBoundingClientRect(); return { X: r.x, Y: r.y, Width: r.width, Height: r.height }; };
			const was = JSON.stringify(at());
			await frame();
			await frame();
			const now = at();
			if (!e.isConnected || JSON.stringify(now) !== was) return { Over: "it moves" };
			const hit = document.elementFromPoint(now.X + now.Width / 2, now.Y + now.Height / 2);
			if (hit && (e.contains(hit) || hit.contains(e))) return { ...now, Over: "" };
			e.scrollIntoView({ block: "center" });
			return { Over: "over it is " + (hit?.outerHTML ?? "nothing").slice(0, 200) };
		})()`, []any{selector}))
		if err == nil && is.Over != "" {
			err = errors.New(is.Over)
		}
		b = is.box
		return true, err
	})
	return b
}

// click clicks in the middle of an element.
func (p *tab) click(selector string) {
	p.t.Helper()
	b := p.box(selector)
	x, y := b.X+b.Width/2, b.Y+b.Height/2
	p.mouse(input.DispatchMouseEventTypeMouseMoved, x, y, 0)
	p.mouse(input.DispatchMouseEventTypeMousePressed, x, y, 1)
	p.mouse(input.DispatchMouseEventTypeMouseReleased, x, y, 0)
}

// hover moves the pointer over an element.
func (p *tab) hover(selector string) {
	p.t.Helper()
	b := p.box(selector)
	p.mouse(input.DispatchMouseEventTypeMouseMoved, b.X+b.Width/2, b.Y+b.Height/2, 0)
}

func (p *tab) mouse(kind input.DispatchMouseEventType, x, y float64, buttons int64, modifiers ...int64) {
	p.t.Helper()
	e := input.DispatchMouseEventParams{Type: kind, X: x, Y: y, Buttons: buttons}
	for _, m := range modifiers {
		e.Modifiers |= m
	}
	if kind != input.DispatchMouseEventTypeMouseMoved || buttons > 0 {
		e.Button, e.ClickCount = input.MouseButtonLeft, 1
	}
	call(p, input.DispatchMouseEvent, e)
}

// wheel turns the wheel over an element.
func (p *tab) wheel(selector string, down float64) {
	p.t.Helper()
	b := p.box(selector)
	call(p, input.DispatchMouseEvent, input.DispatchMouseEventParams{
		Type: input.DispatchMouseEventTypeMouseWheel, X: b.X + b.Width/2, Y: b.Y + b.Height/2, DeltaX: 0.001, DeltaY: down, // no delta of zero is sent
	})
}

// wheelTo turns the wheel over an element until another one is in the page: over at most 100 steps.
func (p *tab) wheelTo(over, selector string, down float64) {
	p.t.Helper()
	for range 100 {
		if eval[bool](p, find+" !== null", selector) {
			return
		}
		p.wheel(over, down)
		p.settled()
	}
}

// drag presses in an element and moves over it through places, each a part of its width and height, and releases.
func (p *tab) drag(selector string, modifiers int64, places ...[2]float64) {
	p.t.Helper()
	b := p.box(selector)
	for i, at := range places {
		x, y := b.X+b.Width*at[0], b.Y+b.Height*at[1]
		if i == 0 {
			p.mouse(input.DispatchMouseEventTypeMouseMoved, x, y, 0, modifiers)
			p.mouse(input.DispatchMouseEventTypeMousePressed, x, y, 1, modifiers)
		}
		p.mouse(input.DispatchMouseEventTypeMouseMoved, x, y, 1, modifiers)
		if i == len(places)-1 {
			p.mouse(input.DispatchMouseEventTypeMouseReleased, x, y, 0, modifiers)
		}
	}
}

// swipe moves a finger sideways over an element, by a number of pixels.
func (p *tab) swipe(selector string, by float64) {
	p.t.Helper()
	b := p.box(selector)
	x, y := b.X+b.Width/2-by/2, b.Y+b.Height/2
	touch := func(kind input.DispatchTouchEventType, x float64) {
		points := []*input.TouchPoint{{X: x, Y: y}}
		if kind == input.DispatchTouchEventTypeTouchEnd {
			points = []*input.TouchPoint{}
		}
		call(p, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: kind, TouchPoints: points})
	}
	touch(input.DispatchTouchEventTypeTouchStart, x)
	for i := 1.0; i <= 12; i++ {
		touch(input.DispatchTouchEventTypeTouchMove, x+by*i/12)
	}
	touch(input.DispatchTouchEventTypeTouchEnd, 0)
}

// shift is the modifier of a key or a pointer.
const (
	control = 2
	shift   = 8
)

// codes are the virtual codes of keys without a character.
var codes = map[string]int64{
	"Enter": 13, "Escape": 27, "Tab": 9, "ArrowUp": 38, "ArrowDown": 40, "ArrowLeft": 37, "ArrowRight": 39, "Home": 36,
	"End": 35, "PageUp": 33, "PageDown": 34, "Backspace": 8,
}

// press presses keys one after the other, as web/model/keys.ts names them: "g g", "Mod+k", "R", "Escape".
func (p *tab) press(keys string) {
	p.t.Helper()
	for name := range strings.SplitSeq(keys, " ") {
		e := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown}
		if rest, found := strings.CutPrefix(name, "Mod+"); found {
			e.Modifiers, name = control, rest
		}
		e.Key = name
		switch code, special := codes[name]; {
		case special:
			e.WindowsVirtualKeyCode = code
			if name == "Enter" {
				e.Text = "\r"
			}
		case len([]rune(name)) != 1:
			p.t.Fatalf("unknown key %q", name)
		default:
			if e.Modifiers == 0 {
				e.Text = name
			}
			if strings.ToUpper(name) == name && strings.ToLower(name) != name {
				e.Modifiers |= shift
			}
			e.WindowsVirtualKeyCode = int64(strings.ToUpper(name)[0])
		}
		call(p, input.DispatchKeyEvent, e)
		call(p, input.DispatchKeyEvent, input.DispatchKeyEventParams{
			Type: input.DispatchKeyEventTypeKeyUp, Key: e.Key, Modifiers: e.Modifiers,
			WindowsVirtualKeyCode: e.WindowsVirtualKeyCode,
		})
	}
}

// write puts text into a field, in place of what is in it.
func (p *tab) write(selector, text string) {
	p.t.Helper()
	p.click(selector)
	eval[bool](p, find+`.select() ?? true`, selector)
	if text == "" {
		p.press("Backspace")
		return
	}
	call(p, input.InsertText, input.InsertTextParams{Text: text})
	p.wait(find+`.value === %s`, selector, text)
}

// choose chooses an option of a list by its value.
func (p *tab) choose(selector, value string) {
	p.t.Helper()
	p.see(selector)
	eval[bool](p, `((e) => {
		e.value = %s;
		return e.dispatchEvent(new Event("change", { bubbles: true }));
	})(document.querySelector(%s))`, value, selector)
}

// text returns the text of an element that is there.
func (p *tab) text(selector string) string {
	p.t.Helper()
	p.see(selector)
	return eval[string](p, find+`.innerText`, selector)
}

// see waits until an element is in the page, and miss until none is.
func (p *tab) see(selector string)  { p.t.Helper(); p.found(selector, true) }
func (p *tab) miss(selector string) { p.t.Helper(); p.found(selector, false) }

func (p *tab) found(selector string, want bool) {
	p.t.Helper()
	what, is := selector, " !== null"
	if !want {
		what, is = "the end of "+selector, " === null"
	}
	p.until(what, func() (bool, error) { return p.soon(filled(find+is, []any{selector})) })
}

// count returns how many elements a CSS selector finds.
func (p *tab) count(css string) int {
	p.t.Helper()
	return eval[int](p, `document.querySelectorAll(%s).length`, css)
}

// at is a place in an element, as parts of its width and height.
func at(x, y float64) [2]float64 { return [2]float64{x, y} }

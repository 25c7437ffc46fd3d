// A sideways swipe of a finger over an element. What scrolls sideways itself, and selecting text, are none.

/** far is how far a swipe goes at least, in pixels; it goes twice as far sideways as up or down. */
const far = 60;

/** onSwipe returns handlers that call step: with 1 for a swipe to the left, the next one, and -1 for one to the right. */
export function onSwipe(step: (by: 1 | -1, from: Element) => void) {
  return {
    onTouchStart: (e: TouchEvent & { currentTarget: Element }) => {
      began = e.touches.length === 1 ? { on: e.currentTarget, x: e.touches[0]!.clientX, y: e.touches[0]!.clientY } : null;
    },
    onTouchEnd: (e: TouchEvent & { currentTarget: Element }) => {
      const was = began;
      began = null;
      if (was?.on !== e.currentTarget || getSelection()?.isCollapsed === false) return;
      const [x, y] = [e.changedTouches[0]!.clientX - was.x, e.changedTouches[0]!.clientY - was.y];
      if (Math.abs(x) >= far && Math.abs(x) > 2 * Math.abs(y)) step(x < 0 ? 1 : -1, was.on);
    },
    onTouchCancel: () => (began = null), // the browser scrolls
  };
}

/** began is where the finger that is down came down; null = none, or several. */
let began: { on: Element; x: number; y: number } | null = null;

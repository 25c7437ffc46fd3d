// What follows the size of an element.
import { useLayoutEffect } from "preact/hooks";

/**
 * useResized calls f when one of the elements has another size, and once when they are shown. It is a layout effect,
 * because those end when the elements leave the page; the others end after the next painting, and observers run before.
 */
export function useResized(elements: { current: Element | null }[], f: () => void): void {
  useLayoutEffect(() => {
    const observer = new ResizeObserver(f);
    for (const e of elements) observer.observe(e.current!);
    return () => observer.disconnect();
  }, []);
}

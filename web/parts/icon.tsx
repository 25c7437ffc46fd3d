// Icons that fonts lack, each the path of a line in a square of 12.
import type { JSX } from "preact";

const paths = {
  fork: "M6 11V7M6 7L2.5 4V1M6 7l3.5-3V1",
  copy: "M4 4h6.5v6.5H4zM8 4V1.5H1.5V8H4",
  link: "M5 7l2-2M5 4.5l1.8-1.8a1.8 1.8 0 0 1 2.5 2.5L7.5 7M7 7.5L5.2 9.3a1.8 1.8 0 0 1-2.5-2.5L4.5 5",
  edit: "M1.8 10.2l.6-2.6 6-6 2 2-6 6zM7 3l2 2",
  label: "M1.5 1.5H6L10.5 6 6 10.5 1.5 6zM3.8 3.8h.01",
  continue: "M1.8 10.5V7q0-2.5 2.5-2.5H10M7.4 1.8l2.7 2.7-2.7 2.7",
};

/** Icon shows an icon, which has no name of its own. */
export function Icon({ name }: { name: keyof typeof paths }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 12 12" width="14" height="14" aria-hidden="true">
      <path d={paths[name]} fill="none" stroke="currentColor" stroke-width="1.2" stroke-linejoin="round" stroke-linecap="round" />
    </svg>
  );
}

// Icons that fonts lack.
import type { JSX } from "preact";

/** ForkIcon is a line that divides. */
export function ForkIcon(): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">
      <path d="M6 11V7M6 7L2.5 4V1M6 7l3.5-3V1" fill="none" stroke="currentColor" stroke-width="1.5" />
    </svg>
  );
}

/** CopyIcon is a sheet in front of another one. */
export function CopyIcon(): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 12 12" width="14" height="14" aria-hidden="true">
      <path d="M4 4h6.5v6.5H4zM8 4V1.5H1.5V8H4" fill="none" stroke="currentColor" stroke-width="1.2" />
    </svg>
  );
}

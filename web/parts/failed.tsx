// How many calls and answers failed.
import type { JSX } from "preact";
import { act } from "../model/actions.ts";
import { grouped } from "../model/format.ts";
import { useSession } from "./use-session.ts";

/** Failed shows how many failed, on all lines, and leads to the next one; nothing where none did. */
export function Failed(): JSX.Element | null {
  const n = useSession().failures.value.value?.total ?? 0;
  if (n === 0) return null;
  return <button type="button" class="badge failed" title="Go to the next failure (!)" onClick={() => act("next-failure")}>{grouped(n)} failed</button>;
}

// Search across everything: sessions, prompts, messages, and what the page can do.
import { useSignal, useSignalEffect } from "@preact/signals";
import type { JSX } from "preact";
import { closeDialog } from "../model/dialogs.ts";
import { commands, find, type Found } from "../model/find.ts";
import { Dialog } from "../parts/dialog.tsx";
import { Hits } from "../parts/hits.tsx";

/** pause is the time without a key after which the server is asked, in ms. */
const pause = 150;

/** Palette shows the search. */
export function Palette(): JSX.Element {
  const text = useSignal("");
  const found = useSignal<Found[]>([]);
  const failed = useSignal("");
  const at = useSignal(0);
  useSignalEffect(() => {
    const wanted = text.value;
    const abort = new AbortController();
    at.value = 0;
    const timer = setTimeout(() => {
      find(wanted, abort.signal).then((list) => {
        found.value = list;
        failed.value = "";
      }).catch((err: unknown) => {
        if (!abort.signal.aborted) failed.value = err instanceof Error ? err.message : String(err);
      });
    }, wanted ? pause : 0);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  });
  const list = text.value ? [...found.value, ...commands(text.value)] : [...commands(""), ...found.value];
  const choose = (f: Found | undefined) => {
    if (!f) return;
    closeDialog();
    queueMicrotask(f.go); // after the focus is back on the page
  };
  return (
    <Dialog title="Search everything" class="palette" onClose={closeDialog}>
      <input type="text" autoFocus placeholder="Sessions, prompts, messages, commands" aria-label="Search everything"
        role="combobox" aria-expanded="true" aria-controls="found" aria-activedescendant={list.length ? "found-" + at.value : undefined}
        value={text.value} onInput={(e) => (text.value = e.currentTarget.value)}
        onKeyDown={(e) => {
          const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
          if (step !== undefined) at.value = Math.max(0, Math.min(list.length - 1, at.value + step));
          else if (e.key === "Enter") choose(list[at.value]);
          else return;
          e.preventDefault();
        }} />
      {failed.value && <p role="alert" class="failed">{failed.value}</p>}
      <div id="found" role="listbox" aria-label="Found">
        {list.map((f, i) => (
          <div key={i} role="presentation">
            {f.group !== list[i - 1]?.group && <h3 role="presentation">{f.group}</h3>}
            <div id={"found-" + i} role="option" aria-selected={i === at.value} onClick={() => choose(f)}
              onPointerMove={() => (at.value = i)}>
              <span class="found-title"><Hits text={f.title} search={text.value} /></span>
              <span class="found-detail">{f.detail}</span>
            </div>
          </div>
        ))}
      </div>
    </Dialog>
  );
}

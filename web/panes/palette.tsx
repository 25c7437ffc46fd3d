// Search across everything: sessions, prompts, messages, and what the page can do.
import { useSignal, useSignalEffect } from "@preact/signals";
import type { JSX } from "preact";
import { closeDialog } from "../model/dialogs.ts";
import { commands, find, type Found } from "../model/find.ts";
import { Dialog } from "../parts/dialog.tsx";
import { Hits } from "../parts/hits.tsx";
import { useResource } from "../parts/use-resource.ts";

/** searchDelay is the time after the last key before a search begins, in ms. */
const searchDelay = 150;

/** indexes is how often a search is made again while the server indexes, in ms. */
const indexes = 1_000;

/** wait resolves after a time, or rejects when the signal is aborted. */
function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((done, fail) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      fail(new Error("another search"));
    });
  });
}

/** Palette shows the search. Of what was found only that for the words which are in the field is shown. */
export function Palette(): JSX.Element {
  const text = useSignal("");
  const at = useSignal(0);
  const found = useResource(text.value.trim(), async (wanted, signal) => {
    if (wanted) await wait(searchDelay, signal);
    return find(wanted, signal);
  });
  useSignalEffect(() => {
    if (found.value.value?.indexing == null) return;
    const timer = setTimeout(found.retry, indexes);
    return () => clearTimeout(timer);
  });
  const results = found.value.value;
  const list = text.value ? [...(results?.list ?? []), ...commands(text.value)] : [...commands(""), ...(results?.list ?? [])];
  const status = found.error.value ? "" : !results ? "Searching…" : results.indexing !== null
    ? `Searching: ${Math.floor(results.indexing * 100)} % is indexed so far.` : list.length === 0 ? "Nothing has these words." : "";
  const choose = (f: Found | undefined) => {
    if (!f) return;
    closeDialog("palette");
    queueMicrotask(f.go); // after the focus is back on the page
  };
  return (
    <Dialog title="Search everything" class="palette" onClose={() => closeDialog("palette")}>
      <input type="text" autoFocus placeholder="Sessions, prompts, messages, commands" aria-label="Search everything"
        role="combobox" aria-expanded="true" aria-controls="found" aria-activedescendant={list.length ? "found-" + at.value : undefined}
        value={text.value} onInput={(e) => {
          text.value = e.currentTarget.value;
          at.value = 0;
        }}
        onKeyDown={(e) => {
          const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
          if (step !== undefined) at.value = Math.max(0, Math.min(list.length - 1, at.value + step));
          else if (e.key === "Enter") choose(list[at.value]);
          else return;
          e.preventDefault();
        }} />
      {found.error.value && (
        <p role="alert" class="failed">{found.error.value} <button type="button" class="link" onClick={found.retry}>try again</button></p>
      )}
      <p class="quiet" role="status">{status}</p>
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

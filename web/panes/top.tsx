// The bar over everything: which session, which branch, whether it is live, and what can be done with it.
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { api, nameOf } from "../api/client.ts";
import { readOnly } from "../model/access.ts";
import { useActions } from "../model/actions.ts";
import { begun } from "../model/startup.ts";
import { openExport, openHelp, openPalette } from "../model/dialogs.ts";
import { go, view } from "../model/nav.ts";
import { Failed } from "../parts/failed.tsx";
import { SessionLink } from "../parts/link.tsx";
import { say } from "../parts/toast.tsx";
import { useResource } from "../parts/use-resource.ts";
import { useOpened, useSession } from "../parts/use-session.ts";

/** Top shows the bar. */
export function Top(): JSX.Element {
  const opened = useOpened();
  const s = opened?.summary.value;
  const one = opened && !opened.missing.value;
  const title = s && nameOf(s);
  useActions({ "copy-link": copyLink });
  useEffect(() => {
    document.title = title ? title + " · coppice" : "coppice";
  }, [title]);
  return (
    <header class="top">
      <SessionLink class="home" to={null}>coppice</SessionLink>
      {s && <h1 title={s.cwd}>{title}</h1>}
      {one && <BranchChoice />}
      {one && <Live />}
      {one && <Failed />}
      {readOnly.value && <span class="badge">read-only</span>}
      <span class="grow" />
      <button class="phone" onClick={openPalette} title="Ctrl+K">Search<span>, more</span></button>
      {one && <button onClick={openExport} title="x">Export</button>}
      {one && <button onClick={copyLink} title="y">Copy link</button>}
      <button onClick={openHelp} title="?" aria-label="Help">?</button>
    </header>
  );
}

function copyLink(): void {
  navigator.clipboard?.writeText(location.href).then(() => say("The link to this view was copied."),
    () => say("The browser does not allow copying; the link is in the address bar."));
}

/** Live says whether new commits arrive, and how many there are. */
function Live(): JSX.Element {
  const { connection, head } = useSession();
  const lost = connection.value === "lost";
  return (
    <span class={lost ? "badge lost" : "badge live"} role="status">
      {lost ? "reconnecting…" : "connected"} · seq {head.value?.seq ?? "…"}
    </span>
  );
}

/** BranchChoice shows another branch, without moving the head. */
function BranchChoice(): JSX.Element | null {
  const { id, head, cursor } = useSession();
  const branches = useResource(begun.value && head.value ? head.value.seq : null, async (_, signal) => {
    const { data } = await api.GET("/v1/sessions/{id}/branches", { params: { path: { id } }, signal });
    return data!.branches;
  }, true);
  const list = (branches.value.value ?? []).filter((b) => b.head !== null).slice(0, 200);
  const names = (of: string | null) => list.filter((b) => b.head === of && b.name !== head.value?.branch).map((b) => b.name);
  const line = view.value.line;
  const ends = [...new Set(list.map((b) => b.head))].filter((end) => end !== head.value?.entry);
  const chosen = line === null ? "" : ends.includes(line) ? line : "?";
  if (list.length < 2 && line === null) return null;
  const here = head.value?.branch ?? "head";
  return (
    <select class="branch" aria-label="Branch that is shown" value={chosen}
      onChange={(e) => go({ line: e.currentTarget.value || null, at: null, seq: null })}>
      <option value="">{[here + " (head)", ...names(head.value?.entry ?? null)].join(", ")}</option>
      {ends.map((end) => <option key={end} value={end!}>{names(end).join(", ")}</option>)}
      {chosen === "?" && (
        <option value="?">{cursor.commit.value ? cursor.commit.value.branch + ", up to here" : "another line"}</option>
      )}
    </select>
  );
}

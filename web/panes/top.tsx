// The bar over everything: which session, which branch, whether it is live, and what can be done with it.
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { nameOf } from "../api/client.ts";
import { readOnly } from "../model/access.ts";
import { useActions } from "../model/actions.ts";
import { wordsOf } from "../model/credentials.ts";
import { openExport, openHelp, openPalette } from "../model/dialogs.ts";
import { go, view } from "../model/nav.ts";
import { copy } from "../parts/copy.ts";
import { CredentialsMark } from "../parts/credentials.tsx";
import { Failed } from "../parts/failed.tsx";
import { SessionLink } from "../parts/link.tsx";
import { useSessionOrNull, useSession } from "../parts/use-session.ts";

/** Top shows the bar. */
export function Top(): JSX.Element {
  const opened = useSessionOrNull();
  const s = opened?.summary.value;
  const one = opened && !opened.missing.value;
  const title = s && nameOf(s);
  const copyLink = () => {
    const found = wordsOf(opened?.credentials.value.peek() ?? null);
    copy(location.href, "The link to this view" + (found && `, whose session has ${found},`));
  };
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
      {one && <CredentialsMark />}
      {readOnly.value && <span class="badge">read-only</span>}
      <span class="grow" />
      <button class="phone" onClick={openPalette} title="Ctrl+K">Search<span>, more</span></button>
      {one && <button onClick={openExport} title="x">Export</button>}
      {one && <button onClick={copyLink} title="y">Copy link</button>}
      <button onClick={openHelp} title="?" aria-label="Help">?</button>
    </header>
  );
}

/** Live shows whether new commits arrive, and how many there are. */
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
  const { branches, head, cursor } = useSession();
  const ends = branches.ends.value;
  const line = view.value.line;
  const at = head.value?.entry ?? null;
  const chosen = line === null ? "" : ends.some((e) => e.entry === line && e.entry !== at) ? line : "?";
  if (ends.length < 2 && line === null) return null;
  const commit = cursor.commit.value;
  return (
    <select class="branch" aria-label="Branch that is shown" value={chosen}
      onChange={(e) => go({ line: e.currentTarget.value || null, at: null, seq: null })}>
      <option value="">{(ends.find((e) => e.entry === at)?.name ?? head.value?.branch ?? "head") + " (head)"}</option>
      {ends.filter((e) => e.entry !== at).map((e) => <option key={e.entry} value={e.entry}>{e.name}</option>)}
      {chosen === "?" && (
        <option value="?">{commit ? branches.titleOf(commit.branch) + ", up to here" : "another line"}</option>
      )}
    </select>
  );
}

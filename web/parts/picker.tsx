// The versions of a message: which one is read, and the way to the others. Choosing one never moves the head.
import { useRef, useState } from "preact/hooks";
import type { JSX } from "preact";
import type { Entry } from "../api/client.ts";
import type { Mark } from "../api/pages.ts";
import { said } from "../model/path.ts";
import { firstWords, textOf } from "../model/message.ts";
import { useResource } from "./use-resource.ts";
import { useSession } from "./use-session.ts";
import { VersionDiff, type Version } from "./version-diff.tsx";

/** Picker shows ‹2/3›, and the first words of the versions while it is pointed at or has the focus. */
export function Picker({ mark }: { mark: Mark }): JSX.Element {
  const { conversation, versions } = useSession();
  const [near, setNear] = useState(false);
  const [compared, compare] = useState<[Version, Version] | null>(null);
  const box = useRef<HTMLSpanElement>(null);
  const at = mark.versions.indexOf(mark.id);
  const step = (by: number, name: string, sign: string) => (
    <button type="button" aria-label={name} disabled={mark.versions[at + by] === undefined}
      onClick={() => {
        conversation.focus(mark.versions[at + by]!); // the focus stays where it was
        void versions.choose(mark, by, offset(box.current!));
      }}>{sign}</button>
  );
  return (
    <span class="picker" ref={box} role="group" aria-label={`version ${mark.version} of ${mark.of}`}
      onPointerEnter={(e) => e.pointerType === "mouse" && setNear(true)} onPointerLeave={() => setNear(false)}
      onFocusIn={() => setNear(true)}
      onFocusOut={(e) => !box.current?.contains(e.relatedTarget as Node | null) && setNear(false)}
      onKeyDown={(e) => e.key === "Escape" && setNear(false)}>
      {step(-1, "previous version", "‹")}
      <span>{mark.version}/{mark.of}</span>
      {step(1, "next version", "›")}
      {near && (
        <Peek mark={mark} choose={(id) => void versions.chooseVersion(mark, id, offset(box.current!))} compare={(a, b) => compare([a, b])} />
      )}
      {compared && <VersionDiff a={compared[0]} b={compared[1]} onClose={() => compare(null)} />}
    </span>
  );
}

/** offset returns how far the article of an element is below the upper edge of the conversation, in pixels. */
export function offset(e: Element): number {
  const article = e.closest("[data-key]")?.getBoundingClientRect().top ?? 0;
  return article - (e.closest(".scroller")?.getBoundingClientRect().top ?? 0);
}

interface PeekProps {
  mark: Mark;
  choose: (id: string) => void;
  compare: (a: Version, b: Version) => void;
}

function Peek({ mark, choose: pick, compare }: PeekProps): JSX.Element | null {
  const { versions } = useSession();
  const list = useResource(mark.id, (_, signal) => versions.peek(mark, signal)).value.value ?? [];
  if (list.length === 0) return null;
  const version = (e: Entry): Version => (
    { number: mark.version - mark.versions.indexOf(mark.id) + mark.versions.indexOf(e.id), text: textOf(said(e)?.parts ?? []) }
  );
  const shown = list.find((e) => e.id === mark.id);
  return (
    <span class="peek">
      {list.map((e) => {
        const m = said(e);
        const { number } = version(e);
        return (
          <span key={e.id}>
            <button type="button" aria-current={e === shown ? "true" : undefined} onClick={() => pick(e.id)}>
              <b>{number}</b> {m ? firstWords(m, 70) : e.type.replaceAll("_", " ")}
            </button>
            {m && shown && e !== shown && (
              <button type="button" aria-label={`compare with version ${number}`}
                onClick={() => (number < mark.version ? compare(version(e), version(shown)) : compare(version(shown), version(e)))}>
                compare
              </button>
            )}
          </span>
        );
      })}
      {mark.of > list.length && <span class="quiet">{mark.of - list.length} more</span>}
    </span>
  );
}

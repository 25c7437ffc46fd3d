// A JSON text as a tree of rows of one height, of which only those on screen are in the page.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { Changes } from "../model/changes.ts";
import { bytes, count } from "../model/format.ts";
import { chunk, longest, rows, type Opened, type Row } from "../model/jsonrows.ts";
import { symbols, words } from "./changelist.tsx";
import { useResized } from "./resized.ts";

export interface JSONTreeProps {
  text: string;
  changed: Changes;
  /** selected is the pointer of the value that is selected; null = none. */
  selected: string | null;
  onSelect: (path: string) => void;
}

/** beyond is the number of rows that are drawn above and below those on screen. */
const beyond = 8;

/** deepest is the depth from which rows are no longer indented further, and show their depth. */
const deepest = 9;

/** JSONTree shows a text. What a person opened stays open when the text changes. */
export function JSONTree({ text, changed, selected, onSelect }: JSONTreeProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const opened = useSignal<Opened>({ open: new Map(), shown: new Map() });
  const top = useSignal(0);
  const tall = useSignal(400);
  const focus = useSignal(0);
  const height = matchMedia("(pointer: coarse)").matches ? 44 : 24;
  const list = useMemo(() => rows(text, changed, opened.value), [text, changed, opened.value]);
  useResized([box], () => (tall.value = box.current!.clientHeight));
  const change = changed.list[0]?.path;
  useLayoutEffect(() => { // what a commit changed is in sight, also when the pane is opened
    const at = change === undefined ? -1 : list.findIndex((row) => row.path === change && row.more === 0);
    const el = box.current;
    const shown = el && at * height >= el.scrollTop && (at + 1) * height <= el.scrollTop + el.clientHeight;
    if (el && at >= 0 && !shown) el.scrollTop = (at + 0.5) * height - el.clientHeight / 2;
  }, [text, change]);
  const act = (row: Row, i: number, select: boolean) => {
    focus.value = i;
    const { open, shown } = opened.peek();
    if (row.more > 0) {
      opened.value = { open, shown: new Map(shown).set(row.path, (shown.get(row.path) ?? chunk) + chunk) };
    } else if (select || row.mark === "remove" || (row.kind !== "object" && row.kind !== "array")) onSelect(row.path);
    else opened.value = { open: new Map(open).set(row.path, !row.open), shown };
  };
  const first = Math.max(0, Math.floor(top.value / height) - beyond);
  const last = Math.min(list.length, Math.ceil((top.value + tall.value) / height) + beyond);
  return (
    <div class="json" ref={box} role="tree" aria-label="State" tabIndex={0}
      aria-activedescendant={focus.value >= first && focus.value < last ? "json-" + focus.value : undefined}
      onScroll={(e) => (top.value = e.currentTarget.scrollTop)}
      onKeyDown={(e) => {
        const at = Math.min(focus.value, list.length - 1);
        const next = key(e.key, at, list, act);
        if (next === null) return;
        e.preventDefault();
        e.stopPropagation();
        focus.value = next;
        reveal(box.current!, next, height);
      }}>
      <div class="json-sizer" style={{ height: list.length * height + "px" }}>
        {list.slice(first, last).map((row, i) => (
          <Line key={first + i} i={first + i} row={row} height={height} focused={first + i === focus.value}
            selected={row.path === selected && row.more === 0} onAct={act} />
        ))}
      </div>
    </div>
  );
}

interface LineProps {
  row: Row;
  i: number;
  height: number;
  focused: boolean;
  selected: boolean;
  onAct: (row: Row, i: number, select: boolean) => void;
}

function Line({ row, i, height, focused, selected, onAct }: LineProps): JSX.Element {
  const nested = row.kind === "object" || row.kind === "array";
  const mark = row.mark;
  const style = { top: i * height + "px", height: height + "px", paddingLeft: 36 + Math.min(row.depth, deepest) * 14 + "px" };
  if (row.more > 0) {
    return (
      <div class="line more" id={"json-" + i} role="treeitem" aria-level={row.depth + 1} style={style} onClick={() => onAct(row, i, false)}>
        {count(row.more)} more: show {Math.min(chunk, row.more)}
      </div>
    );
  }
  return (
    <div id={"json-" + i} role="treeitem" aria-level={row.depth + 1} aria-expanded={nested && mark !== "remove" ? row.open : undefined}
      aria-selected={selected} style={style} title={row.path || "the whole state"}
      class={`line ${mark ?? ""} ${selected ? "selected" : ""} ${focused ? "focused" : ""}`} onClick={() => onAct(row, i, false)}>
      {mark && <span class="sign"><span aria-hidden="true">{symbols[mark]}</span><span class="hidden-text">{words[mark]} </span></span>}
      {nested && mark !== "remove" && <span class="twisty" aria-hidden="true">{row.open ? "▾" : "▸"}</span>}
      {row.depth > deepest && <small>({row.depth})</small>}
      {row.depth > 0 && <span class="key">{row.key === "" ? '""' : row.key}</span>}
      <Preview row={row} nested={nested} />
      {row.inside > 0 && !row.open && <span class="inside" title={row.inside + " changes inside"}>~{row.inside}</span>}
      {nested && mark !== "remove" && (
        <button class="past" tabIndex={-1} title={"History of " + (row.path || "the whole state")}
          onClick={(e) => {
            e.stopPropagation();
            onAct(row, i, true);
          }}>history</button>
      )}
    </div>
  );
}

function Preview({ row, nested }: { row: Row; nested: boolean }): JSX.Element {
  if (nested && row.mark !== "remove") {
    const braces = row.kind === "object" ? "{}" : "[]";
    if (row.count < 0) return <span class="value nested">{braces[0]} {bytes(row.size)} {braces[1]}</span>;
    const short = !row.open && row.size <= 60 ? row.text : `${braces[0]}${row.open ? "" : count(row.count)}${braces[1]}`;
    return <span class="value nested">{row.open && row.count > 0 ? "" : short}{row.open && <small>{count(row.count)}</small>}</span>;
  }
  return (
    <span class={"value " + row.kind}>
      {row.mark === "replace" && row.before !== null && <><del>{row.before.slice(0, 80)}</del>{" → "}</>}
      {row.mark === "remove" ? <del>{row.text}</del> : row.text}
      {row.size > longest && <small> … {bytes(row.size)}</small>}
    </span>
  );
}

/** key returns the row that a key leads to; null = the key is not the tree's. */
function key(name: string, at: number, list: Row[], act: LineProps["onAct"]): number | null {
  const row = list[at];
  if (!row) return null;
  const nested = (row.kind === "object" || row.kind === "array") && row.mark !== "remove" && row.more === 0;
  switch (name) {
    case "ArrowDown": return Math.min(list.length - 1, at + 1);
    case "ArrowUp": return Math.max(0, at - 1);
    case "Home": return 0;
    case "End": return list.length - 1;
    case "PageDown": return Math.min(list.length - 1, at + 20);
    case "PageUp": return Math.max(0, at - 20);
    case "ArrowRight":
      if (nested && !row.open) act(row, at, false);
      return nested && row.open ? Math.min(list.length - 1, at + 1) : at;
    case "ArrowLeft":
      if (nested && row.open) act(row, at, false);
      else return Math.max(0, list.findLastIndex((r, i) => i < at && r.depth < row.depth));
      return at;
    case "Enter":
      act(row, at, false);
      return at;
    case " ":
      act(row, at, true);
      return at;
  }
  return null;
}

function reveal(el: HTMLElement, i: number, height: number): void {
  if (i * height < el.scrollTop) el.scrollTop = i * height;
  else if ((i + 1) * height > el.scrollTop + el.clientHeight) el.scrollTop = (i + 1) * height - el.clientHeight;
}

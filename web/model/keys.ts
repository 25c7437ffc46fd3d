// The keyboard: one table makes the handler, the help and the test. Pure.

/** A Key is a row of the table. keys are as KeyboardEvent.key has them; "g g" is a sequence, "Mod+k" is Ctrl or Command. */
export interface Key {
  keys: string[];
  action: string;
  help: string;
  group: "Conversation" | "Tree" | "Time" | "Session" | "Page";
  writes?: true; // it does nothing where the page may only read
}

export const keys: Key[] = [
  { keys: ["j"], action: "next", help: "next message", group: "Conversation" },
  { keys: ["k"], action: "previous", help: "previous message", group: "Conversation" },
  { keys: ["J"], action: "next-prompt", help: "next prompt", group: "Conversation" },
  { keys: ["p", "K"], action: "previous-prompt", help: "previous prompt", group: "Conversation" },
  { keys: ["n"], action: "next-hit", help: "next place of what is looked for", group: "Conversation" },
  { keys: ["N"], action: "previous-hit", help: "previous place of what is looked for", group: "Conversation" },
  { keys: ["g g"], action: "root", help: "first message", group: "Conversation" },
  { keys: ["G"], action: "end", help: "last message of this line", group: "Conversation" },
  { keys: ["Enter"], action: "toggle", help: "open or fold what the message contains", group: "Conversation" },
  { keys: ["o"], action: "toggle-tools", help: "open or fold all tools", group: "Conversation" },
  { keys: ["t"], action: "toggle-thinking", help: "open or fold all thinking", group: "Conversation" },
  { keys: ["!"], action: "next-failure", help: "next failure, on any line", group: "Conversation" },
  { keys: ["v"], action: "toggle-events", help: "show or hide program events", group: "Conversation" },
  { keys: ["f"], action: "follow", help: "follow what is new", group: "Conversation" },
  { keys: ["h"], action: "older-version", help: "previous version of this message", group: "Tree" },
  { keys: ["l"], action: "newer-version", help: "next version of this message", group: "Tree" },
  { keys: ["["], action: "previous-fork", help: "previous fork", group: "Tree" },
  { keys: ["]"], action: "next-fork", help: "next fork", group: "Tree" },
  { keys: ["L"], action: "label", help: "label this message", group: "Tree", writes: true },
  { keys: ["e"], action: "edit", help: "edit this message: a new version, this one stays", group: "Tree", writes: true },
  { keys: [","], action: "previous-commit", help: "commit before", group: "Time" },
  { keys: ["."], action: "next-commit", help: "commit after", group: "Time" },
  { keys: ["<"], action: "previous-snapshot", help: "snapshot before", group: "Time" },
  { keys: [">"], action: "next-snapshot", help: "snapshot after", group: "Time" },
  { keys: ["c"], action: "compare", help: "compare with what is marked; mark this point if nothing is", group: "Time" },
  { keys: ["m"], action: "pane-map", help: "map", group: "Session" },
  { keys: ["s"], action: "pane-state", help: "state", group: "Session" },
  { keys: ["w"], action: "pane-context", help: "what the model saw", group: "Session" },
  { keys: ["u"], action: "pane-usage", help: "tokens and cost", group: "Session" },
  { keys: ["x"], action: "export", help: "export", group: "Session" },
  { keys: ["R"], action: "roll-back", help: "roll back to this point (asks first)", group: "Session", writes: true },
  { keys: ["/"], action: "find", help: "find in this session", group: "Page" },
  { keys: ["Mod+k"], action: "palette", help: "search everything", group: "Page" },
  { keys: ["y"], action: "copy-link", help: "copy the link to this view", group: "Page" },
  { keys: ["?"], action: "help", help: "this help", group: "Page" },
  { keys: ["Escape"], action: "out", help: "close what is open", group: "Page" },
];

/** nameOf returns the name of a key press in the table: "Mod+k", "G", "Escape". */
export function nameOf(e: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey">): string {
  return (e.ctrlKey || e.metaKey ? "Mod+" : "") + (e.altKey ? "Alt+" : "") + e.key;
}

/**
 * press returns what a key press does after the one before it (the name of the first key of a sequence, or ""):
 * an action, or the sequence that it begins.
 */
export function press(before: string, name: string): { action: string; pending: string } {
  const all = keys.flatMap((k) => k.keys.map((text) => ({ text, action: k.action })));
  const find = (text: string) => all.find((k) => k.text === text)?.action ?? "";
  const action = (before && find(before + " " + name)) || find(name);
  if (action) return { action, pending: "" };
  return { action: "", pending: all.some((k) => k.text.startsWith(name + " ")) ? name : "" };
}

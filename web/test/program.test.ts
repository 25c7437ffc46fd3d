import "./page.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Entry } from "../api/client.ts";
import { hasEscapes, stretches } from "../model/ansi.ts";
import { folded, itemsOf, lineOf, mostLoaded, said, withNewer } from "../model/path.ts";
import { asidesOf, isEvent, messageAsides, noticeOf, runText } from "../model/program.ts";
import { parse } from "../text/parse.ts";

let made = 0;
const entry = (e: object): Entry => ({ type: "message", id: "e" + made++, parentId: null, ...e });
const user = (text: string) => entry({ message: { role: "user", content: text } });
const progress = () => entry({ type: "custom", customType: "claude-code.progress", data: { type: "progress", data: { type: "hook_progress" } } });
const note = (type: string, data: object) => entry({ type: "custom", customType: type, data });

test("events of programs are one line, hidden unless they are wanted or the cursor is at one", () => {
  const run = [progress(), progress(), progress()];
  const list = itemsOf([user("go"), ...run, user("on"), progress()]);
  assert.deepEqual(folded(list, false, null).map((i) => i.entry.id), [list[0]!.entry.id, list[4]!.entry.id]);
  const all = folded(list, true, null);
  assert.deepEqual(all.map((i) => i.run?.length ?? 0), [0, 3, 0, 1]);
  assert.deepEqual(all[1]!.ids, run.map((e) => e.id));
  assert.equal(folded(list, false, run[1]!.id).find((i) => i.run)?.run?.length, 3);
  assert.equal(runText(run), "3 progress events");
  assert.equal(runText([progress()]), "1 progress event");
  const mixed = [...run, note("codex.token_count", { type: "event_msg" }),
    note("claude-code.attachment", { attachment: { type: "task_reminder" } })];
  assert.equal(runText(mixed), "5 program events: 3 progress, token count, task reminder");
});

test("events between a call and its result do not part them", () => {
  const call = entry({ message: { role: "assistant", content: [{ type: "toolCall", id: "1", name: "bash", arguments: {} }] } });
  const result = entry({ message: { role: "toolResult", toolCallId: "1", content: "out" } });
  const list = folded(itemsOf([call, progress(), result, progress(), user("on")]), true, null);
  assert.deepEqual(list.map((i) => i.run?.length ?? 0), [0, 2, 0]);
  assert.equal(list[0]!.results.size, 1);
});

test("events take little of what a line holds", () => {
  let line = lineOf([user("first")], [], false, true);
  for (let i = 0; i < 40; i++) {
    const page = Array.from({ length: 100 }, progress);
    line = withNewer(line, lineOf(page, [], true, true));
  }
  assert.equal(line.entries.length, 4001, "4,000 events and a message are less than 1,000 messages");
  for (let i = 0; i < 80; i++) line = withNewer(line, lineOf(Array.from({ length: 100 }, progress), [], true, true));
  assert.equal(line.entries.length, 8 * mostLoaded);
  assert.equal(line.older, true);
});

test("an entry is an event if a program noted it for itself", () => {
  assert.ok(isEvent(note("sum", { n: 1 })));
  assert.ok(isEvent(entry({ type: "usage" })));
  assert.ok(!isEvent(note("coppice.move", { cwd: "/x" })));
  assert.ok(!isEvent(note("claude-code.system", { subtype: "api_error", error: { status: 529 } })));
  assert.ok(!isEvent(user("hi")));
  const failed = noticeOf(note("claude-code.system", { subtype: "api_error", error: { status: 529 }, retryAttempt: 2, maxRetries: 10 }))!;
  assert.deepEqual([failed.look, failed.title], ["failure", "the provider did not answer: status 529, attempt 2 of 10"]);
});

test("commands, reminders and notifications are told apart", () => {
  const looks = (text: string) => asidesOf(text).map((a) => `${a.look} ${a.title}`);
  assert.deepEqual(looks("<command-name>/model</command-name>\n<command-message>model</command-message>\n<command-args>opus\nplan</command-args>"),
    ["command /model opus plan"]);
  assert.deepEqual(looks("<command-name>/clear</command-name> <command-args></command-args>"), ["command /clear"]);
  assert.deepEqual(looks("<local-command-stdout>Set model</local-command-stdout>"), ["output output: Set model"]);
  assert.deepEqual(looks("<bash-input>ls -l</bash-input>"), ["command ! ls -l"]);
  assert.deepEqual(looks("<bash-stdout>a</bash-stdout><bash-stderr></bash-stderr>"), ["output output: a"]);
  assert.deepEqual(looks("<system-reminder>\nBe brief.\n</system-reminder>"), ["reminder reminder: Be brief."]);
  assert.deepEqual(looks("<task-notification><task-id>b1</task-id><summary>Build done</summary></task-notification>"),
    ["notice task notification: Build done"]);
  assert.deepEqual(looks("[Request interrupted by user for tool use]"), ["notice interrupted by the user"]);
  assert.deepEqual(looks("<environment_context>linux</environment_context>"), ["reminder environment context: linux"]);
  const of = (e: Entry) => messageAsides(e, said(e)!)?.map((a) => a.look);
  assert.deepEqual(of(user("<command-name>/exit</command-name>")), ["command"]);
  assert.equal(of(user("hello")), undefined);
  const shown = entry({ type: "custom_message", customType: "review", content: "looks good", display: true });
  assert.equal(of(shown), undefined, "a message that its program shows is one");
  assert.deepEqual(of(entry({ type: "custom_message", customType: "codex.agent_message", content: "Sender: /root/a\nPayload:\nx" })), ["notice"]);
});

test("output of a terminal has its colours, and no escape sequences", () => {
  const of = (text: string) => stretches(text).map((s) => (s.style ? `[${s.style}]` : "") + s.text);
  assert.deepEqual(of("\x1b[1mFAIL\x1b[0m x"), ["[ansi-bold]FAIL", " x"]);
  assert.deepEqual(of("\x1b[31;1ma\x1b[39mb\x1b[mc"), ["[ansi-red ansi-bold]a", "[ansi-bold]b", "c"]);
  assert.deepEqual(of("\x1b[38;5;10mg\x1b[38;2;200;20;20mr\x1b[38;2;102;102;102mn"), ["[ansi-green]g", "[ansi-red]r", "n"]);
  assert.deepEqual(of("\x1b[2K\x1b[1G\x1b[?25lx\x1b]0;title\x07y\x1b(Bz"), ["xyz"]);
  assert.deepEqual(of("10%\r50%\r100%\r\ndone\r\n"), ["100%\ndone\n"]);
  assert.deepEqual(of("\x1b[48;5;1;32mx"), ["[ansi-green]x"], "a background is left out");
  assert.ok(stretches("\x1b[31mx\x1b[0my".repeat(2000)).length <= 400);
  assert.ok(!hasEscapes("a\r\nb"));
});

test("items of task lists are boxes", () => {
  const list = JSON.stringify(parse("- [ ] open\n- [x] **done**\n- [link](https://example.org)\n- [y] no\n").root);
  assert.match(list, /☐ open/);
  assert.match(list, /☑ /);
  assert.equal(list.match(/task-list-item/g)?.length, 2);
  assert.ok(!list.includes('"input"'));
});

test("one line of coloured output has its words alone", () => {
  const [aside] = asidesOf("<local-command-stdout>\u001b[1mSyncing\u001b[0m \u001b[2mtides\u001b[22m</local-command-stdout>");
  assert.equal(aside?.title, "output: Syncing tides");
});

// Opening sessions in tests.
import "./page.ts";
import { afterEach } from "node:test";
import { view } from "../model/nav.ts";
import { openSession, type OpenSession } from "../model/session.ts";
import { home, type View } from "../model/url.ts";

const opened: OpenSession[] = [];

afterEach(() => opened.splice(0).forEach((s) => s.end()));

/** shows opens a session as the page does: the URL names it first. It ends with the test. */
export function shows(id: string, at: Partial<View> = {}): OpenSession {
  view.value = { ...home(id), ...at };
  const s = openSession(id);
  opened.push(s);
  return s;
}

// The list of sessions, newest activity first.
import { signal, useSignalEffect } from "@preact/signals";
import type { JSX } from "preact";
import { api, type Session } from "../api/client.ts";
import { ago } from "../model/format.ts";
import { base, open, view } from "../model/nav.ts";

const sessions = signal<Session[]>([]);

/** Sessions shows the list. */
export function Sessions(): JSX.Element {
  useSignalEffect(() => {
    void api.GET("/v1/sessions", { params: { query: { limit: 100 } } }).then(({ data }) => {
      sessions.value = data!.sessions;
    });
  });
  const now = new Date();
  return (
    <nav class="sessions" aria-label="Sessions">
      {sessions.value.map((s) => (
        <a key={s.id} href={base + "/s/" + encodeURIComponent(s.id)}
          aria-current={view.value.session === s.id ? "page" : undefined}
          onClick={(e) => {
            if (e.metaKey || e.ctrlKey || e.shiftKey || e.button !== 0) return;
            e.preventDefault();
            open(s.id);
          }}>
          <strong>{s.title || s.first || s.id}</strong>
          <span>{s.status} {ago(s.updated, now)}</span>
        </a>
      ))}
    </nav>
  );
}

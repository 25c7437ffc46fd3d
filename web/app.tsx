// The page: which panes are shown. What they show is in model/, how in panes/.
import { effect, signal, untracked } from "@preact/signals";
import { render, type JSX } from "preact";
import { locked } from "./api/client.ts";
import { start as startAccess } from "./model/access.ts";
import { listen } from "./model/actions.ts";
import { go, sessionId, view } from "./model/nav.ts";
import { openSession, type OpenSession } from "./model/session.ts";
import { listed, start as startList } from "./model/sessions.ts";
import { panesReady, watchFirstPaint } from "./model/startup.ts";
import { tabOf, type Tab } from "./model/url.ts";
import { Dialogs } from "./panes/dialogs.tsx";
import { Home, Missing } from "./panes/home.tsx";
import { Login } from "./panes/login.tsx";
import { later } from "./panes/on-demand.tsx";
import { Sessions } from "./panes/sessions.tsx";
import { Side } from "./panes/side.tsx";
import { Talk } from "./panes/talk.tsx";
import { Top } from "./panes/top.tsx";
import { Toast } from "./parts/toast.tsx";
import { SessionContext } from "./parts/use-session.ts";
import { showMarks } from "./text/directions.ts";

/** openNow is the session that the URL names; null = the URL names none. */
const openNow = signal<OpenSession | null>(null);

/** What can fill a phone's screen. The others stay in the page, with what they have loaded. */
const bar: [Tab, string][] = [["sessions", "Sessions"], ["talk", "Conversation"], ["side", "Map and state"]];

const Timeline = later("Timeline", "footer", "rail");

/** PhoneBar chooses the pane. */
function PhoneBar(): JSX.Element {
  return (
    <nav class="phone-bar" aria-label="Pane">
      {bar.map(([name, label]) => (
        <button key={name} aria-pressed={tabOf(view.value) === name} disabled={sessionId.value === null && name !== "sessions"} onClick={() => show(name)}>{label}</button>
      ))}
    </nav>
  );
}

function show(tab: Tab): void {
  go({ tab: tab === tabOf({ ...view.peek(), tab: null }) ? null : tab });
}

function App(): JSX.Element {
  const s = openNow.value;
  const one = s && !s.missing.value;
  if (locked.value) return <Login />;
  return (
    <SessionContext.Provider value={s}>
      <div class={`app pane-${view.value.pane} ${one ? "one-session" : "no-session"} show-${tabOf(view.value)}`}>
        <Top key={"top " + s?.id} />
        {panesReady.value ? <Sessions /> : <nav class="sessions" aria-busy="true" />}
        {one ? <Talk key={s.id} /> : s ? <Missing id={s.id} /> : <Home />}
        {one && (panesReady.value ? <Side key={s.id} /> : <aside class="side" aria-busy="true" />)}
        {one && (panesReady.value ? <Timeline key={s.id} /> : <footer class="rail" aria-busy="true" />)}
        {s?.failure.value && <p role="alert" class="failed">{s.failure.value}</p>}
        <PhoneBar />
        <Dialogs />
        <Toast />
      </div>
    </SessionContext.Provider>
  );
}

effect(() => {
  const id = sessionId.value;
  return untracked(() => {
    const s = (openNow.value = id === null ? null : openSession(id));
    if (s) listed(s);
    return () => s?.end();
  });
});
watchFirstPaint(openNow);
startAccess();
startList();
listen(document);
showMarks();
render(<App />, document.getElementById("app")!);

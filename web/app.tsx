// The page: which panes are shown. What they show is in model/, how in panes/.
import { render, type JSX } from "preact";
import { start as startAccess } from "./model/access.ts";
import { listen } from "./model/actions.ts";
import { begun, start as startPanes } from "./model/begun.ts";
import { locked } from "./api/client.ts";
import { failure, missing, start } from "./model/session.ts";
import { start as startList } from "./model/sessions.ts";
import { go, session, view } from "./model/nav.ts";
import { start as startTalk } from "./model/talk.ts";
import { tabOf, type Tab } from "./model/url.ts";
import { Dialogs } from "./panes/dialogs.tsx";
import { Home, Missing } from "./panes/home.tsx";
import { Login } from "./panes/login.tsx";
import { Sessions } from "./panes/sessions.tsx";
import { Side } from "./panes/side.tsx";
import { Talk } from "./panes/talk.tsx";
import { Top } from "./panes/top.tsx";
import { later } from "./parts/later.tsx";
import { Toast } from "./parts/toast.tsx";
import { showMarks } from "./text/directions.ts";

/** What can fill a phone's screen. The others stay in the page, with what they have loaded. */
const bar: [Tab, string][] = [["sessions", "Sessions"], ["talk", "Conversation"], ["side", "Map and state"]];

const Timeline = later("Timeline", "footer", "rail");

/** PhoneBar chooses the pane. */
function PhoneBar(): JSX.Element {
  return (
    <nav class="phone-bar" aria-label="Pane">
      {bar.map(([name, label]) => (
        <button key={name} aria-pressed={tabOf(view.value) === name} disabled={session.value === null && name !== "sessions"} onClick={() => show(name)}>{label}</button>
      ))}
    </nav>
  );
}

function show(tab: Tab): void {
  go({ tab: tab === tabOf({ ...view.peek(), tab: null }) ? null : tab });
}

function App(): JSX.Element {
  const id = missing.value ? null : session.value;
  if (locked.value) return <Login />;
  return (
    <div class={`app pane-${view.value.pane} ${id === null ? "no-session" : "one-session"} show-${tabOf(view.value)}`}>
      <Top />
      {begun.value ? <Sessions /> : <nav class="sessions" aria-busy="true" />}
      {id !== null ? <Talk key={id} /> : missing.value ? <Missing /> : <Home />}
      {id !== null && (begun.value ? <Side /> : <aside class="side" aria-busy="true" />)}
      {id !== null && (begun.value ? <Timeline key={id} /> : <footer class="rail" aria-busy="true" />)}
      {failure.value && <p role="alert" class="failed">{failure.value}</p>}
      <PhoneBar />
      <Dialogs />
      <Toast />
    </div>
  );
}

startTalk();
startPanes();
start();
startAccess();
startList();
listen(document);
showMarks();
render(<App />, document.getElementById("app")!);

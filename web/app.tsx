// The page: which panes are shown. What they show is in model/, how in panes/.
import { render, type JSX } from "preact";
import { listen } from "./model/actions.ts";
import { failure, start, summary } from "./model/session.ts";
import { session, view } from "./model/nav.ts";
import { Palette } from "./panes/palette.tsx";
import { Sessions } from "./panes/sessions.tsx";
import { Side } from "./panes/side.tsx";
import { Talk } from "./panes/talk.tsx";
import { Timeline } from "./panes/timeline.tsx";
import { Toast } from "./parts/toast.tsx";

function App(): JSX.Element {
  const id = session.value;
  return (
    <div class={`app pane-${view.value.pane} ${id === null ? "no-session" : "one-session"}`}>
      <header class="top">
        <strong>coppice</strong>
        <span class="title">{summary.value?.title}</span>
      </header>
      <Sessions />
      {id !== null && <Talk key={id} />}
      {id !== null && <Side />}
      {id !== null && <Timeline key={id} />}
      {failure.value && <p role="alert" class="failed">{failure.value}</p>}
      <Palette />
      <Toast />
    </div>
  );
}

start();
listen(document);
render(<App />, document.getElementById("app")!);

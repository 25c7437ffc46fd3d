// What is shown when no session is chosen.
import type { JSX } from "preact";
import { list, sessions, wanted } from "../model/sessions.ts";
import { SessionLink } from "../parts/link.tsx";
import { later } from "./on-demand.tsx";

const OverTime = later("OverTime");
const Newest = later("Newest");
const Empty = later("Empty");

/** Home shows what this is, the newest sessions, and what all cost over time. */
export function Home(): JSX.Element {
  const some = sessions.value.length > 0 || list.busy.value || wanted.value !== "" || list.error.value !== "";
  return (
    <main class="home-page">
      <h1>What your agents did, and the way back</h1>
      <p>coppice keeps the conversations of AI agents: every branch, and the agent's exact state at every turn.{" "}
        <kbd>Ctrl+K</kbd> searches everything, <kbd>?</kbd> shows the keys.</p>
      {some ? <Newest /> : <Empty />}
      <OverTime />
    </main>
  );
}

/** Missing reports that there is no session of the URL's id. */
export function Missing({ id }: { id: string }): JSX.Element {
  return (
    <main class="home-page">
      <h1>No such session</h1>
      <p role="alert">This server has no session with the id <code>{id}</code>. It may have been deleted, or be in another
        store.</p>
      <p><SessionLink to={null}>All sessions</SessionLink></p>
    </main>
  );
}

// What is shown when no session is chosen.
import type { JSX } from "preact";
import { base, open, session } from "../model/nav.ts";
import { sessions } from "../model/sessions.ts";
import { later } from "../parts/later.tsx";

const OverTime = later("OverTime");

/** Home says what the page is, and what the sessions cost over time. */
export function Home(): JSX.Element {
  return (
    <main class="home-page">
      <h1>Sessions of agents</h1>
      <p>Choose a session{sessions.value.length > 0 ? " on the left" : ""} to see its whole tree, the agent's exact state at every
        commit, and what the model saw. <kbd>Ctrl+K</kbd> searches everything, <kbd>?</kbd> shows the keys.</p>
      <OverTime />
    </main>
  );
}

/** Missing says that there is no session of the URL's id. */
export function Missing(): JSX.Element {
  return (
    <main class="home-page">
      <h1>No such session</h1>
      <p role="alert">This server has no session with the id <code>{session.value}</code>. It may have been deleted, or be in another
        store. <a href={base + "/"} onClick={(e) => {
          e.preventDefault();
          open(null);
        }}>All sessions</a></p>
    </main>
  );
}

// A server that wants a token says 401: the page asks for one.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { dropToken, setToken } from "../api/client.ts";

/** Login asks for a token, keeps it until the tab is closed, and loads the page again. */
export function Login(): JSX.Element {
  const token = useSignal("");
  const [refused] = useState(dropToken); // a token goes before the cookie of a link: one that is refused may not stay
  return (
    <main class="login">
      <h1>This server wants a token</h1>
      {refused && <p role="alert">The server did not take the token.</p>}
      {!refused && new URLSearchParams(location.search).get("link") === "used" && (
        <p role="alert">The link was used before, or the server has started anew since it printed it.</p>
      )}
      <p>Open the one-time link that <code>coppice serve</code> printed, or paste a token.</p>
      <form onSubmit={(e) => {
        e.preventDefault();
        setToken(token.value.trim());
        location.reload();
      }}>
        <input type="password" aria-label="Token" autoComplete="off" required value={token.value}
          onInput={(e) => (token.value = e.currentTarget.value)} />
        <button>Continue</button>
      </form>
    </main>
  );
}

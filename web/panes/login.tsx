// A server that wants a token answers 401, or 403 to one that allows nothing here: the page asks for one.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { dropToken, locked, setToken } from "../api/client.ts";

/** Login asks for a token, keeps it until the tab is closed, and loads the page again. */
export function Login(): JSX.Element {
  const token = useSignal("");
  const [trouble] = useState(refusal);
  return (
    <main class="login">
      <h1>This server wants a token</h1>
      {trouble && <p role="alert">{trouble}</p>}
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

/** refusal is why the page asks, if there was a token or a link. One that was refused is forgotten: it goes before a cookie. */
function refusal(): string {
  if (locked.peek() === 403) return "The token does not allow this."; // it is good elsewhere
  if (dropToken()) return "The server did not take the token.";
  return new URLSearchParams(location.search).get("link") === "used"
    ? "The link was used before, or the server has started again since it printed it." : "";
}

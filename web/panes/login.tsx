// A server that wants a token says 401: the page asks for one.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { setToken } from "../api/client.ts";

/** Login asks for a token, keeps it until the tab is closed, and loads the page again. */
export function Login(): JSX.Element {
  const token = useSignal("");
  return (
    <main class="login">
      <h1>This server wants a token</h1>
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

// What this page may do: it does not offer what the server would refuse.
import { signal } from "@preact/signals";
import { api, Failure, locked } from "../api/client.ts";
import { meta } from "../api/base.ts";

/** readOnly reports whether the server refuses writes: all of them, or those of this page's token. */
export const readOnly = signal(meta("coppice-mode") === "read-only");

/** start asks the server for the rights of this page. It is called once. */
export function start(): void {
  api.GET("/v1/access").then(({ data }) => {
    if (!data!.rights.includes("write")) readOnly.value = true;
  }, (err: unknown) => { // the requests of the panes report what else is wrong
    if (err instanceof Failure && err.status === 403) locked.value = 403;
  });
}

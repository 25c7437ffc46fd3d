// What this page may do: it does not offer what the server would refuse.
import { signal } from "@preact/signals";
import { api } from "../api/client.ts";
import { meta } from "./nav.ts";

/** readOnly reports whether the server refuses writes: all of them, or those of this page's token. */
export const readOnly = signal(meta("coppice-mode") === "read-only");

/** start asks the server for the rights of this page. It is called once. */
export function start(): void {
  api.GET("/v1/access").then(({ data }) => {
    if (!data!.rights.includes("write")) readOnly.value = true;
  }, () => {}); // the requests of the panes report what is wrong
}

// Where the page is: what the server wrote into it.

/** meta returns what the server wrote into the page under a name; "" = nothing. */
export function meta(name: string): string {
  return document.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content ?? "";
}

/** base is the path that the service is below: "" or such as "/coppice/t/acme". */
export const base = meta("coppice-base");

// Bundles of web/lazy that the page loads when it needs them: each is a file of its own, as app.js is.

/** editor loads the viewer of JSON and of differences. */
export const editor = once(() => load<typeof import("../lazy/editor.ts")>("editor"));

/** code loads the colours of program text. */
export const code = once(() => load<typeof import("../lazy/code.ts")>("code"));

/** difference loads the comparison of texts. */
export const difference = once(() => load<typeof import("../lazy/difference.ts")>("difference"));

/** chart loads the charts. */
export const chart = once(() => load<typeof import("../lazy/chart.ts")>("chart"));

function load<T>(name: string): Promise<T> {
  return import(new URL(`./lazy-${name}.js`, import.meta.url).href) as Promise<T>;
}

/** once returns a function that loads once; a load that failed is tried again by the next call. */
function once<T>(f: () => Promise<T>): () => Promise<T> {
  let loaded: Promise<T> | null = null;
  return () => (loaded ??= f().catch((err: unknown) => {
    loaded = null;
    throw err;
  }));
}

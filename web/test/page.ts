// What modules of the viewer ask of the page, and a server of it. Import it first.
const site = "http://viewer.test";

Object.assign(globalThis, {
  document: { querySelector: () => null, addEventListener() {}, removeEventListener() {} }, location: { pathname: "/", search: "" }, addEventListener() {}, removeEventListener() {},
  history: { pushState() {}, replaceState() {} }, sessionStorage: { getItem: () => null },
  Request: class extends Request {
    constructor(input: string | URL | Request, init?: RequestInit) {
      super(typeof input === "string" ? new URL(input, site) : input, init);
    }
  },
});

/** serve answers the requests of the page: the answer is JSON, and its ETag is the given one. */
export function serve(answer: (path: string, query: URLSearchParams) => unknown, etag = '"made"'): void {
  globalThis.fetch = async (request) => {
    const url = new URL((request as Request).url);
    return new Response(JSON.stringify(answer(url.pathname, url.searchParams)), { headers: { ETag: etag } });
  };
}

/** idle waits until nothing more happens by itself. */
export async function idle(): Promise<void> {
  for (let i = 0; i < 50; i++) await new Promise((ok) => setImmediate(ok));
}

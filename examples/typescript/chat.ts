// The backend of a chat UI that shows versions of messages, such as assistant-ui: its message repository
// {headId, messages: [{message, parentId}]} is a session, one to one. Messages are JSON with an id and a role.
//
//	coppice serve --store /tmp/store &
//	node chat.ts http://127.0.0.1:7070        # then http://127.0.0.1:8765/threads
//
//	GET  /threads                             the conversations
//	POST /threads                             {"title"}: a new one
//	GET  /threads/ID                          the repository
//	POST /threads/ID/messages                 {"message", "parentId"}: appends; the same message id again replaces it
//	GET  /threads/ID/messages/MESSAGE         its versions: {"versions": [ids], "at": which one it is, from 0}
//	POST /threads/ID/messages/MESSAGE         {"message"}: another version of it, for an edit or a new answer
//	POST /threads/ID/head                     {"id"}: shows the newest message below this one
//	GET  /threads/ID/events                   server-sent events: each commit, and what is streamed
//
// It is a sketch: no users, no rights. It listens on the loopback address alone.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { argv } from "node:process";
import { pathToFileURL } from "node:url";
import { CoppiceError, Store, type Session } from "coppice-client";

interface Message { id: string; role: string; content: unknown }
interface Item { message: Message; parentId: string | null }
interface Entry { type: string; id: string; parentId: string | null; timestamp: string; message: Message }

/** The ids of the UI are those of the entries: a message with an existing id amends its entry. */
const entryOf = ({ message, parentId }: Item): Entry =>
  ({ type: "message", id: message.id, parentId, timestamp: new Date().toISOString(), message });

async function threads(store: Store): Promise<object[]> {
  const list: object[] = [];
  for await (const { id, title, preview, updated } of store.sessions({ limit: 50 })) {
    if (list.push({ id, title, preview, updated }) === 50) break;
  }
  return list;
}

/** The repository of the UI: every message of every branch, and the last visible one. */
async function repository(session: Session): Promise<{ headId: string | null; messages: Item[] }> {
  const { head } = await session.resume(), messages: Item[] = [];
  for await (const { text } of session.entries({ path: "all", limit: 500 })) {
    const { type, id, parentId, message } = JSON.parse(text) as Entry;
    if (type === "message" && message) messages.push({ message: { ...message, id }, parentId });
  }
  return { headId: head, messages };
}

/** Appends a message below any other: one commit, which moves the head there. No message of another page is lost. */
async function append(session: Session, item: Item): Promise<object> {
  const { commit, seq } = await session.commit([entryOf(item)], { base: "*", onKnownId: "amend" });
  return { commit, seq };
}

/** Appends another version of a message: an edit of a prompt, or a new answer to it. */
async function version(session: Session, id: string, message: Message): Promise<object> {
  const { parentId } = JSON.parse((await session.entry(id)).text) as Entry;
  return append(session, { message, parentId });
}

async function events(session: Session, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const end = new AbortController(), last = request.headers["last-event-id"];
  response.on("close", () => end.abort());
  response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" }).flushHeaders();
  for await (const e of session.follow({ signal: end.signal, ...(last ? { after: Number(last) } : {}) })) {
    const id = e.type === "commit" ? `id: ${e.seq}\n` : "";
    response.write(`event: ${e.type}\n${id}data: ${e.type === "reset" ? "null" : e.raw}\n\n`);
  }
  response.end();
}

/** The bound of a body, in bytes. */
const maxBody = 1 << 20;

async function body<T>(request: IncomingMessage): Promise<T> {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) {
    if ((text += chunk).length > maxBody) throw new CoppiceError({ status: 413, code: "too-large", detail: "the body is too long" });
  }
  return JSON.parse(text) as T;
}

async function answer(store: Store, request: IncomingMessage, response: ServerResponse): Promise<unknown> {
  const [, root, id, what, message] = new URL(request.url ?? "/", "http://localhost").pathname.split("/").map(decodeURIComponent);
  const session = store.session(id ?? "");
  switch (root === "threads" && [request.method, id && "ID", what, message && "MESSAGE"].filter(Boolean).join(" ")) {
    case "GET": return threads(store);
    case "POST": return { id: (await store.create(undefined, { title: (await body<{ title: string }>(request)).title })).id };
    case "GET ID": return repository(session);
    case "POST ID messages": return append(session, await body<Item>(request));
    case "GET ID messages MESSAGE": {
      const { versions, at } = await session.versions(message!);
      return { versions: versions.map((v) => v.id), at };
    }
    case "POST ID messages MESSAGE": return version(session, message!, (await body<{ message: Message }>(request)).message);
    case "POST ID head": return session.switch({ to: (await body<{ id: string }>(request)).id }, { base: "*" });
    case "GET ID events": return events(session, request, response);
    default: throw new CoppiceError({ status: 404, code: "not-found", detail: "no such path" });
  }
}

/** The server of the UI, on a store. */
export function chat(store: Store): Server {
  return createServer((request, response) => {
    answer(store, request, response).then((doc) => {
      if (doc !== undefined) response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(doc));
    }, (e: unknown) => {
      const problem = e instanceof CoppiceError ? e : undefined, status = e instanceof SyntaxError ? 400 : problem?.status || 502;
      if (response.headersSent) return response.destroy();
      return response.writeHead(status, { "Content-Type": "application/json" })
        .end(JSON.stringify({ code: problem?.code ?? "failed", detail: (e as Error).message }));
    });
  });
}

if (import.meta.url === pathToFileURL(argv[1] ?? "").href) {
  chat(new Store(argv[2] ?? "http://127.0.0.1:7070")).listen(8765, "127.0.0.1");
}

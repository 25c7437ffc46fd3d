// Adapters of assistant-ui: a thread is a session, its message repository the tree of it.
import type { Schemas, Store } from "coppice-client";
import { absent } from "../../shared/index.js";
import { Threads, type ChatOptions, type Item } from "./thread.js";

interface Message { id: string; createdAt?: unknown; attachments?: readonly object[] }
interface HistoryItem<M> { message: M; parentId: string | null; runConfig?: any }
/** MessageFormatAdapter of assistant-ui. */
interface Format<M, S> {
  format: string;
  encode(item: { message: M; parentId: string | null }): S;
  decode(stored: { id: string; parent_id: string | null; format: string; content: S }): { message: M; parentId: string | null };
  getId(message: M): string;
}
interface Metadata {
  remoteId: string;
  status: "regular" | "archived";
  title?: string;
  lastMessageAt?: Date;
  custom?: Record<string, unknown>;
}
/** Makes the title of a thread of its messages. */
type Title = (messages: readonly any[]) => string | Promise<string>;

/** A ThreadHistoryAdapter for one thread. */
export class CoppiceHistory {
  private readonly threads: Threads;
  constructor(service: string | Store, readonly threadId: string, o: ChatOptions = {}) {
    this.threads = new Threads(service, o);
  }

  // Types of messages are those of the caller: the package needs no version of assistant-ui.
  async load(): Promise<{ headId?: string | null; messages: HistoryItem<any>[] }> {
    const found = await this.threads.all(this.threadId);
    if (!found) return { messages: [] };
    const messages = found.items.map(({ parentId, value }) => {
      const { message, runConfig } = value as { message: Message; runConfig?: unknown };
      const dated = typeof message.createdAt === "string" ? { ...message, createdAt: new Date(message.createdAt) } : message;
      return { parentId, message: dated, ...(runConfig !== undefined && { runConfig }) };
    });
    return { headId: found.head, messages };
  }

  append(item: HistoryItem<any>): Promise<void> { return this.threads.put(this.threadId, this.item(item)); }
  /** Replaces a message, or appends one that is not there. */
  update(item: HistoryItem<any>): Promise<void> { return this.threads.replace(this.threadId, this.item(item)); }
  delete(items: HistoryItem<any>[]): Promise<void> {
    return this.threads.hide(this.threadId, items.map(({ message }) => (message as Message).id));
  }
  /** Keeps which branch is shown: its last message. The interface of assistant-ui does not report a switch. */
  show(headId: string | null): Promise<void> { return this.threads.show(this.threadId, headId); }

  /** The history of useAISDKRuntime and useChatRuntime. */
  withFormat<M, S extends Record<string, unknown>>(format: Format<M, S>) {
    const item = ({ message, parentId }: { message: M; parentId: string | null }): Item => {
      const content = format.encode({ message, parentId });
      return { id: format.getId(message), parentId, value: { format: format.format, content }, message };
    };
    return {
      load: async () => {
        const found = await this.threads.all(this.threadId);
        const items = (found?.items ?? []).filter(({ value }) => (value as { format?: string }).format === format.format);
        const messages = items.map(({ id, parentId, value }) =>
          format.decode({ id, parent_id: parentId, format: format.format, content: (value as { content: S }).content }));
        return found ? { headId: found.head, messages } : { messages };
      },
      append: (of: { message: M; parentId: string | null }) => this.threads.put(this.threadId, item(of)),
      update: (of: { message: M; parentId: string | null }) => this.threads.replace(this.threadId, item(of)),
      delete: (items: { message: M }[]) => this.threads.hide(this.threadId, items.map(({ message }) => format.getId(message))),
    };
  }

  private item({ message, parentId, runConfig }: HistoryItem<Message>): Item {
    const { attachments, ...rest } = message; // a File is no JSON
    const kept = attachments && { attachments: attachments.map(({ file, ...a }: { file?: unknown }) => a) };
    const value = { message: { ...rest, ...kept }, ...(runConfig !== undefined && { runConfig }) };
    return { id: message.id, parentId, value, message };
  }
}

/** A RemoteThreadListAdapter: the threads with the metadata of its options, such as those of a user. */
export class CoppiceThreadList {
  private readonly threads: Threads;
  private readonly title: Title;
  /** The default of title is the first text of the user. */
  constructor(service: string | Store, o: ChatOptions & { title?: Title } = {}) {
    const { title = firstText, ...options } = o;
    this.threads = new Threads(service, options);
    this.title = title;
  }

  async list({ after }: { after?: string | undefined } = {}): Promise<{ threads: Metadata[]; nextCursor?: string }> {
    const meta = Object.fromEntries(Object.entries(this.threads.meta).map(([name, value]) => [`meta.${name}`, value]));
    const page = await this.threads.store.sessions({ ...meta, limit: 50, ...(after !== undefined && { after }) }).page();
    return { threads: page.items.map(metadataOf), ...(page.next !== undefined && { nextCursor: page.next }) };
  }
  async initialize(
    threadId: string, { custom }: { custom?: Record<string, unknown> | undefined } = {},
  ): Promise<{ remoteId: string; externalId: undefined }> {
    const { meta, ...creation } = this.threads.creation();
    const made = { ...creation, meta: { ...meta, ...(custom && { custom: JSON.stringify(custom) }) } };
    await this.threads.store.create(threadId, made).catch((e: { code?: string }) => {
      if (e.code !== "exists") throw e;
    });
    return { remoteId: threadId, externalId: undefined };
  }
  async fetch(threadId: string): Promise<Metadata> { return metadataOf(await this.threads.store.session(threadId).info()); }
  rename(id: string, title: string): Promise<void> { return this.change(id, { title }); }
  archive(id: string): Promise<void> { return this.change(id, { meta: { status: "archived" } }); }
  unarchive(id: string): Promise<void> { return this.change(id, { meta: { status: null } }); }
  updateCustom(id: string, custom: Record<string, unknown> | undefined): Promise<void> {
    return this.change(id, { meta: { custom: custom === undefined ? null : JSON.stringify(custom) } });
  }
  delete(id: string): Promise<void> { return this.threads.remove(id); }

  /** Stores the title, and streams it as assistant-ui expects. */
  async generateTitle(id: string, messages: readonly any[]): Promise<ReadableStream<any>> {
    const title = await this.title(messages);
    if (title) await this.rename(id, title);
    const chunks = title ? [
      { type: "part-start", path: [], part: { type: "text" } },
      { type: "text-delta", path: [0], textDelta: title },
      { type: "part-finish", path: [0] },
    ] : [];
    return new ReadableStream({ start: (to) => { chunks.forEach((chunk) => to.enqueue(chunk)); to.close(); } });
  }

  private async change(id: string, change: Schemas["SessionChange"]): Promise<void> {
    await this.threads.store.session(id).setInfo(change, { base: "*" }).catch(absent);
  }
}

function metadataOf({ id, title, updated, meta = {} }: Schemas["Session"]): Metadata {
  const { status, custom } = meta;
  return {
    remoteId: id, status: status === "archived" ? status : "regular", lastMessageAt: new Date(updated), ...(title && { title }),
    ...(custom !== undefined && { custom: JSON.parse(custom) as Record<string, unknown> }),
  };
}

function firstText(messages: readonly { role?: string; content?: readonly { type?: string; text?: string }[] }[]): string {
  const text = messages.find((m) => m.role === "user")?.content?.find((part) => part.type === "text")?.text ?? "";
  const letters = Array.from(text); // none is cut in two
  return letters.length > 60 ? `${letters.slice(0, 59).join("").trimEnd()}…` : text;
}

// Persistence for chats in user interfaces, on a coppice service.
import type { Store } from "coppice-client";
import { Threads, type ChatOptions } from "./thread.js";

export { CoppiceHistory, CoppiceThreadList } from "./assistant-ui.js";
export { coppiceStores } from "./records.js";
export type { ChatOptions } from "./thread.js";

interface Identified { id: string }

/** Chats of the Vercel AI SDK: loadChat and saveChat of its guide. */
export class CoppiceChats {
  private readonly threads: Threads;
  constructor(service: string | Store, o: ChatOptions = {}) { this.threads = new Threads(service, o); }

  /** Returns the messages of the chat that are shown; [] = there is none. */
  async loadChat<M extends Identified>(chatId: string): Promise<M[]> {
    return ((await this.threads.path(chatId))?.values ?? []) as M[];
  }
  /** Stores what is new or changed. An answer that was made again, or a message that was edited, is a branch. */
  saveChat<M extends Identified>({ chatId, messages }: { chatId: string; messages: readonly M[] }): Promise<void> {
    return this.threads.save(chatId, messages.map((value) => ({ id: value.id, value })));
  }
  deleteChat(chatId: string): Promise<void> { return this.threads.remove(chatId); }
}

/** What TanStack AI stores of a chat in a client: messages, and how to go on with a run. */
interface Persisted { messages: any[]; resume?: any }

/** A ChatClientPersistence of TanStack AI. */
export function coppicePersistence(service: string | Store, o: ChatOptions = {}) {
  const threads = new Threads(service, o);
  return {
    getItem: async (id: string): Promise<Persisted | null> => {
      const found = await threads.path(id);
      if (!found) return null;
      const { resume } = (found.state ?? {}) as { resume?: unknown };
      return { messages: found.values, ...(resume !== undefined && { resume }) };
    },
    setItem: (id: string, { messages, resume }: Persisted): Promise<void> => {
      const list = messages.map((value) => ({ id: (value as Identified).id, value }));
      return threads.save(id, list, { state: resume === undefined ? null : { resume } });
    },
    removeItem: (id: string): Promise<void> => threads.remove(id),
  };
}

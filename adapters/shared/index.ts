// What the adapters in TypeScript have in common; each package contains it.
import { Deleted, NotFound } from "coppice-client";

/** A map of at most so many values. The one that was set first goes. */
export class Recent<V> extends Map<string, V> {
  constructor(private readonly most: number) { super(); }

  override set(id: string, value: V): this {
    this.delete(id);
    super.set(id, value);
    if (this.size > this.most) this.delete(this.keys().next().value!);
    return this;
  }
}

/** Runs the writes of this process to each session one after the other, in the order of the calls. */
export class Queues {
  private readonly last = new Map<string, Promise<unknown>>();

  async run<T>(id: string, write: () => Promise<T>): Promise<T> {
    const mine = (this.last.get(id) ?? Promise.resolve()).catch(() => undefined).then(write);
    this.last.set(id, mine);
    try {
      return await mine;
    } finally {
      if (this.last.get(id) === mine) this.last.delete(id);
    }
  }
}

/** Returns the SHA-256 of a value as JSON, in hex: names of frameworks have any length and characters, ids do not. */
export async function hash(value: unknown): Promise<string> {
  const sum = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(JSON.stringify(value)));
  return Array.from(new Uint8Array(sum), (b) => b.toString(16).padStart(2, "0")).join("");
}

/** Makes the error of a session that is not there, or was deleted, undefined. */
export function absent(e: unknown): undefined {
  if (!(e instanceof NotFound || e instanceof Deleted)) throw e;
}

/** Returns bytes as base64. */
export function base64(bytes: Uint8Array): string {
  let text = "";
  for (const b of bytes) text += String.fromCharCode(b);
  return btoa(text);
}

/** Returns the bytes of base64. */
export function unbase64(text: string): Uint8Array { return Uint8Array.from(atob(text), (c) => c.charCodeAt(0)); }

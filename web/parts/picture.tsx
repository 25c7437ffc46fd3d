// An image of a message. Its bytes are fetched, because an img element cannot send a token, and shown by a blob: URL
// while they are in the page. Only formats of pixels are shown, by what the bytes are and not by what they are called.
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { call, Failure } from "../api/client.ts";
import { bytes } from "../model/format.ts";
import { rasterType, sourceOf, type Source } from "../model/picture.ts";
import { Dialog } from "./dialog.tsx";
import { useSession } from "./use-session.ts";

/** atOnce is the largest image that is loaded without being asked for, in bytes. */
const atOnce = 8 << 20;

type Shown = { url: string; type: string } | { trouble: string } | null;

/** Picture shows a thumbnail with its size, and the whole image when it is clicked. */
export function Picture({ type, data }: { type: string; data: string }): JSX.Element {
  const { id } = useSession();
  const source = sourceOf(data);
  const [wanted, want] = useState((source?.bytes ?? 0) <= atOnce);
  const [full, setFull] = useState(false);
  const [shown, show] = useState<Shown>(null);
  const [size, setSize] = useState("");
  useEffect(() => {
    if (!source || !wanted) return;
    const abort = new AbortController();
    let url = "";
    load(id, source, abort.signal).then((image) => {
      if (abort.signal.aborted) return;
      url = image.url;
      show(image);
    }).catch((err: unknown) => {
      if (abort.signal.aborted) return;
      const gone = err instanceof Failure && err.status === 404;
      show({ trouble: gone ? "it is not stored any more" : err instanceof Error ? err.message : String(err) });
    });
    return () => {
      abort.abort();
      if (url) URL.revokeObjectURL(url);
      show(null);
    };
  }, [data, wanted]);
  const kind = (shown && "type" in shown ? shown.type : type).replace("image/", "") || "image";
  const caption = [kind, size, source ? bytes(source.bytes) : ""].filter(Boolean).join(" · ");
  if (!source || (shown && "trouble" in shown)) {
    return <p class="picture quiet">[{caption}: {shown && "trouble" in shown ? shown.trouble : "not stored here"}]</p>;
  }
  if (!wanted) return <button type="button" class="link" onClick={() => want(true)}>load the image, {caption}</button>;
  return (
    <figure class="picture">
      <button type="button" aria-label={"image, " + caption + ": show it in full"} disabled={!shown} onClick={() => setFull(true)}>
        {shown && (
          <img src={shown.url} alt="" decoding="async"
            onLoad={(e) => setSize(`${e.currentTarget.naturalWidth}×${e.currentTarget.naturalHeight}`)} />
        )}
      </button>
      <figcaption>{caption}</figcaption>
      {full && shown && (
        <Dialog title={caption} class="full-picture" onClose={() => setFull(false)}>
          <img src={shown.url} alt={"image, " + caption} />
        </Dialog>
      )}
    </figure>
  );
}

/** load returns a URL of an image, which has to be revoked. */
async function load(id: string, source: Source, signal: AbortSignal): Promise<{ url: string; type: string }> {
  const raw = source.kind === "inline" ? decode(source.base64) : await fetched(id, source.sha256, signal);
  const type = rasterType(raw);
  if (type === null) throw new Error("no PNG, JPEG, GIF or WebP");
  return { url: URL.createObjectURL(new Blob([raw], { type })), type };
}

async function fetched(id: string, sha256: string, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
  const answer = await call(`/v1/sessions/${encodeURIComponent(id)}/blobs/${sha256}`, { signal });
  return new Uint8Array(await answer.arrayBuffer());
}

function decode(base64: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64.replaceAll("-", "+").replaceAll("_", "/").replace(/\s/g, ""));
  return Uint8Array.from(text, (c) => c.charCodeAt(0));
}

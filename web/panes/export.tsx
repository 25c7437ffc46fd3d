// Export: the whole tree or the line, in the formats of the service.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { call, Failure } from "../api/client.ts";
import { closeDialog } from "../model/dialogs.ts";
import { view } from "../model/nav.ts";
import { Dialog } from "../parts/dialog.tsx";
import { useSession } from "../parts/use-session.ts";

interface Format {
  format: string;
  file: string;
  line: boolean; // one line, the one that is read
  text: string;
}

const formats: Format[] = [
  { format: "html", file: "html", line: true, text: "A page to read or to share: one file, no script" },
  { format: "markdown", file: "md", line: true, text: "Markdown" },
  { format: "html", file: "html", line: false, text: "The same with every branch, folded" },
  { format: "pi", file: "jsonl", line: false, text: "The whole tree, every branch, as pi reads it" },
  { format: "original", file: "jsonl", line: false, text: "The file that was imported, byte for byte" },
  { format: "claude-code", file: "jsonl", line: false, text: "For Claude Code" },
  { format: "codex", file: "jsonl", line: false, text: "For Codex" },
  { format: "omp", file: "jsonl", line: false, text: "For omp" },
];

/** Export shows the dialog. */
export function Export(): JSX.Element {
  const { id, head } = useSession();
  const failed = useSignal("");
  const busy = useSignal("");
  const asked = useSignal<Format | null>(null); // the server found credentials: what to do with them
  const save = async (f: Format, secrets: "refuse" | "redact" | "allow" = "refuse") => {
    busy.value = f.format;
    failed.value = "";
    asked.value = null;
    try {
      const line = view.peek().line ?? head.peek()?.entry ?? null;
      const at = f.line && line !== null ? "&line=" + encodeURIComponent(line) : "";
      const answer = await call(`/v1/sessions/${encodeURIComponent(id)}/export?format=${f.format}&secrets=${secrets}${at}`);
      download(await answer.blob(), `${id}-${f.line ? "line" : f.format === "html" ? "tree" : f.format}.${f.file}`);
      closeDialog("export");
    } catch (err) {
      failed.value = err instanceof Error ? err.message : String(err);
      if (err instanceof Failure && err.problem.code === "secrets") asked.value = f;
    }
    busy.value = "";
  };
  return (
    <Dialog title="Export" onClose={() => closeDialog("export")}>
      <p>An export contains what the session contains. Credentials that are found in it are not exported without a question;
        read it before you share it.</p>
      {failed.value && <p role="alert" class="failed">{failed.value}</p>}
      {asked.value && (
        <p>
          <button onClick={() => void save(asked.value!, "redact")}>Replace them, and save</button>{" "}
          <button onClick={() => void save(asked.value!, "allow")}>Save with them</button>
        </p>
      )}
      <ul class="export-formats">
        {formats.map((f) => (
          <li key={f.text}>
            <button disabled={busy.value !== ""} onClick={() => void save(f)}>
              {f.text}<small>{f.format}{f.line ? " · the line that is shown" : ""}{busy.value === f.format ? " · writing…" : ""}</small>
            </button>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

/** download hands a file to the browser. */
function download(data: Blob, name: string): void {
  const url = URL.createObjectURL(data);
  const a = document.createElement("a");
  a.href = url;
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000); // after the browser has read it
}

// Copying to the clipboard, with a word about how it went.
import { say } from "./toast.tsx";

/** copy puts a text into the clipboard. what is its name, as "The link". */
export function copy(text: string, what: string): void {
  const refused = () => say("The browser does not allow copying.");
  if (!navigator.clipboard) return refused();
  navigator.clipboard.writeText(text).then(() => say(what + " was copied."), refused);
}

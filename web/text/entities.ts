// What "&eacute;" means, for the parser of Markdown. Its own version asks the browser through innerHTML, which the
// policy of the page refuses; a table of all 2,125 names would be 13 KB. Names that are not in this one stay as they are.
import { characterEntitiesHtml4 } from "character-entities-html4";

/** decodeNamedCharacterReference returns the character of a name; false = it is not known. */
export function decodeNamedCharacterReference(name: string): string | false {
  return Object.hasOwn(characterEntitiesHtml4, name) ? characterEntitiesHtml4[name]! : name === "apos" ? "'" : false;
}

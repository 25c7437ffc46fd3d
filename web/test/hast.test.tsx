import assert from "node:assert/strict";
import { test } from "node:test";
import { attributes } from "../text/hast.tsx";
import { decodeNamedCharacterReference } from "../text/entities.ts";

test("properties have their names of HTML, and nothing that acts or draws", () => {
  assert.deepEqual(attributes({
    className: ["language-go", "x"], ariaDescribedBy: "f", dataFootnoteRef: true, colSpan: 2, hidden: false, href: null,
    onClick: "alert(1)", style: "color:red", innerHTML: "<b>", dangerouslySetInnerHTML: "x", htmlFor: "y",
  }), { class: "language-go x", "aria-describedby": "f", "data-footnote-ref": true, colspan: 2, for: "y" });
});

test("names of characters are decoded without the browser", () => {
  assert.equal(decodeNamedCharacterReference("amp"), "&");
  assert.equal(decodeNamedCharacterReference("eacute"), "é");
  assert.equal(decodeNamedCharacterReference("nosuch"), false);
  assert.equal(decodeNamedCharacterReference("constructor"), false);
});

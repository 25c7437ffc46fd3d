"""JSON as text, so that digits and the order of members survive a round trip."""
from __future__ import annotations

import json
import re
from typing import Any

UNSET: Any = object()  # a member that is not sent, where None would clear
_decode, _space = json.JSONDecoder().raw_decode, re.compile(r"[\s,:]*").match


class Raw(str):
    """JSON text that is sent as it is: floats lose digits, 1.10 becomes 1.1. ValueError: it is not one JSON value."""

    def __new__(cls, text: str) -> Raw:
        json.loads(text)
        return super().__new__(cls, text)


def encode(value: Any, depth: int = 2) -> str:
    """Return the JSON text of a value, in which Raw values are looked for in depth levels of lists and dicts."""
    if isinstance(value, Raw):
        return value
    if depth and isinstance(value, (list, tuple)):
        return "[" + ",".join(encode(item, depth - 1) for item in value) + "]"
    if depth and isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(k)}:{encode(v, depth - 1)}" for k, v in value.items()) + "}"
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return json.dumps(value) if re.search("[\ud800-\udfff]", text) else text  # UTF-8 has no lone surrogates


def split(text: str) -> list[tuple[str, Any, Raw]]:
    """Return the members of a JSON object, or the items of an array: name ("" in an array), value and text of each."""
    found, at, name = [], _space(text, 1).end(), ""  # type: ignore[union-attr]
    while text[at] not in "}]":
        if text[0] == "{":
            name, at = _decode(text, at)
            at = _space(text, at).end()  # type: ignore[union-attr]
        value, end = _decode(text, at)
        found.append((name, value, str.__new__(Raw, text[at:end])))
        at = _space(text, end).end()  # type: ignore[union-attr]
    return found

"""JSON as text, so that digits and the order of members survive a round trip."""
from __future__ import annotations

import json
import math
import re
from typing import Any, Callable

from .errors import InvalidArgument

UNSET: Any = object()  # a member that is not sent, where None would clear
_SPACE = re.compile(r"[\s,:]*")
_SURROGATE = re.compile("[\ud800-\udfff]")
_string = json.JSONEncoder(ensure_ascii=False).encode


class Raw(str):
    """JSON text that is sent unchanged, at any depth of a value: floats lose digits, 1.10 becomes 1.1.

    A number that Python cannot hold (1e400, or more than 4,300 digits) is read as Raw. InvalidArgument: the text is
    not one JSON value.
    """

    def __new__(cls, text: str) -> Raw:
        try:
            parse(text)
        except (TypeError, ValueError) as e:
            raise InvalidArgument(f"Raw: {e}") from None
        return super().__new__(cls, text)


def _raw(text: str) -> Raw:
    """Return text that is known to be JSON."""
    return str.__new__(Raw, text)


def _int(digits: str) -> int | Raw:
    try:
        return int(digits)
    except ValueError:  # longer than sys.get_int_max_str_digits()
        return _raw(digits)


def _float(digits: str) -> float | Raw:
    value = float(digits)
    return value if math.isfinite(value) else _raw(digits)


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_decoder = json.JSONDecoder(parse_int=_int, parse_float=_float, parse_constant=_constant)


def parse(text: str) -> Any:
    """Return the value of JSON text. ValueError: the text is not one JSON value, or is nested too deeply."""
    try:
        return _decoder.decode(text)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def text_of(body: bytes) -> str:
    """Return bytes as text. Invalid UTF-8 becomes U+FFFD, so that the rest can be read."""
    return body.decode(errors="replace")


def encode(value: Any) -> bytes:
    """Return a value as JSON. InvalidArgument: JSON cannot hold the value."""
    pieces: list[str] = []
    try:
        _write(value, pieces.append)
    except RecursionError:
        raise InvalidArgument("the value is nested too deeply, or contains itself") from None
    text = "".join(pieces)
    try:
        return text.encode()
    except UnicodeEncodeError:  # UTF-8 has no lone surrogates, but JSON can escape them
        return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()


def _write(value: Any, put: Callable[[str], None]) -> None:
    """Append the pieces of a value's JSON text."""
    if isinstance(value, Raw):
        put(value)
    elif isinstance(value, str):
        put(_string(value))
    elif value is None:
        put("null")
    elif isinstance(value, bool):
        put("true" if value else "false")
    elif isinstance(value, int):
        put(_digits(value))
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidArgument(f"{value} is not JSON: send None, or text")
        put(float.__repr__(value))
    elif isinstance(value, (list, tuple)):
        put("[")
        for n, item in enumerate(value):
            if n:
                put(",")
            _write(item, put)
        put("]")
    elif isinstance(value, dict):
        put("{")
        for n, (name, item) in enumerate(value.items()):
            if not isinstance(name, str):
                raise InvalidArgument(f"a key of type {type(name).__name__}: JSON has only str")
            put(("," if n else "") + _string(name) + ":")
            _write(item, put)
        put("}")
    else:
        raise InvalidArgument(f"a value of type {type(value).__name__}: JSON has no such type")


def _digits(value: int) -> str:
    try:
        return int.__repr__(value)
    except ValueError:  # longer than sys.get_int_max_str_digits()
        raise InvalidArgument(f"an int of {value.bit_length()} bits has too many digits: send it as Raw") from None


def split(text: str) -> list[tuple[str, Any, Raw]]:
    """Return the members of a JSON object, or the items of an array: name ("" in an array), value and text of each.

    ValueError: the text is neither.
    """
    if text[:1] not in ("{", "["):
        raise ValueError("want a JSON object or array")
    found = []
    at = _after_space(text, 1)
    name = ""
    try:
        while text[at] not in "}]":
            if text[0] == "{":
                name, at = _decoder.raw_decode(text, at)
                at = _after_space(text, at)
            value, end = _decoder.raw_decode(text, at)
            found.append((name, value, _raw(text[at:end])))
            at = _after_space(text, end)
        if text[at + 1:].strip():
            raise ValueError("text follows the JSON")
    except (IndexError, RecursionError):
        raise ValueError("the JSON text ends early, or is nested too deeply") from None
    return found


def _after_space(text: str, at: int) -> int:
    """Return the index of the next value: after white space, a comma or a colon."""
    found = _SPACE.match(text, at)
    return found.end() if found else at

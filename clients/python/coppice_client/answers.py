"""The check of answers: those of servers in between, such as proxies, do not count."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

from . import schema
from .errors import Conflict, CoppiceError, Deleted, Exists, Fenced, Forbidden, KeyReused, NotFound, Unauthorized
from .rawjson import parse, text_of
from .transport import Headers

JSON = ("application/json",)
TEXTS = (*JSON, "application/x-ndjson", "text/markdown", "text/html")

_KINDS: dict[str | int, type[CoppiceError]] = {
    "conflict": Conflict, "deleted": Deleted, "exists": Exists, "fenced": Fenced, "key-reused": KeyReused,
    401: Unauthorized, 403: Forbidden, 404: NotFound,
}
# The required members on which a caller, or the next write, relies.
_MEMBERS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "commit": ("an id", lambda v: isinstance(v, str) and v != ""),
    "seq": ("a number of a commit", lambda v: type(v) is int and v >= 0),
    "deleted": ("true", lambda v: v is True),
    **dict.fromkeys(("context", "openCalls", "commits"), ("a list", lambda v: isinstance(v, list))),
}


@dataclass(frozen=True)
class Answer:
    """An answer of the service: body, the value of a body that is JSON, and ETag."""

    body: bytes
    value: Any
    tag: str


@dataclass(frozen=True)
class Want:
    """The valid answer of an operation. Any other is not the service's, but for example a proxy's."""

    kind: Any = object  # of a JSON body: its TypedDict; dict = any object; object = any value. bytes: not looked into
    types: tuple[str, ...] = JSON  # media types of the body; () = 204 without a body
    tag: bool = False  # whether an ETag is needed
    session: str = ""  # the session that a receipt has to name; "" = any

    def read(self, request: str, status: int, headers: Headers, body: bytes) -> Answer:
        """Return the answer if it is valid. CoppiceError: the answer is an error, or (code "answer") not valid."""
        if status >= 400:
            raise error_of(request, status, headers, body)
        tag = headers.get("etag", "").removeprefix("W/").strip('"')
        wrong = self._wrong_header(status, headers) or ("no ETag" if self.tag and not tag else "")
        value = None
        if not wrong and self.kind is not bytes:
            try:
                value = parse(text_of(body))
                wrong = "" if self.kind is object else wrong_member(self.kind, value, self.session)
            except ValueError as e:
                wrong = str(e)
        if wrong:
            raise no_answer(request, wrong, status)
        return Answer(body, value, tag)

    def _wrong_header(self, status: int, headers: Headers) -> str:
        """Return what is wrong with status or header; "" = nothing."""
        if status not in ((200, 201) if self.types else (204,)):
            return f"HTTP status {status} {headers.get('location', '')}".rstrip()
        media = media_type(headers)
        if self.types and media not in self.types:
            return f"content type {media or 'missing'}"
        if media == "text/html" and not headers.get("content-disposition", "").startswith("attachment"):
            return "a page, not an export"
        return ""


def wrong_member(kind: Any, value: Any, session: str = "") -> str:
    """Return what is wrong with the members of a document of a session ("" = any); "" = nothing."""
    if not isinstance(value, dict):
        return "it is no JSON object"
    required: frozenset[str] = getattr(kind, "__required_keys__", frozenset())
    if missing := sorted(required - value.keys()):
        return "it has no " + ", ".join(missing)
    for name, (wanted, right) in _MEMBERS.items():
        if name in required and not right(value[name]):
            return f"{name} is not {wanted}"
    if kind is schema.Committed and not isinstance(value["entries"], list):  # elsewhere it is a number
        return "entries is not a list"
    name = "id" if kind is schema.Session else "session"
    if session and name in required and value[name] != session:
        return "it names another session"
    return ""


def media_type(headers: Headers) -> str:
    """Return the media type of an answer, without parameters."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def no_answer(request: str, wrong: str, status: int = 200) -> CoppiceError:
    """Return the error for an answer that the operation does not return."""
    return CoppiceError(f"{request}: this is not an answer of the service: {wrong}", "answer", status)


def error_of(request: str, status: int, headers: Headers, body: bytes) -> CoppiceError:
    """Return the error that an answer reports: one of the service, or of a proxy before it."""
    pause = headers.get("retry-after", "")
    wait = float(pause) if pause.isdecimal() else 0.0
    try:
        problem = parse(text_of(body)) if media_type(headers) == "application/problem+json" else {}
        code, detail = str(problem["code"]), str(problem["detail"])
    except (ValueError, KeyError, TypeError):
        if status < 500 and status not in (408, 429):
            return no_answer(request, f"HTTP status {status}", status)
        code, detail, problem = "proxy", f"HTTP status {status}", {}
    kind = _KINDS.get(code) or _KINDS.get(status) or CoppiceError
    failed = kind(detail, code, status, problem, wait)
    refused = status < 500 and code != "proxy"  # a proxy may have passed the request on
    failed.outcome = "not-applied" if refused or code in ("busy", "in-doubt", "no-space") else "unknown"
    return failed

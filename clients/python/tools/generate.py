"""Write coppice_client/schema.py and operations.py from docs/openapi.json, and aio.py from the synchronous classes.

    python3 tools/generate.py [--check]

With --check it writes nothing, and fails if a file differs from the generated text.
"""
from __future__ import annotations

import json
import keyword
import re
import sys
from pathlib import Path
from typing import Any

import twin
from twin import broken

HERE = Path(__file__).resolve().parent.parent
PACKAGE = HERE / "coppice_client"
HEADER = '"""%s"""\n# Written by tools/generate.py from %s. Do not edit.\nfrom __future__ import annotations\n\n'

# Operations whose method has another name than their id. None: it is written by hand.
NAMES = {
    "listSessions": "sessions", "allUsage": "usages", "getSession": "info", "changeSession": "set_info",
    "createSession": "create", "deleteSession": "delete", "listCommits": "commits", "getCommit": "commit_at",
    "listEntries": "entries", "queryEntries": "entries", "getEntry": "entry", "getDoc": "doc", "state": "state_at",
    "context": "context_at",
    "import": "import_file",
    "resume": None, "events": None, "openapi": None, "metrics": None, "upload": None,
    "setRetention": None, "runRetention": None,  # of an administrator: with the command, or a plain request
}
# Optional parameters that may be passed without their name.
POSITIONAL = {"at", "b", "entries", "format", "partial", "path", "q", "tag", "to"}
# What the comments of methods add to the description.
NOTES = {
    "commit": "It is retried with one idempotency key, so stored at most once. A session remembers the "
              "keys of its last 1,024 commits that had one. What is absent is unchanged; None clears state and "
              "manager. base is the handle's, and the key, of at most 250 characters, is made here, unless they are "
              "given; base=\"*\" commits on whatever is newest.",
    "partial": "None removes it. It is sent once, and False is returned if that failed.",
    "compact": "After a lost answer it is found again only by from_, and its receipt has no replaced. Without from_ the "
               "error is OutcomeUnknown: resume, and look.",
    "fork": "The base of the handle stays.",
    "import": "With again it is sent once: after a lost answer it may be there (OutcomeUnknown).",
    "claim": "It ends a fence of this handle; its base is then the claim.",
    "snapshot": "The base of the handle stays.",
}

# How a write without a key is found in the log after a lost answer: the reason of its commit, and whether a commit e with
# the first entry f has its effect. Such a commit means that the write was made, by this client or another one.
EFFECTS = {
    "compact": ("compaction", 'from_ and (f.get("summary"), f.get("firstKeptEntryId")) == (summary, from_)'),
}


def snake(name: str) -> str:
    name = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()
    return name + "_" if keyword.iskeyword(name) else name


def python_type(schema: dict[str, Any]) -> str:
    """Return the Python type of a schema."""
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[1]
    if "anyOf" in schema:
        return " | ".join(python_type(s) for s in schema["anyOf"])
    if "enum" in schema:
        return "Literal[" + ", ".join(json.dumps(v) for v in schema["enum"]) + "]"
    kinds = schema.get("type", "")
    if isinstance(kinds, list):
        return " | ".join("None" if k == "null" else python_type({**schema, "type": k}) for k in kinds)
    if kinds == "array":
        return f"list[{python_type(schema['items'])}]"
    if kinds == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"dict[str, {python_type(schema['additionalProperties'])}]"
    return {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}.get(kinds, "Any")


def fields(schema: dict[str, Any], required: bool) -> dict[str, dict[str, Any]]:
    wanted = set(schema.get("required", ()))
    return {k: v for k, v in schema.get("properties", {}).items() if (k in wanted) == required}


def typed_dict(name: str, base: str, members: dict[str, dict[str, Any]]) -> str:
    """Return a class; or, if the name of a member is a keyword, a call, which cannot extend another one."""
    if any(keyword.iskeyword(k) for k in members):
        items = [f'"{k}": {json.dumps(python_type(v))}' for k, v in members.items()]
        total = "" if base == "TypedDict" else ", total=False"
        text = f'{name} = TypedDict("{name}", {{{", ".join(items)}}}{total})'
        if len(text) > 120:
            text = f'{name} = TypedDict("{name}", {{\n    ' + ",\n    ".join(items) + f",\n}}{total})"
        return text + "\n"
    lines = [f"class {name}({base}):"]
    for key, value in members.items():
        lines.append(f"    {key}: {python_type(value)}")
        if value.get("description"):
            lines.append(f'    """{value["description"]}"""')
    return "\n".join(lines if members else [*lines, "    pass"]) + "\n"


def schema_module(description: dict[str, Any]) -> str:
    """Return the module of the documents of the API, a TypedDict for each."""
    out = HEADER % ("The documents of the API. Members that may be absent are in the second class of two.",
                    "docs/openapi.json") + "from typing import Any, Literal, TypedDict\n"
    for name, schema in sorted(description["components"]["schemas"].items()):
        must, may = fields(schema, True), fields(schema, False)
        if must and may:
            out += "\n\n" + typed_dict(f"_{name}", "TypedDict", must)
            out += "\n\n" + typed_dict(name, f"_{name}, total=False", may)
        else:
            out += "\n\n" + typed_dict(name, "TypedDict" if must else "TypedDict, total=False", must or may)
    return out + '''

class Event(Commit):
    """A commit as those who follow a session get it."""

    entries: list[Any]  # type: ignore[misc]
    """the entries that the commit made durable, as they were appended"""
    state: list[dict[str, Any]]
    """RFC 6902 patch from the state before the commit to the one after it"""
'''


def answer(op: dict[str, Any]) -> tuple[str, str]:
    """Return the type of an operation's answer, and the name of its list, if it has pages."""
    content = next(r for s, r in op["responses"].items() if s.startswith("2")).get("content", {})
    if "application/json" not in content:
        return "bytes", ""
    return python_type(content["application/json"].get("schema", {})), ""


def kind_of(returns: str) -> str:
    """Return the class by which the answer of an operation is checked."""
    return {"Any": "object", "dict[str, Any]": "dict"}.get(returns, returns)


def file_work(op: dict[str, Any], sent: str) -> str:
    """Return the code of an operation that answers with a file, whose media type is checked."""
    types = sorted(op["responses"]["200"]["content"])
    if op["operationId"] != "export":
        return f"return self._bytes({tuple(types)}, {sent})".replace("'", '"')
    named = json.dumps({t.split("/")[1]: t for t in types if t.startswith("text/")})
    return (f'kind = {named}.get(format or "", "application/x-ndjson")\n'
            f"        return self._bytes((kind,), {sent})")


def wrap(line: str) -> str:
    """Return a line of code as lines of at most 120 columns, broken between the arguments of its first call."""
    if len(line) <= 120:
        return line
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    start = line.index("(") + 1
    end = max(line.rfind(") -> "), -1)
    end = end if end >= 0 else line.rindex(")")
    lines, depth, piece = [line[:start], indent], 0, ""
    for c in line[start:end] + ",":
        depth += (c in "([{") - (c in ")]}")
        piece += c
        if c == "," and depth in (0, 1 if "{" in line else 0):
            if len(lines[-1]) + len(piece) > 118 and lines[-1].strip():
                lines.append(indent)
            lines[-1] += (" " if lines[-1].strip() else "") + piece.strip()
            piece = ""
    return "\n".join([*lines, indent[4:] + line[end:]])


def method(path: str, verb: str, op: dict[str, Any], schemas: dict[str, Any]) -> str:
    """Return the method of an operation."""
    name = NAMES.get(op["operationId"], snake(op["operationId"]))
    if name is None:
        return ""
    parts = [p for p in path.removeprefix("/v1").split("/") if p]
    session = parts[:2] == ["sessions", "{id}"]
    if session:
        parts = parts[2:]
    params = [p for p in op.get("parameters", ()) if p["in"] == "query"]
    places = [p[1:-1] for p in parts if p.startswith("{")]
    returns, _ = answer(op)
    listed = schemas.get(returns, {}).get("properties", {})
    paged = "next" in listed and any(p["name"] == "after" for p in params) and returns != "Context"
    drop = {"after", *(["before"] if "prev" in listed else [])} if paged else set()  # cursors are those of Pages.page
    head = ["self"] + [f"{p}: {'int' if p == 'seq' else 'str'}" for p in places]
    options, query = [], []
    for p in params:
        if p["name"] in drop:
            continue
        arg = snake(p["name"])
        kind = python_type(p["schema"])
        query.append((p["name"], arg))
        if p.get("required"):
            head.append(f"{arg}: {kind}")
        else:
            options.append(f"{arg}: {kind} | None = None")
    pieces = [p[1:-1] if p.startswith("{") else json.dumps(p) for p in parts]
    pieces = [f"str({p})" if p == "seq" else p for p in pieces]
    sent = ", ".join(pieces + [f"{k}={v}" if not keyword.iskeyword(k) else f'**{{"{k}": {v}}}' for k, v in query])
    body = op.get("requestBody", {}).get("content", {})
    work, setup = "", ""
    if verb == "get" and paged:
        (item, schema), = [(k, v) for k, v in listed.items() if v.get("type") == "array" and k not in ("problems", "marks")]
        returns = f"Pages[{python_type(schema['items'])}]"
        if op["operationId"] in ("listSessions", "allUsage", "queryEntries"):
            options.append("meta: dict[str, str] | None = None")
            sent += ', **{f"meta.{key}": value for key, value in (meta or {}).items()}'
        if op["operationId"] in ("listEntries", "queryEntries"):
            options.append("match: dict[str, Any] | None = None")
            sent += ', **{f"match.{path}": encode(value).decode() for path, value in (match or {}).items()}'
        work = f'return self._pages("{item}", {sent})'
    elif verb == "get":
        work = f"return self._json({kind_of(returns)}, {sent})" if sent else f"return self._json({kind_of(returns)})"
        if returns == "bytes":
            work = file_work(op, sent)
    elif "application/octet-stream" in body:
        head.append("data: bytes")
        work = (f'path = self._path({sent})\n        found: {returns} = '
                f'self._send("POST", path, Want({returns}), data, once=bool(again)).value')
    else:
        ref = body.get("application/json", {}).get("schema", {})
        schema = schemas.get(python_type(ref), {}) if ref else {}
        items = []
        for key, value in {**fields(schema, True), **fields(schema, False)}.items():
            arg, kind = snake(key), python_type(value)
            if op["operationId"] in ("fork", "createSession") and key == "id":
                items.append('"id": id')
                options.append('id: str = ""')
                continue
            items.append(f'"{key}": {arg}')
            if key in schema.get("required", ()):
                head.append(f"{arg}: {kind}")
            else:
                options.append(f"{arg}: {kind} | None = None")
        doc = "{" + ", ".join(items) + "}"
        if op["operationId"] in ("commit", "partial"):
            options = [o.replace("Any | None = None", "Any = UNSET") for o in options if not o.startswith("entries")]
            doc = re.sub(r": (state|manager|partial)\b", r': Raw("null") if \1 is None else \1', doc)
        if op["operationId"] == "commit":
            head.append("entries: Iterable[Any] = ()")
            options += ['key: str = ""', 'base: str = ""']
            work = f"return self._commit({doc.replace(': entries', ': list(entries)')}, key, base, format)"
        elif op["operationId"] == "partial":
            head, options = ["self", "message: Any"], []
            returns, work = "bool", """with contextlib.suppress(OutcomeUnknown, Unavailable):
            sent = Raw("null") if message is None else message
            self._send("POST", self._path("partial"), Want(bytes, ()), {"partial": sent}, once=True)
            return True
        return False"""
        elif op["operationId"] == "createSession":
            head.append('id: str = ""')
            returns, work = "Session", f"made = self.session(id or new_id())\n        made._create({doc})"
            work += "\n        return made"
        elif op["operationId"] in ("verify", "issueToken"):  # a repeat does no harm
            work = (f'path = self._path("{parts[0]}")\n        found: {returns} = '
                    f'self._send("POST", path, Want({returns}), {doc}, writes=False).value')
        elif op["operationId"] == "erase":  # it conflicts with no writer, and a repeat completes it
            work = (f'want = Want({returns}, session=self._named)\n        path = self._path("erase")\n'
                    f'        found: {returns} = self._send("POST", path, want, {doc}).value')
        elif any(p["in"] == "header" and p["name"] == "Idempotency-Key" for p in op.get("parameters", ())):
            options += ['key: str = ""', 'base: str = ""']
            work = (f'found: {returns} = self._keyed({returns}, "{verb.upper()}", self._path({sent}), '
                    f'{doc if ref else None}, key, base, {op["operationId"] == "claim"})')
        else:
            verb_arg = "" if verb == "post" else f', "{verb.upper()}"'
            name_arg = parts[0] if parts else {"patch": "set_info", "delete": "delete"}[verb]
            more = "".join(f", {k}={v}" for k, v in query)
            if op["operationId"] in EFFECTS:
                reason, effect = EFFECTS[op["operationId"]]
                more += f', reason="{reason}", made=made'
                made = "\n".join(broken(f"            return {effect}"))
                setup = f"\n        def made(e: Event, f: dict[str, Any]) -> Any:\n{made}\n"
            work = f'found: {returns} = self._move({returns}, "{name_arg}", {doc if ref else None}{verb_arg}{more})'
    positional = POSITIONAL - ({"format"} if op["operationId"] == "commit" else set())
    head += [o for o in options if o.split(":")[0] in positional]
    options = [o for o in options if o not in head]
    signature = name + "(" + ", ".join(head + (["*"] + options if options else [])) + ")"
    text = op["summary"] + "."
    for note in (op.get("description"), NOTES.get(op["operationId"])):
        text += f" {note}" if note else ""
    for p in params:
        if p["name"] not in drop and p.get("description"):
            text += f"\n\n        {snake(p['name'])}: {p['description']}"
    text = text.replace("\n\n        ", "\n        ").replace("\n        ", "\n\n        ", 1)
    lines = [f'        """{text}"""' if "\n" not in text else f'        """{text}\n        """']
    out = [wrap(f"    def {signature} -> {returns}:")]
    out += [part for block in lines for line in block.split("\n") for part in fold(line)]
    out += [setup.rstrip("\n"), ""] if setup else []
    out += [wrap(line) for line in ("        " + work).split("\n")]
    if "found: " in work:
        out.append("        return found")
    return "\n".join(out) + "\n"


def fold(line: str) -> list[str]:
    """Return a line of a comment as lines of at most 120 columns."""
    indent, out = re.match(r" *", line).group(0), []  # type: ignore[union-attr]
    while len(line) > 120:
        cut = line.rfind(" ", len(indent) + 1, 120)
        out.append(line[:cut])
        line = indent + line[cut + 1:]
    return [*out, line]


def resumed(schema: dict[str, Any]) -> str:
    """Return the class of the answer to resume: its members as attributes, and as text."""
    out = ('\n\nclass Resumed:\n    """What an agent needs to continue. raw has each member as JSON text: '
           'raw["state"] has all digits."""\n\n')
    lines = ["    def __init__(self, text: str, session: str) -> None:", "        members = split(text)",
             "        found = {name: value for name, value, _ in members}",
             "        if wrong := wrong_member(Resume, found, session):",
             "            raise ValueError(wrong)",
             "        self.raw = {name: raw for name, _, raw in members}"]
    for required in (True, False):
        for key, value in fields(schema, required).items():
            kind = python_type(value) + ("" if required or python_type(value) == "Any" else " | None")
            read = f'["{key}"]' if required else f'.get("{key}")'
            lines.append(f"        self.{snake(key)}: {kind} = found{read}")
            if value.get("description"):
                lines.append(f'        """{value["description"]}"""')
    lines += ["", "    @property", "    def raw_context(self) -> list[Raw]:",
              '        """Each message of the context as text."""',
              '        return [raw for _, _, raw in split(self.raw["context"])]']
    return out + "\n".join(lines) + "\n"


def operations_module(description: dict[str, Any]) -> str:
    """Return the module with a method for each operation that is only a request."""
    schemas = description["components"]["schemas"]
    groups: dict[bool, list[str]] = {False: [], True: []}
    for path, verbs in description["paths"].items():
        for verb, op in verbs.items():
            text = method(path, verb, op, schemas)
            if text:
                own = path.startswith("/v1/sessions/{id}") and op["operationId"] != "createSession"
                groups[own].append(text)
    used = "\n".join(groups[False] + groups[True]) + resumed(schemas["Resume"]) + "Committed Event Resume"
    names = [n for n in sorted(schemas) if re.search(rf"\b{n}\b", used)]
    names = sorted({*names, "Event"} - {"Session"})
    imports = "from .schema import (\n" + "".join(fold_names(names)) + ")\nfrom .schema import Session as SessionInfo\n"
    out = HEADER % ("The operations of the API that only have to be sent.", "docs/openapi.json")
    out += "import contextlib\n"
    out += "from typing import TYPE_CHECKING, Any, Callable, Iterable, Literal\n\n"
    out += "from .answers import Want, wrong_member\nfrom .errors import OutcomeUnknown, Unavailable\n"
    out += "from .rawjson import UNSET, Raw, encode, split\n"
    out += "from .requests import Pages, Resource, new_id\n" + imports
    out += "\nif TYPE_CHECKING:\n    from .session import Session\n"
    store = "\n".join(groups[False]).replace("Pages[Session]", "Pages[SessionInfo]")
    own = re.sub(r"(-> |_json\()Session\b", r"\1SessionInfo", "\n".join(groups[True]))
    out += resumed(schemas["Resume"])
    out += '\n\nclass StoreOperations(Resource):\n    """The operations on a store."""\n\n' + store
    out += ("\n    def session(self, id: str) -> Session:\n        raise NotImplementedError\n")
    out += '\n\nclass SessionOperations(Resource):\n    """The operations on a session."""\n\n' + own
    out += ("\n    def _move(\n        self, kind: Any, op: str, body: Any, method: str = \"POST\", reason: str = \"\",\n"
            "        made: Callable[..., Any] | None = None, **query: Any,\n    ) -> Any:\n"
            "        raise NotImplementedError\n"
            "\n    def _keyed(\n        self, kind: Any, method: str, path: str, body: Any, key: str, base: str, claims: bool,\n"
            "    ) -> Any:\n        raise NotImplementedError\n"
            "\n    def _commit(\n        self, body: dict[str, Any], key: str, base: str, format: str | None = None,\n"
            "    ) -> Committed:\n        raise NotImplementedError\n")
    return out


def fold_names(names: list[str]) -> list[str]:
    lines, line = [], "   "
    for name in names:
        if len(line) + len(name) + 2 > 118:
            lines.append(line + "\n")
            line = "   "
        line += f" {name},"
    return [*lines, line + "\n"]


EXPORTS = {
    "aio": ("AsyncSession", "AsyncStore"),
    "errors": ("Conflict", "CoppiceError", "Deleted", "Exists", "Fenced", "Forbidden", "InvalidArgument", "KeyReused",
               "NotFound", "OutcomeUnknown", "Unauthorized", "Unavailable"),
    "follow": ("Follow", "Followed"), "operations": ("Resumed",), "rawjson": ("Raw",), "requests": ("Limits", "Page", "Pages"),
    "session": ("Session",), "store": ("Store",),
    "threads": ("AsyncFollow", "AsyncTurn"), "turn": ("Turn",),
}
VERSION = re.search(r'^version = "(.*)"$', (HERE / "pyproject.toml").read_text(), re.M).group(1)  # type: ignore
INIT = '"""A client of `coppice serve`: an agent\'s conversation and state, stored once or not at all."""\n' + (
    "# Written by tools/generate.py. Do not edit.\n") + "".join(
    f"from .{name} import {n} as {n}\n" for name, names in EXPORTS.items() for n in names
) + f'\n__version__ = "{VERSION}"\n'


def modules() -> dict[str, str]:
    """Return the content of each generated file."""
    description = json.loads((HERE.parent.parent / "docs" / "openapi.json").read_text())
    made = {"schema.py": schema_module(description), "operations.py": operations_module(description)}
    made["__init__.py"] = INIT
    made["aio.py"] = twin.module(PACKAGE, made["operations.py"])
    return made


def main() -> int:
    stale = [n for n, text in modules().items() if not (PACKAGE / n).exists() or (PACKAGE / n).read_text() != text]
    if "--check" in sys.argv:
        print("\n".join(f"{n} is not what tools/generate.py writes" for n in stale), end="\n" if stale else "")
        return 1 if stale else 0
    for name, text in modules().items():
        (PACKAGE / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

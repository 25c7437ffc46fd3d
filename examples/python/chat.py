"""The backend of a chat page like that of Open WebUI: chats are {"history": {"messages": {ID: {id, parentId,
childrenIds, role, content}}, "currentId"}}; versions of a message share a parent, and the page saves all of it.

    PYTHONPATH=clients/python python3 examples/python/chat.py http://127.0.0.1:7070 8080

Only new or changed messages are stored. A message that is still streamed ("done": false) is shown on other pages,
live. It is a sketch: no users, no rights. It listens on the loopback address alone.
"""
from __future__ import annotations

import json
import sys
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Iterator

from coppice_client import Conflict, NotFound, Store


class Chats:
    """The chats of a store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def index(self) -> list[dict[str, Any]]:
        """Return the chats, newest first."""
        return [{"id": s["id"], "title": s["title"], "updated_at": s["updated"]} for s in self.store.sessions()]

    def create(self, title: str) -> dict[str, Any]:
        """Create a chat."""
        return self.load(self.store.create(title=title).id)

    def load(self, id: str) -> dict[str, Any]:
        """Return a chat with all versions of its messages, and the last visible message."""
        session = self.store.session(id)
        messages: dict[str, Any] = {}
        for e in session.entries("all"):
            if e["type"] == "message":
                messages[e["id"]] = {**e["message"], "id": e["id"], "parentId": e["parentId"], "childrenIds": []}
        for m in messages.values():
            if m["parentId"] in messages:
                messages[m["parentId"]]["childrenIds"].append(m["id"])
        history = {"messages": messages, "currentId": session.resume().head}
        return {"id": id, "title": session.info()["title"], "chat": {"history": history}}

    def versions(self, id: str, message: str) -> list[str]:
        """Return the ids of all versions of a message, oldest first."""
        return [v["id"] for v in self.store.session(id).versions(message)["versions"]]

    def edit(self, id: str, message: str, text: str) -> dict[str, Any]:
        """Make another version of a user's message, from which the chat continues."""
        session = self.store.session(id)
        session.resume()
        session.edit(message, {"role": "user", "content": text})
        return self.load(id)

    def switch(self, id: str, message: str) -> dict[str, Any]:
        """Show another version: the newest message below it."""
        session = self.store.session(id)
        session.resume()
        session.switch(message)
        return self.load(id)

    def save(self, id: str, history: dict[str, Any]) -> dict[str, Any]:
        """Store the messages of a page that the session does not have, and switch to the versions that it shows.

        Messages of other pages stay. After a lost race it is repeated on the winning commit, at most three times.
        """
        for left in (2, 1, 0):
            try:
                self._save(id, history)
                return self.load(id)
            except Conflict:
                if not left:
                    raise
        raise AssertionError

    def _save(self, id: str, history: dict[str, Any]) -> None:
        known = self.load(id)["chat"]["history"]["messages"]
        session = self.store.session(id)
        head = session.resume().head
        entries = []
        for m in parents_first(history["messages"]):
            message = {k: v for k, v in m.items() if k not in ("id", "parentId", "childrenIds", "done")}
            old = known.get(m["id"], {})
            if not m.get("done", True):
                session.partial(message)
            elif any(old.get(k) != v for k, v in message.items()):
                entries.append({"type": "message", "id": m["id"], "parentId": m["parentId"], "message": message,
                                "timestamp": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")})
        if entries:
            session.commit(entries, on_known_id="amend")
            head = session.resume().head
        shown = history.get("currentId")
        if shown and shown != head and history["messages"][shown].get("done", True):
            session.branch(shown)

    def live(self, id: str, after: int | None = None) -> Iterator[dict[str, Any]]:
        """Yield the chat whenever it changes, and partial output in between, until the caller stops."""
        follow = self.store.session(id).follow(after, partial=True)
        try:
            for e in follow:
                yield {"partial": e.data} if e.kind == "partial" else self.load(id)
        finally:
            follow.close()


def parents_first(messages: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of a page, each after its parent."""
    def depth(m: dict[str, Any]) -> int:
        n = 0
        while m["parentId"] in messages and n < len(messages):
            m, n = messages[m["parentId"]], n + 1
        return n
    return sorted(messages.values(), key=depth)


class Handler(BaseHTTPRequestHandler):
    """The routes that the page calls."""

    chats: Chats

    def do_GET(self) -> None:
        parts = self.path.strip("/").split("/")[3:]  # below /api/v1/chats
        self.answer(lambda: self.chats.index() if not parts else self.chats.load(parts[0]))

    def do_POST(self) -> None:
        parts = self.path.strip("/").split("/")[3:]
        chat = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["chat"]
        self.answer(lambda: self.chats.create(chat.get("title", "")) if parts == ["new"]
                    else self.chats.save(parts[0], chat["history"]))

    def answer(self, work: Any) -> None:
        try:
            status, doc = 200, work()
        except NotFound as e:
            status, doc = 404, {"detail": e.detail}
        text = json.dumps(doc).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


if __name__ == "__main__":
    Handler.chats = Chats(Store(sys.argv[1]))
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()

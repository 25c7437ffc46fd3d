"""Commits that create, move and set the context; annotations; fences; deletions with children."""
from __future__ import annotations

import base64
import hashlib
import json
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from coppice_client import Conflict, Deleted, Exists, Fenced, Limits, NotFound, Session, Store
from tests.served import Case


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(session: Session) -> list[str]:
    return [m["content"] for m in session.resume().context]


class WritesTest(Case):
    def setUp(self) -> None:
        self.store = Store(self.serve().url)
        self.addCleanup(self.store.close)

    def test_a_commit_creates_its_session_and_again(self) -> None:
        session = self.store.session("x")
        first = session.commit([user("one")], create={"title": "T"})
        self.assertTrue(first["created"])
        self.assertNotIn("created", session.commit([user("two")], create={"title": "T"}))
        self.assertEqual((said(session), session.info()["title"]), (["one", "two"], "T"))
        session.delete()
        other = self.store.session("x")
        self.assertRaises(Deleted, other.commit, [user("three")], create={})
        other.commit([user("three")], create={"again": True})
        self.assertEqual(said(other), ["three"])
        self.assertRaises(NotFound, self.store.session("y").commit, [user("a")], base="*")
        other.delete()
        self.assertEqual(said(self.store.create("x", again=True)), [])

    def test_a_commit_moves_and_sets_the_context(self) -> None:
        session = self.store.create()
        a, b = session.commit([user("a"), user("b")])["entries"]
        self.assertIn("left", session.commit([user("B")], from_=a))
        self.assertEqual(said(session), ["a", "B"])
        session.commit([user("c")], context=[{"entry": b}, {"message": user("short")}])
        self.assertEqual(said(session), ["b", "short", "c"])
        session.commit(context=[])
        self.assertEqual(said(session), ["a", "B", "c"])
        entry = {"entry": {"type": "message", "id": "e", "message": user("d")}, "onKnownId": "ignore"}
        session.commit([entry, {"message": user("e"), "original": {"n": 1}}, entry])
        self.assertEqual(said(session), ["a", "B", "c", "d", "e"])
        self.assertEqual([e["original"] for e in session.entries() if "original" in e], [{"n": 1}])

    def test_lines_of_a_program_are_messages_and_keep_their_bytes(self) -> None:
        session = self.store.session("x")
        lines = [{"type": "user", "uuid": "a", "parentUuid": None, "message": user("one")},
                 {"type": "custom-title", "customTitle": "T"},
                 {"type": "user", "uuid": "b", "parentUuid": "a", "message": user("two")}]
        session.commit(lines[:2], format="claude-code", create={})
        session.commit([lines[0], lines[2]], format="claude-code")
        self.assertEqual(said(session), ["one", "two"])
        kept = [json.loads(line) for line in session.original().splitlines()]
        self.assertEqual(kept, lines)
        other = self.store.session("x")
        other.base = session.base
        session.commit([user("three")])
        with self.assertRaises(Conflict) as caught:
            other.commit([{**lines[2], "uuid": "c"}], format="claude-code")
        self.assertIn("kept", caught.exception.keep_both())

    def test_an_image_is_uploaded_as_bytes(self) -> None:
        session, image = self.store.create(), b"GIF89a" + bytes(50_000)
        shown = {"type": "image", "mimeType": "image/gif", "data": session.upload(image)}
        session.commit([{"role": "user", "content": [shown]}], images="ref")
        [message] = session.resume().context
        self.assertEqual(base64.b64decode(message["content"][0]["data"]), image)
        self.assertEqual(session.blob(hashlib.sha256(image).hexdigest()), image)

    def test_annotations(self) -> None:
        session = self.store.create()
        a, b = session.commit([user("a"), user("b")])["entries"]
        session.amend(a, message=user("A"))
        session.hide(b)
        self.assertEqual(said(session), ["A"])
        session.amend(a)
        session.amend(b)
        self.assertEqual(said(session), ["a", "b"])
        session.branch(a, name="side")
        session.rename_branch("side", "other")
        session.rename_branch("main", "")
        self.assertEqual([x["name"] for x in session.branches()["branches"]], ["other"])
        self.assertEqual(said(session), ["a"])

    def test_an_annotation_leaves_a_handle_where_it_was(self) -> None:
        session = self.store.create()
        [a] = session.commit([user("a")])["entries"]
        at = session.base, session.seq
        self.store.session(session.id).commit([user("b")], base="*")
        session.label(a, "here")
        self.assertEqual((session.base, session.seq), at)
        followed = session.follow()
        self.addCleanup(followed.close)
        self.assertEqual([e.data["seq"] for _, e in zip(range(2), followed)], [2, 3], "it has not seen these")

    def test_a_fence_holds_until_resume_or_claim(self) -> None:
        session = self.store.create()
        [a] = session.commit([user("a")])["entries"]
        other = self.store.session(session.id)
        other.resume()
        other.claim()
        with self.assertRaises(Fenced) as caught:
            session.commit([user("late")])
        for write in (lambda: session.commit([user("late")], base="*"), lambda: session.label(a, "x"),
                      lambda: session.turn(lambda t: t.append(user("late"))), session.delete,
                      lambda: session.switch("main")):
            self.assertRaises(Fenced, write)
        kept = caught.exception.keep_both()
        self.assertEqual((kept["kept"] != "", caught.exception.kept), (True, kept))
        self.assertRaises(Fenced, session.hide, a)
        self.assertEqual(said(session), ["a"])
        session.commit([user("b")])
        other.resume()
        other.claim()
        self.assertRaises(Fenced, session.label, a, "x")
        session.claim()
        session.resume()
        session.commit([user("c")])
        self.assertEqual(said(session), ["a", "b", "c"])

    def test_a_writer_is_not_fenced_by_its_own_claim(self) -> None:
        named = Store(self.serve().url, writer="one")
        self.addCleanup(named.close)
        session = named.create()
        first = session.commit([user("a")])["commit"]
        late = named.session(session.id)
        late.resume()
        session.claim()
        late.commit([user("b")])
        stranger = Store(named._transport._base, writer="two")
        self.addCleanup(stranger.close)
        self.assertRaises(Fenced, stranger.session(session.id).commit, [user("c")], base=first)

    def test_a_deletion_takes_children_along(self) -> None:
        parent = self.store.create("parent")
        self.store.create("child", parent="parent", relation="agent")
        self.store.create("grandchild", parent="child", relation="agent")
        self.assertEqual(sorted(parent.delete(children=True)["children"]), ["child", "grandchild"])
        self.assertEqual(list(self.store.sessions()), [])
        self.assertRaises(Deleted, self.store.create, "child")
        self.store.create("child", again=True)
        self.assertRaises(Exists, self.store.create, "child", again=True)

    def test_bodies_without_room_are_sent_again_until_each_is_stored_once(self) -> None:
        server = self.serve()
        waits: list[float] = []
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as stalled:
            stalled.sendall(b"POST /v1/sessions/s0/commits HTTP/1.1\r\nHost: localhost\r\nIf-Match: *\r\n"
                            b"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n" % (64 << 20))

            def sleep(seconds: float) -> None:
                waits.append(seconds)
                if len(waits) == 6:
                    stalled.close()

            store = Store(server.url, limits=Limits(sleep=sleep))
            self.addCleanup(store.close)
            sessions = [store.create(f"s{i}") for i in range(6)]
            self.assertIn(b" 100 ", stalled.recv(100))  # its body uses the whole limit of one client
            text = "x" * 200_000
            with ThreadPoolExecutor(6) as threads:
                for done in [threads.submit(s.commit, [user(text), user(s.id)]) for s in sessions]:
                    done.result()
        for s in sessions:
            self.assertEqual((said(s), s.info()["seq"]), ([text, s.id], 1))
        self.assertGreaterEqual(len(waits), 6)
        self.assertGreaterEqual(min(waits), 1.0)

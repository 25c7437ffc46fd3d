"""Whatever is cut, a move or an annotation is made once; a write without a key is searched in the log."""
from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable

from coppice_client import Conflict, Deleted, Limits, NotFound, OutcomeUnknown, Raw, Session, Store, Unavailable
from coppice_client.transport import HTTP
from tests.served import Case, Proxy, Server

QUICK = Limits(first=0.01, longest=0.05, total=60.0, attempts=100)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


class MovesTest(Case):
    def setUp(self) -> None:
        self.behind(self.serve())

    def behind(self, server: Server) -> None:
        """Make a store of the server behind a proxy that cuts, and one that reaches it directly."""
        self.server = server
        self.cut: int | None = None
        self.then: Callable[[], object] | None = None
        self.proxy = Proxy(self.server.port, self.rule)
        self.addCleanup(self.proxy.close)
        self.store, self.direct = Store(self.proxy.url, limits=QUICK), Store(self.server.url)
        self.addCleanup(self.store.close)
        self.addCleanup(self.direct.close)

    def rule(self, n: int, request: bytes) -> int | None:
        """Cut the next write."""
        if request.startswith(b"GET") or self.cut is None:
            return None
        cut, self.cut = self.cut, None
        if self.then:
            self.then()
        return cut

    def session(self) -> Session:
        """Return a session of six messages, whose handle is behind the proxy."""
        session = self.store.create()
        self.ids = session.commit([user(f"{n} " + "x" * 400) for n in range(6)], state={"n": 6})["entries"]
        return session

    def commits(self, session: Session) -> int:
        return len(list(self.direct.session(session.id).commits()))

    MOVES: dict[str, Callable[[Session, list[str]], Any]] = {
        "switch": lambda s, ids: s.switch(ids[5]),
        "branch": lambda s, ids: s.branch(ids[2], name="side"),
        "branch with a summary": lambda s, ids: s.branch(ids[2], summary="what was left"),
        "branch before the first": lambda s, ids: s.branch(""),
        "edit": lambda s, ids: s.edit(ids[5], user("edited")),
        "edit with an entry": lambda s, ids: s.edit(ids[5], {"type": "message", "message": user("edited")}),
        "edit with text": lambda s, ids: s.edit(ids[5], Raw('{"role":"user","content":"x","cost":1.10}')),
        "rollback": lambda s, ids: s.rollback("seq:0"),
        "label": lambda s, ids: s.label(ids[1], "here"),
        "compact": lambda s, ids: s.compact("what was said", from_=ids[4]),
        "set_info": lambda s, ids: s.set_info(title="New", meta={"k": "v"}),
        "amend": lambda s, ids: s.amend(ids[1], message=user("amended")),
        "hide": lambda s, ids: s.hide(ids[1]),
        "rename_branch": lambda s, ids: s.rename_branch("main", "trunk"),
        "claim": lambda s, ids: s.claim(),
    }

    def test_moves_are_made_once_through_cut_connections(self) -> None:
        def make(name: str, move: Callable[[Session, list[str]], Any], cut: int | None) -> None:
            case = MovesTest()  # with a proxy of its own
            self.addCleanup(case.doCleanups)
            case.behind(self.server)
            session = case.session()
            if name == "switch":  # to a place other than the head
                session.branch(case.ids[0])
            before = case.commits(session)
            case.cut = cut
            moved = move(session, case.ids)
            self.assertEqual(case.commits(session), before + 1)
            newest = case.direct.session(session.id).resume()
            self.assertEqual((moved["head"], moved["branch"], moved["seq"]), (newest.head, newest.branch, newest.seq))
            self.assertEqual((session.base, session.seq), (newest.commit, newest.seq))
            session.commit([user("on it")])
        with ThreadPoolExecutor(8) as pool:  # the server waits for a missing request
            made = {(name, cut): pool.submit(make, name, move, cut)
                    for name, move in self.MOVES.items() for cut in (None, -1, 0, 30)}
        for (name, cut), one in made.items():
            with self.subTest(name, cut=cut):
                one.result()

    def test_writes_without_a_commit(self) -> None:
        for cut in (None, -1, 0):
            with self.subTest(cut=cut):
                session = self.session()
                self.cut = cut
                self.assertEqual(session.snapshot("good")["tag"], "good")
                self.assertEqual(len(session.snapshots()["snapshots"]), 1)
                self.cut = cut
                forked = self.store.session(session.fork("seq:1", title="F")["session"])
                self.assertEqual(len(forked.resume().context), 6)
                self.assertEqual(len([s for s in self.direct.sessions(q="F")]), 1)
                session.commit([user("the base is still the base")])
                self.cut = cut
                self.assertTrue(forked.delete()["deleted"])
                self.assertRaises(Deleted, forked.resume)
                for each in list(self.direct.sessions()):
                    self.direct.session(each["id"]).resume()

    def test_a_lost_race_is_a_conflict(self) -> None:
        session = self.session()
        other = self.direct.session(session.id)
        other.commit([user("first")], base="*")
        with self.assertRaises(Conflict) as caught:
            session.switch("main")
        self.assertEqual(caught.exception.outcome, "not-applied")

    def test_a_race_that_was_lost_with_the_request_is_a_conflict(self) -> None:
        session = self.session()
        self.cut, self.then = -1, lambda: self.direct.session(session.id).commit([user("first")], base="*")
        with self.assertRaises(Conflict):
            session.branch(self.ids[1])
        self.assertEqual([c["reason"] for c in session.commits()], ["turn", "turn", "create"])

    def test_what_the_log_does_not_say_is_unknown(self) -> None:
        session = self.session()

        def other() -> None:
            handle = self.direct.session(session.id)
            handle.resume()
            handle.compact("by another one", from_=self.ids[3])
        self.cut, self.then = -1, other
        with self.assertRaises(OutcomeUnknown) as caught:
            session.compact("mine", from_=self.ids[2])
        self.assertEqual(caught.exception.outcome, "unknown")
        self.assertEqual([c["reason"] for c in session.commits()], ["compaction", "turn", "create"], "not sent again")

    def test_a_move_that_was_lost_is_made_again_by_its_key(self) -> None:
        session = self.session()
        session._limits = Limits(first=0.001, longest=0.001, attempts=1)
        self.cut = 0
        with self.assertRaises(OutcomeUnknown) as caught:
            session.branch(self.ids[2])
        key, base = caught.exception.key, caught.exception.base
        self.direct.session(session.id).commit([user("meanwhile")], base="*")
        moved = self.direct.session(session.id).branch(self.ids[2], key=key, base=base)
        self.assertEqual((moved["repeated"], moved["head"]), (True, self.ids[2]))

    def test_a_move_gives_up(self) -> None:
        session = self.session()
        self.server.stop()
        session._limits = Limits(first=0.001, longest=0.001, attempts=3)
        session._transport = HTTP(self.server.url)  # which knows that it cannot connect
        self.assertRaises(Unavailable, session.branch, self.ids[2])
        self.server.start()
        self.cut, session._transport = 0, HTTP(self.proxy.url)
        self.proxy.after = self.server.kill
        self.assertRaises(OutcomeUnknown, session.branch, self.ids[2])
        self.server.start()
        self.assertEqual(self.commits(session), 3, "the one that was lost")

    def test_a_write_needs_a_base(self) -> None:
        with self.assertRaisesRegex(ValueError, "resume"):
            self.store.session("x").switch("main")

    def test_erase(self) -> None:
        """An erasure is repeated after a lost answer, and moves the base of no handle."""
        session = self.session()
        dry = session.erase(self.ids[:2], dry_run=True)
        self.assertEqual((dry["dryRun"], dry["entries"]), (True, self.ids[:2]))
        self.cut = 0  # after it was done
        done = session.erase(self.ids[:2], reason="asked")
        self.assertEqual(done["entries"] + done.get("already", []), self.ids[:2])
        self.assertEqual([m["content"] for m in session.resume().context[:3]][:2], ["[erased]", "[erased]"])
        session.commit([user("later")])
        with self.assertRaises(NotFound):
            self.store.session("none").erase(["x"])

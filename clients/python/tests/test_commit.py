"""Commits against a real server: once or not at all, whatever happens to answers and to the server."""
from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import unittest
from typing import Any, Literal

from coppice_client import Conflict, Deleted, Exists, Fenced, KeyReused, Limits, NotFound, OutcomeUnknown, Raw, Store
from tests.served import Case, Proxy, said

QUICK = Limits(first=0.01, longest=0.2, total=60.0, attempts=1000)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


class CommitTest(Case):
    def through(self, rule: Any, *flags: str) -> tuple[Store, Store, Proxy]:
        """Return a store behind a proxy that cuts, and the same store without it."""
        server = self.serve(*flags)
        proxy = Proxy(server.port, rule)
        self.addCleanup(proxy.close)
        cut, direct = Store(proxy.url, limits=QUICK), Store(server.url, limits=QUICK)
        self.addCleanup(cut.close)
        self.addCleanup(direct.close)
        return cut, direct, proxy

    def test_a_turn_whose_answers_are_cut_is_stored_once(self) -> None:
        # before it is sent, after it is done, in the header of the answer, in its body
        cuts = [-1, 0, 5, 200, None]
        cut, direct, proxy = self.through(lambda n, _: cuts[n % len(cuts)])
        session = cut.create(title="cut")
        self.assertEqual(session.seq, 0)
        for n in range(4):
            session.commit([user(f"turn {n}")], state={"turn": n})
        self.assertEqual(len(proxy.requests), 5 * len(cuts))
        self.assertEqual(said(direct.session(session.id)), [f"turn {n}" for n in range(4)])
        self.assertEqual(session.seq, 4)
        self.assertEqual([s["id"] for s in direct.sessions()], [session.id])

    def test_the_server_is_killed_while_clients_commit(self) -> None:
        server = self.serve()
        done: dict[str, list[str]] = {}
        stop, more = threading.Event(), threading.Condition()

        def work(name: str) -> None:
            with Store(server.url, limits=QUICK) as store:
                session = store.create(name)
                turn = 0
                while not stop.is_set():
                    session.commit([user(f"{name} {turn}")])
                    turn += 1
                    with more:
                        done.setdefault(name, []).append(f"{name} {turn - 1}")
                        more.notify()
        threads = [threading.Thread(target=work, args=(f"s{n}",)) for n in range(3)]
        for thread in threads:
            thread.start()
        draw = random.Random(7)
        for _ in range(5):
            with more:
                wanted = sum(map(len, done.values())) + draw.randrange(1, 40)
                self.assertTrue(more.wait_for(lambda: sum(map(len, done.values())) >= wanted, 120))
            server.kill()
            server.start()
        stop.set()
        for thread in threads:
            thread.join()
        with Store(server.url) as store:
            for name, acknowledged in done.items():
                self.assertEqual(said(store.session(name)), acknowledged)
        self.assertEqual(len(done), 3)

    def test_two_clients_on_one_session(self) -> None:
        server = self.serve()
        with Store(server.url) as a, Store(server.url) as b:
            first = a.create("trip")
            second = b.session("trip")
            second.resume()
            won = first.commit([user("A")], state={"by": "A"})
            with self.assertRaises(Conflict) as caught:
                second.commit([user("B")], state={"by": "B"}, key="b-1")
            lost = caught.exception
            self.assertEqual((lost.status, lost.code, lost.outcome), (412, "conflict", "not-applied"))
            assert lost.winner
            self.assertEqual(lost.winner["commit"], won["commit"])
            self.assertEqual([e["message"]["content"] for e in lost.entries_since], ["A"])
            kept = lost.keep_both()
            self.assertIn("kept", kept)
            self.assertTrue(lost.keep_both()["repeated"])
            now = second.resume()
            self.assertEqual((now.state, now.context), ({"by": "A"}, [user("A")]))
            second.commit([user("B again")])
            second.switch(kept["kept"])
            self.assertEqual(second.resume().state, {"by": "B"})
            self.assertEqual(second.resume().context, [user("B")])
            self.assertEqual(sorted(said(second)), ["A", "B", "B again"])

    def test_keep_both_is_stored_once_through_cut_answers(self) -> None:
        cut, direct, proxy = self.through(lambda n, _: 0 if n % 2 == 0 else None)
        session = cut.create("x")
        direct.session("x").commit([user("winner")], base="*")
        with self.assertRaises(Conflict) as caught:
            session.commit([user("loser")])
        self.assertIn("kept", caught.exception.keep_both())
        self.assertEqual(said(direct.session("x")), ["winner", "loser"])

    def test_digits_survive(self) -> None:
        state = '{"big":9007199254740993,"bigger":123456789012345678901234567890,"price":1.10,"huge":1e400}'
        message = '{"role":"user","content":"x","cost":0.10,"id":9007199254740993,"e":1E+2}'
        with Store(self.serve().url) as store:
            session = store.create()
            session.commit([Raw(message)], state=Raw(state))
            r = session.resume()
            self.assertEqual(r.raw["state"], state)
            self.assertEqual(r.raw_context, [message])
            self.assertEqual(r.state["big"], 9007199254740993)
            self.assertEqual(r.state["bigger"], 123456789012345678901234567890)
            session.commit(r.raw_context, state=r.raw["state"])
            self.assertEqual(session.resume().raw["state"], state)
            self.assertEqual(session.resume().raw_context, [message, message])
            session.commit(state={"n": r.state["big"], "m": r.state["bigger"]})
            self.assertEqual(session.resume().raw["state"],
                             '{"n":9007199254740993,"m":123456789012345678901234567890}')
            entry = next(session.entries())
            self.assertIn(message, session.text("entries", entry["id"]))

    def test_an_unknown_outcome_is_resolved_by_another_process(self) -> None:
        down: list[bool] = [False]
        cut, direct, proxy = self.through(lambda n, _: 0 if down[0] else None)
        session = cut.create("x")
        down[0] = True
        store = Store(proxy.url, limits=Limits(first=0.001, longest=0.001, attempts=3))
        again = store.session("x")
        again.base, again.seq = session.base, 0
        with self.assertRaises(OutcomeUnknown) as caught:
            again.commit([user("once")], state=1)
        program = ("import sys, json; from coppice_client import Store; "
                   "print(json.dumps(Store(sys.argv[1]).session('x').commit("
                   "[{'role': 'user', 'content': 'once'}], state=1, key=sys.argv[2], base=sys.argv[3])))")
        out = subprocess.run(
            [sys.executable, "-c", program, f"http://127.0.0.1:{proxy._port}", caught.exception.key,
             caught.exception.base], check=True, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        ).stdout
        self.assertTrue(json.loads(out)["repeated"])
        self.assertEqual(said(direct.session("x")), ["once"])

    def test_errors(self) -> None:
        with Store(self.serve().url) as store:
            session = store.create("x", title="T", meta={"user": "u1"})
            self.assertEqual(session.info()["meta"], {"user": "u1"})
            self.assertEqual([s["id"] for s in store.sessions(meta={"user": "u1"})], ["x"])
            self.assertEqual(list(store.sessions(meta={"user": "u2"})), [])
            self.assertRaises(Exists, store.create, "x")
            self.assertRaises(NotFound, store.session("none").resume)
            self.assertRaises(NotFound, session.entry, "none")
            session.commit([user("a")], key="k")
            self.assertRaises(KeyReused, session.commit, [user("b")], key="k")
            other = store.session("x")
            other.resume()
            session.claim()
            self.assertRaises(Fenced, other.commit, [user("late")])
            other.resume(create=True)
            other.commit([user("b")])
            made = store.session("new").resume(create=True)
            self.assertEqual((made.seq, made.context, made.state), (0, [], None))
            other.delete()
            for use in (lambda: store.create("x"), lambda: store.session("x").resume(create=True)):
                with self.assertRaises(Deleted) as caught:
                    use()
                self.assertEqual((caught.exception.code, caught.exception.outcome), ("deleted", "not-applied"))

    def test_a_handle_that_threads_share_makes_one_write_at_a_time(self) -> None:
        with Store(self.serve().url) as store:
            session = store.create()
            threads = [threading.Thread(target=session.commit, args=([user(str(n))],)) for n in range(12)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(sorted(map(int, said(session))), list(range(12)))
            self.assertEqual(session.seq, 12)

    def test_what_a_list_yields_may_be_deleted(self) -> None:
        with Store(self.serve().url) as store:
            orders: tuple[Literal["activity", "created", "id"], ...] = ("activity", "created", "id")
            for order in orders:
                ids = [store.create(f"{order}{n}").id for n in range(25)]
                deleted = []
                for listed in store.sessions(limit=10, order=order):
                    session = store.session(listed["id"])
                    session.resume()
                    session.delete()
                    deleted.append(session.id)
                self.assertEqual(sorted(deleted), sorted(ids))
                self.assertEqual(list(store.sessions()), [])

    def test_known_ids(self) -> None:
        with Store(self.serve().url) as store:
            session = store.create()
            entry = {"type": "message", "id": "m1", "message": user("one")}
            session.commit([entry])
            session.commit([entry], on_known_id="ignore")
            session.commit([{**entry, "message": user("ONE")}], on_known_id="amend")
            self.assertEqual(session.resume().context, [user("ONE")])

    def test_pages_and_searches(self) -> None:
        with Store(self.serve().url) as store:
            session = store.create("s", title="pages")
            session.commit([user(f"message {n}") for n in range(120)])
            self.assertEqual(len(list(session.entries(limit=7))), 120)
            newest = next(session.entries(order="desc", limit=1))
            self.assertEqual(newest["message"], user("message 119"))
            self.assertEqual([c["seq"] for c in session.commits()], [1, 0])
            self.assertEqual([m["session"] for m in store.search(q='"message 42"')], ["s"])
            self.assertEqual(session.state_at("seq:0"), None)
            self.assertEqual(session.rows(count=3)["total"], 120)
            self.assertEqual(session.rows(from_=118)["from"], 118)
            self.assertEqual(session.versions(newest["id"])["at"], 0)
            self.assertEqual(store.health(), {"status": "ok"})
            self.assertIn(b"message 119", session.export("markdown"))
            self.assertEqual(store.import_file(session.export("pi"), name="x.jsonl")["total"]["files"], 1)
            self.assertEqual(session.verify(deep=True)["problems"], [])


if __name__ == "__main__":
    unittest.main()

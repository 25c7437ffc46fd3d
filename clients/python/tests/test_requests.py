"""Requests with a transport and a clock of the test: which are repeated, when, and with what content."""
from __future__ import annotations

import json
import threading
from typing import Any, Mapping

from coppice_client import Conflict, CoppiceError, Limits, NotFound, OutcomeUnknown, Raw, Store, Unavailable
from coppice_client.transport import HTTP, NotSent
from tests.served import Case

RECEIPT = {"entries": ["e"], "seq": 1, "commit": "c1", "head": "e", "branch": "main", "io": {}}
Reply = Any  # (status, header, document), or an error


class Script(HTTP):
    """A transport whose answers are a list; the last one is repeated."""

    def __init__(self, *replies: Reply) -> None:
        super().__init__("http://server.test")
        self.replies, self.sent = list(replies), list[tuple[str, str, dict[str, str], bytes | None]]()

    def send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None,
    ) -> tuple[int, Mapping[str, str], bytes]:
        self.sent.append((method, path, dict(headers), body))
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        status, header, doc = reply
        kind = "application/json" if status < 400 else "application/problem+json"
        if isinstance(doc, bytes):
            return status, header, doc
        return status, {"content-type": kind, **header}, json.dumps(doc).encode()


class Clock:
    """Time that passes only in pauses."""

    def __init__(self) -> None:
        self.now, self.pauses = 0.0, list[float]()

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


def problem(status: int, code: str, **more: Any) -> Reply:
    return status, {}, {"type": "about:blank", "title": "", "status": status, "detail": "why", "code": code, **more}


class RequestsTest(Case):
    def store(self, *replies: Reply, draw: float = 1.0, **limits: Any) -> Store:
        self.clock, self.script = Clock(), Script(*replies)
        given = Limits(clock=lambda: self.clock.now, sleep=self.clock.sleep, draw=lambda: draw, **limits)
        return Store(transport=self.script, limits=given, token="secret")

    def test_a_commit_is_repeated_as_it_was(self) -> None:
        lost = ConnectionResetError("cut")
        store = self.store(lost, problem(429, "busy"), (502, {}, b"<html>"), problem(503, "outcome-unknown"),
                           problem(429, "busy"), problem(408, "slow-body"), (200, {"etag": '"c1"'}, RECEIPT))
        session = store.session("s")
        session.base = "c0"
        self.assertEqual(session.commit([{"role": "user", "content": "hi"}]), RECEIPT)
        self.assertEqual(len(self.script.sent), 7)
        for sent in self.script.sent:
            self.assertEqual(sent, self.script.sent[0])
        method, path, headers, body = self.script.sent[0]
        self.assertEqual((method, path), ("POST", "/v1/sessions/s/commits"))
        self.assertEqual(headers["If-Match"], '"c0"')
        self.assertEqual(len(headers["Idempotency-Key"]), 32)
        self.assertEqual(headers["Authorization"], "Bearer secret")
        self.assertEqual(body, b'{"entries":[{"role":"user","content":"hi"}]}')
        self.assertEqual((session.base, session.seq), ("c1", 1))

    def test_each_commit_has_a_key_of_its_own(self) -> None:
        session = self.store((200, {"etag": '"c1"'}, RECEIPT)).session("s")
        session.base = "c0"
        session.commit()
        session.commit()
        keys = [headers["Idempotency-Key"] for _, _, headers, _ in self.script.sent]
        self.assertNotEqual(*keys)

    def test_pauses_double_to_a_limit(self) -> None:
        store = self.store(ConnectionResetError(), first=0.1, longest=1.0, attempts=7, total=1000.0)
        self.assertRaises(Unavailable, store.health)
        self.assertEqual(self.clock.pauses, [0.1, 0.2, 0.4, 0.8, 1.0, 1.0])
        store = self.store(ConnectionResetError(), draw=0.0, first=0.1, longest=1.0, attempts=4)
        self.assertRaises(Unavailable, store.health)
        self.assertEqual(self.clock.pauses, [0.05, 0.1, 0.2], "half of a pause is random")

    def test_the_server_may_ask_for_a_longer_pause(self) -> None:
        status, _, doc = problem(503, "busy")
        store = self.store((status, {"retry-after": "7"}, doc), (200, {}, {"status": "ok"}))
        self.assertEqual(store.health(), {"status": "ok"})
        self.assertEqual(self.clock.pauses, [7.0])

    def test_a_commit_gives_up_in_bounded_time_and_says_what_is_known(self) -> None:
        session = self.store(ConnectionResetError("cut"), total=120.0, attempts=10**6).session("s")
        session.base = "c0"
        with self.assertRaises(OutcomeUnknown) as caught:
            session.commit([{"role": "user", "content": "hi"}], key="mine")
        self.assertLessEqual(self.clock.now, 120.0)
        self.assertGreater(self.clock.now, 110.0)
        unknown = caught.exception
        self.assertEqual((unknown.outcome, unknown.key, unknown.base), ("unknown", "mine", "c0"))
        self.script.replies = [(200, {"etag": '"c1"'}, {**RECEIPT, "repeated": True})]
        self.assertTrue(unknown.retry()["repeated"])
        self.assertEqual(self.script.sent[-1], self.script.sent[0], "the same request")
        self.assertEqual(session.base, "c1")

    def test_a_commit_that_was_never_sent_is_not_applied(self) -> None:
        session = self.store(NotSent("refused"), attempts=3).session("s")
        session.base = "c0"
        with self.assertRaises(Unavailable) as caught:
            session.commit()
        self.assertEqual(caught.exception.outcome, "not-applied")
        self.assertEqual(len(self.script.sent), 3)

    def test_errors_that_stay_are_not_repeated(self) -> None:
        for status, code in ((400, "usage"), (401, "unauthorized"), (403, "read-only"), (404, "not-found"),
                             (409, "fenced"), (412, "conflict"), (413, "too-large"), (422, "key-reused"),
                             (500, "corrupt"), (507, "no-space")):
            session = self.store(problem(status, code, hint="do this")).session("s")
            session.base = "c0"
            with self.assertRaises(CoppiceError) as caught:
                session.commit()
            self.assertEqual((caught.exception.code, caught.exception.status), (code, status))
            self.assertEqual(caught.exception.hint, "do this")
            self.assertEqual(len(self.script.sent), 1, code)

    def test_a_refusal_after_a_lost_answer_is_certain_only_where_the_key_was_looked_for(self) -> None:
        for reply, outcome in ((problem(412, "conflict"), "not-applied"), (problem(409, "fenced"), "not-applied"),
                               (problem(404, "not-found"), "unknown"), (problem(401, "unauthorized"), "unknown")):
            session = self.store(ConnectionResetError(), reply).session("s")
            session.base = "c0"
            with self.assertRaises(CoppiceError) as caught:
                session.commit()
            self.assertEqual(caught.exception.outcome, outcome, reply)

    def test_keep_both_has_a_key_that_is_made_from_that_of_the_commit(self) -> None:
        session = self.store(problem(412, "conflict", winner={"seq": 9}), ConnectionResetError(),
                             (200, {"etag": '"c3"'}, {**RECEIPT, "kept": "conflict-1"})).session("s")
        session.base = "c0"
        with self.assertRaises(Conflict) as caught:
            session.commit(["m"], key="k")
        self.assertEqual(caught.exception.winner, {"seq": 9})
        self.assertEqual(caught.exception.keep_both()["kept"], "conflict-1")
        self.assertEqual(caught.exception.kept, {**RECEIPT, "kept": "conflict-1"})
        for _, _, headers, body in self.script.sent[1:]:
            self.assertEqual((headers["Idempotency-Key"], headers["If-Match"]), ("k", '"c0"'))
            self.assertEqual(body, b'{"entries":["m"],"onConflict":"keep-both"}')
        with self.assertRaisesRegex(ValueError, "resume"):
            session.commit()

    def test_partial_output_is_sent_once(self) -> None:
        session = self.store(ConnectionResetError()).session("s")
        self.assertFalse(session.partial({"role": "assistant"}))
        self.assertEqual(len(self.script.sent), 1)
        self.assertRaises(NotFound, self.store(problem(404, "not-found")).session("s").partial, None)
        self.assertEqual(self.script.sent[0][3], b'{"partial":null}')

    def test_an_import_that_is_made_again_is_sent_once(self) -> None:
        store = self.store(ConnectionResetError())
        self.assertRaises(OutcomeUnknown, store.import_file, b"{}", again=True)
        self.assertEqual(len(self.script.sent), 1)

    def test_close_ends_a_pause(self) -> None:
        script = Script(ConnectionResetError())
        store = Store(transport=script, limits=Limits(first=3600.0, longest=3600.0, total=1e9))
        failed: list[BaseException] = []

        def ask() -> None:
            try:
                store.health()
            except Unavailable as e:
                failed.append(e)
        thread = threading.Thread(target=ask)
        thread.start()
        store.close()
        thread.join(60)
        self.assertFalse(thread.is_alive())
        self.assertEqual(len(failed), 1)

    def test_raw_is_sent_as_it_is(self) -> None:
        session = self.store((200, {"etag": '"c1"'}, RECEIPT)).session("s")
        session.base = "c0"
        session.commit([Raw('{"x": 1.10}')], state=Raw('{"y":1e400}'), docs={"d": Raw("1.0"), "gone": None})
        self.assertEqual(self.script.sent[0][3],
                         b'{"docs":{"d":1.0,"gone":null},"entries":[{"x": 1.10}],"state":{"y":1e400}}')
        self.assertRaises(ValueError, Raw, '1},"x":{')
        self.assertRaises(ValueError, session.commit, state={"y": float("inf")})
        session.commit(state=None)
        self.assertEqual(self.script.sent[-1][3], b'{"entries":[],"state":null}')
        session.commit([{"content": "\ud800 é"}])
        self.assertEqual(self.script.sent[-1][3], b'{"entries":[{"content":"\\ud800 \xc3\xa9"}]}')

    def test_an_error_at_the_end_of_a_list_is_raised(self) -> None:
        page = {"sessions": [{"id": "a"}], "error": {"code": "corrupt", "detail": "damaged", "hint": "verify"}}
        items = self.store((200, {}, page)).sessions()
        self.assertEqual(next(items)["id"], "a")
        with self.assertRaisesRegex(CoppiceError, "damaged"):
            next(items)

"""Data from another server, such as a proxy, is no receipt and no answer; and no request is sent elsewhere."""
from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any, Callable

from coppice_client import (
    Conflict, CoppiceError, Deleted, Exists, InvalidArgument, Limits, NotFound, OutcomeUnknown, Raw, Session, Store,
)
from coppice_client.transport import HTTP
from tests.served import Case, Reply
from tests.test_requests import RECEIPT, Script, problem

JSON = {"Content-Type": "application/json"}
QUICK = Limits(first=0.001, longest=0.001, attempts=3)

WRITES: dict[str, Callable[[Session], Any]] = {
    "create": lambda s: s._create({}),
    "commit": lambda s: s.commit([{"role": "user", "content": "x"}]),
    "switch": lambda s: s.switch("main"),
    "branch": lambda s: s.branch("e"),
    "edit": lambda s: s.edit("e", {"role": "user", "content": "x"}),
    "rollback": lambda s: s.rollback("seq:0"),
    "label": lambda s: s.label("e", "here"),
    "compact": lambda s: s.compact("summary"),
    "set_info": lambda s: s.set_info(title="T"),
    "amend": lambda s: s.amend("e", message={"role": "user", "content": "x"}),
    "hide": lambda s: s.hide("e"),
    "rename_branch": lambda s: s.rename_branch("main", "trunk"),
    "claim": lambda s: s.claim(),
    "fork": lambda s: s.fork(),
    "snapshot": lambda s: s.snapshot("t"),
    "delete": lambda s: s.delete(),
    "import": lambda s: Store(transport=s._transport, limits=s._limits).import_file(b"{}"),
}
READS: dict[str, Callable[[Session], Any]] = {
    "resume": lambda s: s.resume(),
    "turn": lambda s: s.turn(lambda turn: None, create=True),
    "info": lambda s: s.info(),
    "entries": lambda s: list(s.entries()),
    "docs": lambda s: s.docs(),
    "commits": lambda s: list(s.commits()),
    "blame": lambda s: list(s.blame()),
    "commit_at": lambda s: s.commit_at(0),
    "context_at": lambda s: s.context_at(),
    "diff": lambda s: s.diff("seq:0"),
    "verify": lambda s: s.verify(),
    "versions": lambda s: s.versions("e"),
    "map": lambda s: s.map(),
    "blob": lambda s: s.blob("0" * 64),
    "original": lambda s: s.original(),
    "export": lambda s: s.export(),
    "export to a page": lambda s: s.export("html"),
    "sessions": lambda s: list(Store(transport=s._transport, limits=s._limits).sessions()),
    "health": lambda s: Store(transport=s._transport, limits=s._limits).health(),
}
PAGE = (200, {"content-type": "text/html"}, b"<html>Welcome</html>")
EVENT = {"seq": 1, "commit": "c1", "head": None, "branch": "main", "epoch": 0, "snapshot": None, "time": "",
         "writer": "w", "state": []}
NOT_THE_SERVICE: dict[str, Any] = {
    "other JSON": (200, {"etag": '"c1"'}, {"up": True}),
    "an empty object": (200, {"etag": '"c1"'}, {}),
    "a list": (200, {"etag": '"c1"'}, []),
    "a page": PAGE,
    "nothing": (200, {"content-type": "application/json"}, b""),
    "cut JSON": (200, {"content-type": "application/json"}, b'{"entries":["e"],"seq":1,"comm'),
    "no content": (204, {}, b""),
    "a receipt, but accepted only": (202, {"etag": '"c1"'}, RECEIPT),
    "a receipt that is a page": (200, {"content-type": "text/html"}, json.dumps(RECEIPT).encode()),
    "a redirect": (302, {"location": "https://login.test/"}, b""),
    "a choice": (300, {}, RECEIPT),
    "not modified": (304, {}, b""),
}


class AnswersTest(Case):
    def session(self, *replies: Any) -> Session:
        self.script = Script(*replies)
        session = Store(transport=self.script, limits=QUICK).session("s")
        session.base, session.seq = "c0", 0
        return session

    def test_nothing_but_a_receipt_is_one(self) -> None:
        for what, reply in NOT_THE_SERVICE.items():
            for op, write in WRITES.items():
                with self.subTest(op, reply=what):
                    session = self.session(reply)
                    with self.assertRaises(OutcomeUnknown) as caught:
                        write(session)
                    self.assertEqual(caught.exception.outcome, "unknown")
                    self.assertEqual((session.base, session.seq), ("c0", 0))
                    self.assertEqual(len([method for method, *_ in self.script.sent if method != "GET"]), 1)

    def test_a_receipt_names_the_newest_commit(self) -> None:
        receipts: dict[str, Any] = {
            "create": (201, {}, {"session": "s"}),
            "switch": (200, {}, {"head": None, "branch": "main", "seq": 1}),
            "label": (200, {"etag": '"c1"'}, {"head": None, "branch": "main", "seq": "1"}),
            "commit": (200, {"etag": '"c1"'}, {**RECEIPT, "commit": None}),
        }
        for op, reply in receipts.items():
            with self.subTest(op):
                session = self.session(reply)
                self.assertRaises(OutcomeUnknown, WRITES[op], session)
                self.assertEqual(session.base, "c0")
        session = self.session((200, {"etag": 'W/"c1"'}, RECEIPT), (200, {}, {**RECEIPT, "commit": "c2"}))
        session.commit()
        self.assertEqual(session.base, "c1", "a proxy that compresses makes an ETag weak")
        session.commit()
        self.assertEqual(session.base, "c2", "a receipt has the commit too")

    def test_the_values_of_a_receipt_are_checked(self) -> None:
        commit: list[dict[str, Any]] = [{"commit": ""}, {"commit": None}, {"commit": 1}, {"seq": -1}, {"seq": True},
                                        {"seq": 1.0}, {"seq": "1"}, {"entries": None}, {"entries": {}}]
        move = {"head": None, "branch": "main", "seq": 1}
        other = {"session": "other"}
        wrong: list[tuple[str, dict[str, Any]]] = [
            *(("commit", {**RECEIPT, **change}) for change in commit), ("label", {**move, "seq": -1}),
            ("switch", {**move, "seq": False}), ("create", other), ("create", {"session": None}), ("fork", other),
            ("fork", {"session": None}), ("delete", {"deleted": True, **other}),
            *(("delete", {"deleted": deleted, "session": "s"}) for deleted in (False, None, 1, "true")),
        ]
        for op, doc in wrong:
            with self.subTest(op, doc=doc):
                session = self.session((200, {"etag": '"c1"'}, doc))
                with self.assertRaises(OutcomeUnknown):
                    WRITES[op](session)
                self.assertEqual((session.base, session.seq), ("c0", 0))

    def test_the_values_of_a_session_that_is_read_are_checked(self) -> None:
        resume = {"session": "s", "seq": 1, "commit": "c1", "head": None, "branch": "main", "state": None,
                  "context": [], "window": {}, "openCalls": [], "io": {}}
        info = {"id": "s", "title": "", "cwd": "", "created": "", "updated": "", "entries": 0, "bytes": 0, "seq": 0,
                "head": None, "branch": "main", "preview": ""}
        self.assertEqual(self.session((200, {}, resume)).resume().commit, "c1")
        self.assertEqual(self.session((200, {}, info)).info()["id"], "s")
        wrong: list[tuple[str, dict[str, Any]]] = [
            *(("resume", {**resume, **change}) for change in (
                {"session": "other"}, {"seq": -1}, {"seq": True}, {"commit": ""}, {"commit": None}, {"context": None},
                {"openCalls": None})),
            ("info", {**info, "id": "other"}), ("info", {**info, "seq": -1}),
        ]
        kind = {"content-type": "application/json"}
        for op, reply in [*((op, (200, {}, doc)) for op, doc in wrong),
                          ("resume", (200, kind, json.dumps(resume).encode() + b"<html>"))]:
            with self.subTest(op, reply=reply):
                session = self.session(reply)
                with self.assertRaises(CoppiceError) as caught:
                    READS[op](session)
                self.assertEqual((caught.exception.code, caught.exception.outcome), ("answer", "not-applied"))
                self.assertEqual((session.base, session.seq), ("c0", 0))

    def test_a_fork_is_only_its_own_where_its_id_is(self) -> None:
        taken = problem(409, "exists")
        for lost in (ConnectionResetError(), (502, {}, b"<html>")):
            self.assertRaises(OutcomeUnknown, self.session(lost, taken).fork, id="theirs")
            made = self.session(lost, taken).fork()
            first, second = (json.loads(body or b"") for *_, body in self.script.sent)
            self.assertEqual((first, made), (second, {"session": first["id"]}), "an id of its own")
        with self.assertRaises(Exists) as caught:
            self.session(taken).fork(id="theirs")
        self.assertEqual(caught.exception.outcome, "not-applied")

    def test_a_refusal_after_a_lost_answer_leaves_the_outcome_unknown(self) -> None:
        refusals = ((400, "usage"), (401, "unauthorized"), (403, "read-only"), (413, "too-large"), (507, "no-space"))
        log = 200, {}, {"commits": [], "next": "0"}
        for status, code in refusals:
            refusal = problem(status, code)
            for op, replies in (("fork", (refusal,)), ("delete", (refusal,)), ("compact", (log, refusal, log))):
                with self.subTest(op, code=code):
                    with self.assertRaises(OutcomeUnknown) as caught:
                        WRITES[op](self.session(ConnectionResetError(), *replies))
                    self.assertEqual((caught.exception.code, caught.exception.status), (code, status))
                    with self.assertRaises(CoppiceError) as caught_first:
                        WRITES[op](self.session(refusal))
                    self.assertEqual(caught_first.exception.outcome, "not-applied")
        self.assertRaises(OutcomeUnknown, self.session(ConnectionResetError(), problem(412, "conflict")).fork)
        self.assertRaises(Conflict, self.session(ConnectionResetError(), problem(412, "conflict")).delete)

    def test_what_another_client_may_have_made_is_not_its_own(self) -> None:
        event = {**EVENT, "reason": "compaction", "entries": [{"summary": "S", "firstKeptEntryId": "e2"}]}
        log = 200, {}, {"commits": [event], "next": "1"}
        self.assertEqual(self.session(ConnectionResetError(), log).compact("S", from_="e2")["seq"], 1)
        for more in ({"from_": "e1"}, {"keep": 1}, {}):
            session = self.session(ConnectionResetError(), log)
            self.assertRaises(OutcomeUnknown, session.compact, "S", **more)
            self.assertEqual((session.base, len(self.script.sent)), ("c0", 2), more)
        for gone in (problem(404, "not-found"), problem(410, "deleted")):
            session = self.session(ConnectionResetError(), gone)
            self.assertRaises(OutcomeUnknown, session.delete, trash=True)

    def test_a_commit_without_a_receipt_is_sent_again_as_it_was(self) -> None:
        session = self.session(PAGE, (200, {"etag": '"c1"'}, RECEIPT))
        with self.assertRaises(OutcomeUnknown) as caught:
            session.commit([{"role": "user", "content": "x"}])
        self.assertEqual(caught.exception.code, "answer")
        self.assertEqual(caught.exception.retry(), RECEIPT)
        self.assertEqual(self.script.sent[0], self.script.sent[1])
        self.assertEqual(session.base, "c1")

    def test_a_refusal_after_a_lost_answer_of_a_keyed_write_is_its_own(self) -> None:
        for refusal, outcome in ((problem(413, "too-large"), "unknown"), (problem(412, "conflict"), "not-applied")):
            session = self.session(ConnectionResetError(), refusal)
            with self.assertRaises(CoppiceError) as caught:
                session.label("e", "here")
            self.assertEqual((caught.exception.outcome, caught.exception.key != ""), (outcome, True))
            self.assertEqual(self.script.sent[0], self.script.sent[1])

    def test_a_write_without_a_receipt_is_looked_for_in_the_log(self) -> None:
        event = {**EVENT, "reason": "compaction", "entries": [{"summary": "S", "firstKeptEntryId": "e"}]}

        def compact(session: Session) -> Any:
            return session.compact("S", from_="e")
        session = self.session(PAGE, (200, {}, {"commits": [event], "next": "1"}))
        self.assertEqual(compact(session)["seq"], 1)
        self.assertEqual(session.base, "c1")
        for wrong in (None, {**event, "commit": ""}, {**event, "seq": True}, {"seq": 1}):
            session = self.session(PAGE, (200, {}, {"commits": [wrong], "next": "1"}))
            self.assertRaises(OutcomeUnknown, compact, session)
            self.assertEqual((session.base, session.seq), ("c0", 0))
        session = self.session(PAGE)
        with self.assertRaises(OutcomeUnknown) as caught:
            session.label("e", "here")
        with self.assertRaisesRegex(InvalidArgument, "resume"):
            caught.exception.retry()

    def test_partial_output_that_a_proxy_took_did_not_come(self) -> None:
        self.assertFalse(self.session(PAGE).partial({"role": "assistant"}))
        self.assertTrue(self.session((204, {}, b"")).partial({"role": "assistant"}))

    def test_reads_of_anything_else_are_errors(self) -> None:
        for what, reply in NOT_THE_SERVICE.items():
            for op, read in READS.items():
                with self.subTest(op, reply=what):
                    session = self.session(reply)
                    with self.assertRaises(CoppiceError) as caught:
                        read(session)
                    self.assertEqual((type(caught.exception), caught.exception.code), (CoppiceError, "answer"))
                    self.assertEqual(len(self.script.sent), 1)
            for text in ("info", "state"):
                if reply[0] != 200 or reply is PAGE:
                    with self.subTest(text, reply=what), self.assertRaisesRegex(CoppiceError, "not an answer"):
                        self.session(reply).text(text)

    def test_a_list_that_leads_to_itself_ends(self) -> None:
        items = self.session((200, {}, {"entries": [1], "next": "p"})).entries()
        self.assertEqual([next(items), next(items)], [1, 1])
        with self.assertRaisesRegex(CoppiceError, "followed by itself"):
            next(items)

    def test_a_proxy_does_not_know_what_is_stored(self) -> None:
        page = {"content-type": "text/html"}
        other = json.dumps({"code": "not-found", "detail": "no such route"}).encode()
        for status in (400, 401, 403, 404, 409, 410, 412, 413, 431):
            for reply in ((status, page, b"<html>"), (status, {"content-type": "application/json"}, other)):
                with self.subTest(status):
                    for op, write in WRITES.items():
                        with self.assertRaises(OutcomeUnknown, msg=op):
                            write(self.session(reply))
                    with self.assertRaises(OutcomeUnknown) as unknown:
                        self.session(reply, (200, {"etag": '"c1"'}, RECEIPT)).commit()
                    self.assertEqual((unknown.exception.code, unknown.exception.status), ("answer", status))
                    self.assertEqual(unknown.exception.retry(), RECEIPT)
                    self.assertEqual(self.script.sent[0], self.script.sent[1])
                    with self.assertRaises(CoppiceError) as caught:
                        self.session(reply).resume()
                    error = caught.exception
                    self.assertEqual((type(error), error.code, error.outcome), (CoppiceError, "answer", "not-applied"))
                    self.assertFalse(self.session(reply).partial({"role": "assistant"}))
        session = self.session((404, page, b"<html>"))
        self.assertRaises(CoppiceError, session.resume, create=True)
        self.assertEqual([method for method, *_ in self.script.sent], ["GET"], "nothing is created")
        session = self.session(ConnectionResetError(), (404, page, b"<html>"))
        with self.assertRaises(CoppiceError) as caught:
            session.delete()
        self.assertEqual(caught.exception.outcome, "unknown")
        for gone in (problem(404, "not-found"), problem(410, "deleted")):
            self.assertTrue(self.session(ConnectionResetError(), gone).delete()["deleted"])

    def test_a_deleted_session_is_not_created_again(self) -> None:
        session = self.session(problem(410, "deleted"))
        self.assertRaises(Deleted, session.turn, lambda turn: None, create=True)
        self.assertEqual([method for method, *_ in self.script.sent], ["GET"])
        session = self.session(problem(404, "not-found"), problem(410, "deleted"))
        self.assertRaises(Deleted, session.resume, create=True)
        self.assertEqual([method for method, *_ in self.script.sent], ["GET", "PUT"])
        with self.assertRaises(CoppiceError) as caught:
            self.session(problem(410, "gone")).rows(view="v")
        self.assertNotIsInstance(caught.exception, (Deleted, NotFound), "it is the view that is gone")
        with self.assertRaises(CoppiceError) as caught:
            self.session(problem(422, "no-entry")).branch("none")
        self.assertEqual((type(caught.exception), caught.exception.outcome), (CoppiceError, "not-applied"))


class RedirectsTest(Case):
    def test_a_write_follows_none(self) -> None:
        for status in (301, 302, 303, 307, 308):
            canned = self.answer(lambda method, path: (status, {"Location": "/v1/elsewhere"}, b""))
            with Store(canned.url, limits=QUICK) as store, self.subTest(status):
                self.assertRaises(OutcomeUnknown, store.create, "x")
                with self.assertRaises(OutcomeUnknown) as caught:
                    store.session("x").commit([{"role": "user", "content": "x"}], base="*")
                self.assertIn("/v1/elsewhere", str(caught.exception))
                self.assertEqual([(method, path) for method, path, *_ in canned.requests],
                                 [("PUT", "/v1/sessions/x"), ("POST", "/v1/sessions/x/commits")])

    def test_a_read_follows_those_of_its_origin(self) -> None:
        def reply(method: str, path: str) -> Reply:
            if path.startswith("/old/"):
                return 301, {"Location": path.removeprefix("/old")}, b""
            if path.endswith("/events"):
                return 200, {"Content-Type": "text/event-stream"}, b'event: commit\nid: 1\ndata: {"seq":1}\n\n'
            return 200, JSON, b'{"status":"ok"}'

        canned = self.answer(reply)
        with Store(canned.url + "/old", token="secret", limits=QUICK) as store:
            self.assertEqual(store.health(), {"status": "ok"})
            self.assertEqual(next(store.session("x").follow(after=0)).data, {"seq": 1})
        self.assertEqual([path for _, path, *_ in canned.requests],
                         ["/old/v1/health", "/v1/health", "/old/v1/sessions/x/events", "/v1/sessions/x/events"])

    def test_no_other_origin_is_asked(self) -> None:
        other = self.answer(lambda method, path: (200, JSON, b'{"status":"ok"}'))
        for to in (other.url + "/v1/health", other.url.replace("http:", "https:"), "//other.test/", "/a b",
                   "http://h:x/"):
            canned = self.answer(lambda method, path: (307, {"Location": to}, b""))
            with Store(canned.url, token="secret", limits=QUICK) as store, self.subTest(to):
                for read in (store.health, store.session("x").resume, lambda: next(store.session("x").follow(after=0))):
                    with self.assertRaises(CoppiceError) as caught:
                        read()
                    self.assertEqual(caught.exception.code, "answer")
                self.assertEqual(len(canned.requests), 3)
        self.assertEqual(other.requests, [])

    def test_a_circle_ends(self) -> None:
        canned = self.answer(lambda method, path: (302, {"Location": path}, b""))
        with Store(canned.url, limits=QUICK) as store:
            with self.assertRaises(CoppiceError) as caught:
                store.health()
        self.assertEqual((caught.exception.code, len(canned.requests)), ("answer", 6))

    def test_a_stream_is_one_of_events(self) -> None:
        for reply in ((200, JSON, b"{}"), (200, {"Content-Type": "text/html"}, b"<html>"), (204, {}, b"")):
            canned = self.answer(lambda method, path: reply)
            with Store(canned.url, limits=QUICK) as store:
                with self.assertRaises(CoppiceError) as caught:
                    next(store.session("x").follow(after=0))
            self.assertEqual((caught.exception.code, len(canned.requests)), ("answer", 1))
        for data in ("{", "{}", "[]", '{"seq":"1"}'):
            stream = f"event: commit\nid: 1\ndata: {data}\n\n".encode()
            canned = self.answer(lambda method, path: (200, {"Content-Type": "text/event-stream"}, stream))
            with Store(canned.url, limits=QUICK) as store:
                with self.assertRaisesRegex(CoppiceError, "not an answer"):
                    next(store.session("x").follow(after=0))


class Slow(HTTP):
    """A transport whose socket records the sent pieces: the time-out of a socket is that of one whole sendall."""

    pieces: list[int] = []

    def _connect(self) -> HTTPConnection:
        conn = super()._connect()
        real, pieces = conn.sock, self.pieces

        class Socket:
            def sendall(self, data: bytes) -> None:
                pieces.append(len(data))
                real.sendall(data)

            def __getattr__(self, name: str) -> Any:
                return getattr(real, name)

        conn.sock = Socket()  # type: ignore[assignment]
        return conn


class LinkTest(Case):
    def test_the_timeout_is_that_of_a_piece(self) -> None:
        canned = self.answer(lambda method, path: (200, {**JSON, "ETag": '"c1"'}, json.dumps(RECEIPT).encode()))
        state = "x" * (3 << 20)
        transport = Slow(canned.url)
        with Store(transport=transport, limits=QUICK) as store:
            store.session("x").commit(state=state, base="*")
        self.assertLessEqual(max(transport.pieces), 64 << 10)
        (_, _, headers, body), = canned.requests
        self.assertEqual(json.loads(body)["state"], state)
        self.assertEqual(headers["Content-Length"], str(len(body)))


class ArgumentsTest(Case):
    def refused(self, use: Callable[[Session], Any]) -> None:
        """Assert that a use of a session is refused before anything is sent."""
        script = Script((200, {"etag": '"c1"'}, RECEIPT))
        session = Store(transport=script, limits=QUICK).session("s")
        session.base = "c0"
        with self.assertRaises(InvalidArgument) as caught:
            use(session)
        self.assertEqual((caught.exception.code, caught.exception.outcome), ("usage", "not-applied"))
        self.assertIsInstance(caught.exception, ValueError)
        self.assertEqual(script.sent, [])
        self.assertEqual(session.base, "c0")

    def test_keys_and_tokens_that_no_header_can_carry(self) -> None:
        for value in ("ключ", "a\r\nX: y", "a\n", "a\0", "\x7f", " a", "a ", "\ta", "\ud800", "\x85"):
            with self.subTest(ascii(value)):
                self.refused(lambda session: session.commit(key=value))
                if value.strip(" ") == value:
                    self.refused(lambda session: session.commit(base=value))
                self.assertRaises(InvalidArgument, Store, "http://server.test", token=value)
        script = Script((200, {"etag": '"c1"'}, RECEIPT))
        Store(transport=script, token="a b").session("s").commit(key="turn 7/é", base="c0")
        self.assertEqual(script.sent[0][2]["Idempotency-Key"], "turn 7/é")

    def test_ids_do_not_change_the_path(self) -> None:
        store = Store(transport=Script((200, {}, {})))
        for id in ("", ".", "..", "%2e", "%2E.", "\ud800"):
            with self.subTest(ascii(id)):
                self.assertRaises(InvalidArgument, store.session, id)
                if id:
                    self.assertRaises(InvalidArgument, store.create, id)
                    self.assertRaises(InvalidArgument, Store, "http://server.test", tenant=id)
                self.refused(lambda session: session.entry(id))
                self.refused(lambda session: session.blob(id))
                self.refused(lambda session: session.text("entries", id))
        script = Script((200, {}, {"status": "ok"}))
        Store(transport=script, tenant="../x").health()
        self.assertEqual(script.sent[0][1], "/t/..%2Fx/v1/health")
        self.refused(lambda session: session.state_at("\ud800"))
        self.refused(lambda session: session.entry(7))  # type: ignore[arg-type]

    def test_values_that_json_does_not_have(self) -> None:
        inner: list[Any] = []
        inner.append(inner)
        for value in (float("nan"), float("inf"), -float("inf"), {1: 2}, {None: 1}, {True: 1}, {1}, b"x", object(), 1j,
                      10**5000, {10**5000: 1}, inner):
            for deep in (value, {"a": [{"b": (value,)}]}):
                with self.subTest(type(value).__name__):
                    self.refused(lambda session: session.commit(state=deep))
                    self.refused(lambda session: session.commit([deep]))
                    self.refused(lambda session: session.partial(deep))
                    self.refused(lambda session: session.edit("e", {"role": "user", "content": deep}))
                    self.refused(lambda session: session.commit(docs={"d": deep}))
        for text in ("NaN", "Infinity", "[1,NaN]", "", "1 2", '1},"x":{', "[" * 100_000):
            self.assertRaises(InvalidArgument, Raw, text)

    def test_a_base_is_needed(self) -> None:
        script = Script(problem(404, "not-found"))
        self.assertRaises(InvalidArgument, Store(transport=script).session("s").commit)
        self.assertEqual(script.sent, [])

    def test_addresses(self) -> None:
        for url in ("server", "ftp://server", "http://", "http://a:b@server", "http://server?x=1", "http://server/a b",
                    "http://server:x", "http://server:99999", "http://server/#x", "http://server/é",
                    "http://a:secret@server", "http://a:secret/@server", "ftp://a:secret@server"):
            with self.assertRaises(InvalidArgument) as caught:
                Store(url)
            self.assertNotIn("secret", str(caught.exception))

"""Values of any client can be read and written back: text that is not UTF-8, and numbers that Python lacks."""
from __future__ import annotations

import json
from typing import Any

from coppice_client import Conflict, Raw, Session, Store, Turn
from tests.served import Case
from tests.test_requests import Script

DIGITS = "9" * 5000
STATE = '{"digits":%s,"huge":-1e400,"list":[{"e":1E+999}],"keep":1}' % DIGITS
BAD = b"caf\xe9"  # Latin-1
READ = "caf\ufffd"


class NumbersTest(Case):
    def test_numbers_that_python_lacks_are_read_and_written_back(self) -> None:
        message = '{"role":"user","content":"x","id":%s,"cost":1e999}' % DIGITS
        with Store(self.serve().url) as store:
            session = store.create("x")
            session.commit([Raw(message)], state=Raw(STATE))
            r = session.resume()
            self.assertEqual(r.state, {"digits": DIGITS, "huge": "-1e400", "list": [{"e": "1E+999"}], "keep": 1})
            self.assertIsInstance(r.state["digits"], Raw)
            self.assertEqual(r.context[0]["id"], DIGITS)
            self.assertEqual(session.state_at()["huge"], "-1e400")
            self.assertEqual(next(session.entries())["message"]["cost"], "1e999")
            follow = session.follow(after=0)
            self.assertEqual(next(follow).data["entries"][0]["message"]["id"], DIGITS)
            follow.close()

            def run(turn: Turn) -> None:
                turn.state["keep"] += 1
                turn.append(turn.messages[0], {"role": "user", "content": [Raw("1.10")]})
            session.turn(run)
            r = session.resume()
            self.assertEqual(r.raw["state"], STATE.replace('"keep":1', '"keep":2'))
            self.assertEqual(r.raw_context, [message, message, '{"role":"user","content":[1.10]}'])

            other = store.session("x")
            with self.assertRaises(Conflict) as caught:
                other.commit(base=next(session.commits(at="seq:0"))["commit"], state=1)
            self.assertEqual(caught.exception.entries_since[0]["message"]["id"], DIGITS)


class TextTest(Case):
    def answered(self, body: bytes, kind: str = "application/json", status: int = 200) -> Session:
        return Store(transport=Script((status, {"content-type": kind}, body))).session("s")

    def test_bytes_that_are_not_utf_8_are_replaced(self) -> None:
        message = b'{"role":"user","content":"%s"}' % BAD
        resume = (b'{"session":"s","seq":1,"commit":"c1","head":null,"branch":"main","openCalls":[],"window":{},'
                  b'"io":{},"context":[%s],"state":{"name":"%s"}}' % (message, BAD))
        r = self.answered(resume).resume()
        self.assertEqual((r.context[0]["content"], r.state), (READ, {"name": READ}))
        self.assertEqual(json.loads(r.raw_context[0])["content"], READ)
        page = b'{"entries":[{"type":"message","message":%s}]}' % message
        self.assertEqual(next(self.answered(page).entries())["message"]["content"], READ)
        self.assertEqual(self.answered(b'{"a":"%s"}' % BAD).state_at(), {"a": READ})
        self.assertEqual(self.answered(b'{"a":"%s"}' % BAD).text("state"), '{"a":"%s"}' % READ)
        self.assertEqual(self.answered(BAD, "text/markdown").export("markdown"), BAD, "a file is its bytes")
        problem = b'{"code":"conflict","detail":"%s","entries":[%s]}' % (BAD, message)
        with self.assertRaisesRegex(Conflict, READ) as caught:
            self.answered(problem, "application/problem+json", 412).commit(base="c0")
        self.assertEqual(caught.exception.entries_since[0]["content"], READ)

    def test_bytes_that_are_not_utf_8_are_followed(self) -> None:
        stream = b'event: commit\nid: 1\ndata: {"seq":1,"entries":[{"content":"%s"}]}\n\n' % BAD
        canned = self.answer(lambda method, path: (200, {"Content-Type": "text/event-stream"}, stream))
        with Store(canned.url) as store:
            event: Any = next(store.session("s").follow(after=0))
        self.assertEqual(event.data["entries"][0]["content"], READ)

    def test_lone_surrogates_are_escaped(self) -> None:
        with Store(self.serve().url) as store:
            session = store.create("x")
            session.commit([{"role": "user", "content": "a\ud800b\ud83d\ude00 é"}], state={"\udfff": Raw('"\ud800"')})
            r = session.resume()
            self.assertEqual(r.context[0]["content"], "a\ud800b\U0001f600 é")
            self.assertEqual(r.state, {"\udfff": "\ud800"})

"""session.turn, the counterpart of Session.Run of the Go library."""
from __future__ import annotations

from typing import Any

from coppice_client import Conflict, Fenced, Raw, Session, Store, Turn
from coppice_client.turn import INTERRUPTED
from tests.served import Case, said


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


CALL = {"role": "assistant", "content": [{"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"x": 1}}]}


class TurnTest(Case):
    def setUp(self) -> None:
        self.store = Store(self.serve().url)
        self.addCleanup(self.store.close)
        self.session = self.store.session("agent")

    def test_a_turn_is_resumed_run_and_committed(self) -> None:
        def run(turn: Turn) -> None:
            self.assertEqual((turn.messages, turn.state), ([], None))
            turn.append(user("hi"), Raw('{"role":"assistant","content":"hello","cost":1.10}'))
            self.assertEqual(turn.messages[-1]["content"], "hello")
            turn.state = {"turns": 1}
        receipt = self.session.turn(run, create=True)
        self.assertEqual(receipt["seq"], 1)
        r = self.session.resume()
        self.assertEqual((r.context[0], r.state), (user("hi"), {"turns": 1}))
        self.assertIn("1.10", r.raw_context[1])

    def test_what_run_returns_is_committed(self) -> None:
        self.session.turn(lambda turn: {"entries": [user("a")], "state": {"n": 1}}, create=True)
        r = self.session.resume()
        self.assertEqual((r.context, r.state), ([user("a")], {"n": 1}))

    def test_a_state_that_does_not_change_keeps_its_digits(self) -> None:
        self.store.create("agent").commit(state=Raw('{"price":1.10,"huge":1e400}'))
        self.session.turn(lambda turn: turn.append(user("x")))
        self.assertEqual(self.session.resume().raw["state"], '{"price":1.10,"huge":1e400}')

    def test_a_state_that_changes_in_place_is_sent(self) -> None:
        self.store.create("agent").commit(state={"list": []})
        self.session.turn(lambda turn: turn.state["list"].append(1))
        self.assertEqual(self.session.resume().state, {"list": [1]})

    def test_open_calls_are_answered(self) -> None:
        self.store.create("agent").commit([user("run it"), CALL])
        self.assertEqual([c["id"] for c in self.session.resume().open_calls], ["c1"])
        self.session.turn(lambda turn: turn.append({"role": "assistant", "content": f"{len(turn.messages)} messages"}))
        r = self.session.resume()
        self.assertEqual(r.open_calls, [])
        self.assertEqual(r.context[2]["toolCallId"], "c1")
        self.assertTrue(r.context[2]["isError"])
        self.assertEqual(r.context[2]["content"], [{"type": "text", "text": INTERRUPTED}])
        self.assertEqual(r.context[3]["content"], "3 messages")

    def test_nothing_is_stored_if_run_raises(self) -> None:
        def run(turn: Turn) -> None:
            turn.append(user("committed"))
            turn.commit(reason="intent")
            turn.append(user("dropped"))
            raise RuntimeError("the model")
        with self.assertRaisesRegex(RuntimeError, "the model"):
            self.session.turn(run, create=True)
        self.assertEqual(said(self.session), ["committed"])
        self.assertEqual([c["reason"] for c in self.session.commits()], ["intent", "create"])

    def test_a_lost_race_at_the_end_keeps_the_turn(self) -> None:
        self.store.create("agent")

        def run(turn: Turn) -> None:
            self.store.session("agent").commit([user("winner")], base="*")
            turn.append(user("loser"))
        receipt = self.session.turn(run)
        self.assertIn("kept", receipt)
        self.assertEqual(self.session.resume().context, [user("winner")])
        self.assertEqual(said(self.session), ["winner", "loser"])

    def test_a_lost_race_in_the_middle_keeps_and_raises(self) -> None:
        self.store.create("agent")

        def run(turn: Turn) -> None:
            self.store.session("agent").commit([user("winner")], base="*")
            turn.append(user("loser"))
            turn.commit()
            self.fail("the turn went on")
        with self.assertRaises(Conflict) as caught:
            self.session.turn(run)
        assert caught.exception.kept
        self.assertIn("kept", caught.exception.kept)
        self.assertEqual(said(self.session), ["winner", "loser"])

    def test_a_claim_fences_the_host_before(self) -> None:
        self.store.create("agent")

        def slow(turn: Turn) -> None:
            self.store.session("agent").turn(lambda other: other.append(user("new host")), claim=True)
            turn.append(user("old host"))
        with self.assertRaises(Fenced):
            self.session.turn(slow)
        self.assertEqual(said(self.session), ["new host"])

    def test_a_claim_comes_before_what_is_read(self) -> None:
        self.store.create("agent")
        other = self.store.session("agent")

        class Overtaken(Session):
            def claim(self, **options: Any) -> Any:
                other.commit([user("between")], base="*")
                return super().claim(**options)
        session = Overtaken(self.session._shared, self.session._below)
        receipt = session.turn(lambda turn: {"state": [m["content"] for m in turn.messages]}, claim=True)
        self.assertNotIn("kept", receipt)
        self.assertEqual(self.session.resume().state, ["between"])

    def test_a_turn_claims_what_it_creates(self) -> None:
        self.session.turn(lambda turn: turn.append(user("a")), create=True, claim=True)
        self.assertEqual([c["reason"] for c in self.session.commits()], ["turn", "claim", "create"])

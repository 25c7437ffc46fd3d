"""The examples: an agent that is killed at every request, and the backend of a chat page."""
from __future__ import annotations

import json
import multiprocessing
import os
import re
import subprocess
import sys
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import ThreadingHTTPServer
from typing import Any

from coppice_client import Session, Store
from tests.served import ROOT, Case, Proxy

EXAMPLES = ROOT / "examples" / "python"
sys.path.insert(0, str(EXAMPLES))

import agent  # noqa: E402
import chat  # noqa: E402

PROCESSES = multiprocessing.get_context("forkserver")  # quicker than an interpreter for each of them
PROCESSES.set_forkserver_preload(["tests.test_examples"])
AT_ONCE = 4


def work(url: str, session: str) -> None:
    """Run the agent in a process of its own, to its end."""
    try:
        agent.work(url, session, agent.list_files)
    except agent.Done:
        return
    raise AssertionError("it ended before all was done")


class Killed:
    """The agent in a process of its own behind a proxy, which kills it at one request: before or after it is done."""

    def __init__(self, port: int, at: int = -1, after: bool = False) -> None:
        self._at, self._after = at, after
        self._started = threading.Event()
        self.proxy = Proxy(port, self._rule)

    def _rule(self, n: int, request: bytes) -> int | None:
        if n != self._at:
            return None
        self._started.wait()
        if self._after:
            self.proxy.after = self._process.kill
            return 0
        self._process.kill()
        return -1

    def run(self, session: str) -> list[str]:
        """Run it to its end, and return the method and the last part of the path of its requests."""
        self._process = PROCESSES.Process(target=work, args=(self.proxy.url, session))
        self._process.start()
        self._started.set()
        self._process.join(120)
        self._process.kill()  # if it hangs
        self._process.join()
        self._process.close()
        self.proxy.close()
        return [re.sub(r"^(\S+) \S*/(\S+) .*$", r"\1 \2", r.decode().split("\r\n")[0]) for r in self.proxy.requests]


class AgentTest(Case):
    def check(self, session: Session) -> None:
        """Assert that each prompt is asked and answered once, and each call has one result."""
        messages = [e["message"] for e in session.entries()]
        self.assertEqual([m["content"] for m in messages if m["role"] == "user"], agent.PROMPTS)
        calls = [p["id"] for m in messages if m["role"] == "assistant" for p in m["content"] if p["type"] == "toolCall"]
        self.assertEqual(len(calls), 2)
        self.assertEqual([m["toolCallId"] for m in messages if m["role"] == "toolResult"], calls)
        self.assertEqual([m["role"] for m in messages], ["user", "assistant", "toolResult", "assistant"] * 2)
        self.assertEqual(session.resume().state, {"asked": 2, "answered": 2})
        self.assertEqual(len(list(session.entries("all"))), len(messages), "no other branch")

    def test_it_is_killed_at_every_request(self) -> None:
        server = self.serve()
        with Store(server.url) as store:
            whole = Killed(server.port).run(store.create("whole").id)
            self.check(store.session("whole"))
            self.assertEqual(whole[0], "GET resume")
            self.assertEqual(whole.count("GET resume"), 3, "one for each turn, and one that says that all is done")
            self.assertEqual(whole.count("POST commits"), 4)

            def die(at: int, after: bool) -> None:
                session = store.create(f"killed-{at}-{after}")
                first = Killed(server.port, at, after)
                self.assertEqual(len(first.run(session.id)), at + 1)
                done = session.resume().state == {"asked": 2, "answered": 2}
                second = Killed(server.port)
                requests = second.run(session.id)
                self.assertEqual(requests[0], "GET resume")
                if not done:
                    self.assertEqual(requests[1], "POST partial", "the model is asked after one request")
                self.check(session)
            with ThreadPoolExecutor(AT_ONCE) as pool:
                lives = {(at, after): pool.submit(die, at, after) for at in range(len(whole)) for after in (False, True)}
            for (at, after), life in lives.items():
                with self.subTest(at=at, after=after):
                    life.result()

    def test_it_runs_as_a_program(self) -> None:
        env = {**os.environ, "PYTHONPATH": str(ROOT / "clients" / "python")}
        command = [sys.executable, str(EXAMPLES / "agent.py"), self.serve().url, "a"]
        self.assertEqual(subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout,
                         "every prompt is answered\n")

    def test_its_persistence_is_fifteen_lines(self) -> None:
        text = (EXAMPLES / "agent.py").read_text()
        part = text.split("# persistence: begin\n")[1].split("# persistence: end")[0]
        self.assertLessEqual(len([line for line in part.split("\n") if line.strip()]), 15)


def message(id: str, parent: str | None, role: str, content: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "parentId": parent, "childrenIds": [], "role": role, "content": content, **more}


class ChatTest(Case):
    def setUp(self) -> None:
        self.store = Store(self.serve().url)
        self.addCleanup(self.store.close)
        self.chats = chat.Chats(self.store)

    def test_a_page_saves_its_history(self) -> None:
        id = self.chats.create("A trip")["id"]
        history: dict[str, Any] = {"messages": {"u1": message("u1", None, "user", "Where to?")}, "currentId": "u1"}
        live = self.chats.live(id, after=0)
        self.chats.save(id, history)
        self.assertIn("u1", next(live)["chat"]["history"]["messages"])

        history["messages"]["a1"] = message("a1", "u1", "assistant", "To the", done=False)
        self.chats.save(id, history)
        self.assertEqual(next(live), {"partial": {"role": "assistant", "content": "To the"}})
        history["messages"]["a1"].update(content="To the sea.", done=True)
        history["currentId"] = "a1"
        loaded = self.chats.save(id, history)["chat"]["history"]
        live.close()
        self.assertEqual(loaded["currentId"], "a1")
        self.assertEqual(loaded["messages"]["u1"]["childrenIds"], ["a1"])

        history["messages"]["a2"] = message("a2", "u1", "assistant", "To the hills.")  # regenerated
        history["currentId"] = "a2"
        loaded = self.chats.save(id, history)["chat"]["history"]
        self.assertEqual((loaded["currentId"], loaded["messages"]["u1"]["childrenIds"]), ("a2", ["a1", "a2"]))
        self.assertEqual(self.chats.versions(id, "a1"), ["a1", "a2"])

        before = len(list(self.store.session(id).commits()))
        self.chats.save(id, history)
        self.assertEqual(len(list(self.store.session(id).commits())), before, "nothing is new")

        history["currentId"] = "a1"  # the page switches to the first version
        self.assertEqual(self.chats.save(id, history)["chat"]["history"]["currentId"], "a1")
        history["messages"]["u1"]["content"] = "Where to now?"  # corrected in place
        self.assertEqual(self.chats.save(id, history)["chat"]["history"]["messages"]["u1"]["content"], "Where to now?")
        self.assertEqual(self.chats.switch(id, "a2")["chat"]["history"]["currentId"], "a2")

        edited = self.chats.edit(id, "u1", "Or not?")["chat"]["history"]
        self.assertEqual(edited["messages"][edited["currentId"]]["content"], "Or not?")
        self.assertEqual(len(self.chats.versions(id, "u1")), 2)
        self.assertEqual([c["title"] for c in self.chats.index()], ["A trip"])

    def test_two_pages(self) -> None:
        id = self.chats.create("two")["id"]
        self.chats.save(id, {"messages": {"u1": message("u1", None, "user", "a")}, "currentId": "u1"})
        self.chats.save(id, {"messages": {"u2": message("u2", None, "user", "b")}, "currentId": "u2"})
        self.assertEqual(list(self.chats.load(id)["chat"]["history"]["messages"]), ["u1", "u2"])

    def test_the_routes(self) -> None:
        handler = type("Quiet", (chat.Handler,), {"chats": self.chats, "log_message": lambda *_: None})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        base = f"http://127.0.0.1:{server.server_address[1]}/api/v1/chats"

        def call(path: str, doc: Any = None) -> Any:
            data = None if doc is None else json.dumps(doc).encode()
            with urllib.request.urlopen(urllib.request.Request(base + path, data)) as answer:
                return json.load(answer)
        try:
            id = call("/new", {"chat": {"title": "T"}})["id"]
            history = {"messages": {"u1": message("u1", None, "user", "a")}, "currentId": "u1"}
            self.assertEqual(call(f"/{id}", {"chat": {"history": history}})["chat"]["history"]["currentId"], "u1")
            self.assertEqual(call(f"/{id}")["title"], "T")
            self.assertEqual([c["id"] for c in call("/")], [id])
            with self.assertRaises(urllib.error.HTTPError):
                call("/none")
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    def test_it_is_short(self) -> None:
        self.assertLess(len((EXAMPLES / "chat.py").read_text().split("\n")), 151)

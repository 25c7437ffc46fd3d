"""The store against a server: what no suite of the SDK has. A plain dict is the oracle of what is stored."""
from __future__ import annotations

import asyncio
import os
import random
import re
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any, Coroutine

from coppice_claude import CoppiceSessionStore, CoppiceSummaryStore
from coppice_client import OutcomeUnknown, Store
from coppice_client.requests import Limits
from tests.served import Case, Proxy

HERE = Path(__file__).resolve().parent.parent
K = {"project_key": "p", "session_id": "s"}
QUICK = Limits(first=0.001, longest=0.02)


def run(what: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(what)


def chain(n: int, name: str = "m") -> list[Any]:
    """Return n lines, each below the one before."""
    def line(i: int) -> Any:
        role = "assistant" if i % 2 else "user"
        return {"type": role, "uuid": f"{name}{i}", "parentUuid": f"{name}{i - 1}" if i else None, "cwd": "/w",
                "message": {"role": role, "content": f"{name} {i}", **({"id": f"{name}{i}", "model": "x"} if i % 2 else {})}}
    return [line(i) for i in range(n)]


def fold(summary: Any, key: Any, lines: list[Any]) -> Any:
    """Fold in the way of the SDK: what is set once, what the last one sets, and a count that shows a line folded twice."""
    data = dict(summary["data"]) if summary else {"first": lines[0].get("uuid"), "lines": 0}
    data["lines"] += len(lines)
    return {"session_id": key["session_id"], "mtime": 0, "data": {**data, "last": lines[-1].get("uuid")}}


class StoreTest(Case):
    def session(self, service: Any, **options: Any) -> CoppiceSessionStore:
        store = CoppiceSessionStore(service, **options)
        self.addCleanup(store.close)
        return store

    def summary(self, service: Any, fold: Any, **options: Any) -> CoppiceSummaryStore:
        store = CoppiceSummaryStore(service, fold, **options)
        self.addCleanup(store.close)
        return store

    def test_random_calls_against_a_dict(self) -> None:
        store, kept, draw = self.session(self.serve().url), dict[Any, list[Any]](), random.Random(7)

        async def calls() -> None:
            for i in range(120):
                key = {"project_key": f"p{draw.randrange(2)}", "session_id": f"s{draw.randrange(3)}"}
                if draw.random() < 0.3:
                    key["subpath"] = f"subagents/{draw.randrange(2)}"
                name = (key["project_key"], key["session_id"], key.get("subpath"))
                if draw.random() < 0.7:
                    batch = [*chain(draw.randrange(1, 4), f"{i}-"), {"type": "tag", "tag": "t"}]
                    kept.setdefault(name, []).extend(batch)
                    await store.append(key, batch)
                else:
                    for other in [o for o in kept if o == name or (o[:2] == name[:2] and name[2] is None)]:
                        del kept[other]
                    await store.delete(key)
                self.assertEqual(await store.load(key), kept.get(name))
                listed = sorted(s["session_id"] for s in await store.list_sessions(key["project_key"]))
                self.assertEqual(listed, sorted(s for p, s, sub in kept if p == key["project_key"] and sub is None))
                self.assertEqual(sorted(await store.list_subkeys(key)), sorted(o[2] for o in kept if o[:2] == name[:2] and o[2]))
        run(calls())

    def test_lines_that_come_again_are_stored_once(self) -> None:
        url, lines = self.serve().url, chain(6)
        store = self.summary(url, fold)
        run(store.append(K, lines[:2]))
        run(store.append(K, [*lines, lines[5]]))
        run(self.summary(url, fold).append(K, lines))
        self.assertEqual(run(store.load(K)), lines)
        (summary,) = run(store.list_session_summaries("p"))
        self.assertEqual(summary["data"], {"first": "m0", "lines": 6, "last": "m5"})
        self.assertEqual(summary["mtime"], run(store.list_sessions("p"))[0]["mtime"])
        self.assertGreater(summary["mtime"], 10 ** 12)

    def test_values_survive(self) -> None:
        store = self.session(self.serve().url)
        odd = {"type": "x", "uuid": "odd/é", "id": "not-ours", "n": 2 ** 60, "f": 1.5, "u": "\u2028😀", "cut": "\ud83d", "empty": {}, "nul": None}
        run(store.append(K, [odd]))
        self.assertEqual(run(store.load(K)), [odd])

    def test_appends_of_one_process_are_in_the_order_of_calls(self) -> None:
        store, lines = self.session(self.serve().url), chain(30)

        async def together() -> None:
            await asyncio.gather(*(store.append(K, [line]) for line in lines))
        run(together())
        self.assertEqual(run(store.load(K)), lines)

    def test_two_writers_lose_nothing(self) -> None:
        url = self.serve().url
        mine = [chain(15, "a"), chain(15, "b")]

        async def write(lines: list[Any]) -> None:
            store = self.summary(Store(url, limits=QUICK), fold)
            for line in lines:
                await store.append(K, [line])

        async def both() -> None:
            await asyncio.gather(*map(write, mine))
        run(both())
        store = self.summary(url, fold)
        loaded = run(store.load(K))
        for lines in mine:
            self.assertEqual([line for line in loaded if line in lines], lines)
        self.assertEqual(run(store.list_session_summaries("p"))[0]["data"]["lines"], 30)

    def test_a_transcript_is_written_again_after_it_was_deleted(self) -> None:
        url = self.serve().url
        for n, store in enumerate([self.session(url), self.summary(url, fold, scope="x")]):
            agent = {**K, "subpath": "subagents/x"}
            run(store.append(K, chain(2)))
            run(store.append(agent, chain(2)))
            run(store.delete(K))
            self.assertEqual([run(store.load(K)), run(store.load(agent)), run(store.list_subkeys(K))], [None, None, []])
            run(store.append(K, chain(3, str(n))))
            self.assertEqual(run(store.load(K)), chain(3, str(n)))

    def test_the_service_is_killed_in_the_middle_of_batches(self) -> None:
        server, lines = self.serve(), chain(100)

        def rule(n: int, request: bytes) -> int | None:
            if n % 9 == 4:
                return 0  # stored, and the answer is lost
            if n % 9 == 8:
                server.kill()
                server.start()
                return -1
            return None
        proxy = Proxy(server.port, rule)
        self.addCleanup(proxy.close)
        store = self.summary(Store(proxy.url, limits=QUICK), fold)
        for i in range(0, 100, 4):
            run(store.append(K, lines[i:i + 4]))
        self.assertEqual(run(store.load(K)), lines)

    def test_a_batch_of_unknown_outcome_is_stored_once(self) -> None:
        server = self.serve()
        proxy = Proxy(server.port, lambda n, request: 0 if n < 2 else None)
        self.addCleanup(proxy.close)
        store, batch = self.session(Store(proxy.url, limits=Limits(attempts=1))), [{"type": "tag", "tag": "t"}]
        for _ in range(2):
            with self.assertRaises(OutcomeUnknown):
                run(store.append(K, batch))
        run(store.append(K, batch))
        self.assertEqual(run(store.load(K)), batch)

    def test_a_batch_that_was_stored_after_all_is_in_the_summary_once(self) -> None:
        proxy = Proxy(self.serve().port, lambda n, request: 0 if n == 2 else None)  # after docs and the creation
        self.addCleanup(proxy.close)
        store, batch = self.summary(Store(proxy.url, limits=Limits(attempts=1)), fold), [{"type": "tag"}, *chain(1)]
        with self.assertRaises(OutcomeUnknown):
            run(store.append(K, batch))
        run(store.append(K, batch))
        run(store.append(K, chain(3)[1:]))
        self.assertEqual(run(store.list_session_summaries("p"))[0]["data"]["lines"], 4)
        self.assertEqual(run(store.load(K)), [*batch, *chain(3)[1:]])

    def test_10000_lines_cost_one_request_each_way(self) -> None:
        proxy = Proxy(self.serve().port, lambda n, request: None)
        self.addCleanup(proxy.close)
        store, lines = self.summary(proxy.url, fold), chain(10_000)

        def sent(what: Coroutine[Any, Any, Any]) -> list[str]:
            proxy.requests.clear()
            run(what)
            return [re.sub(r"claude-[0-9a-f]{40}", "ID", request.split(b" HTTP")[0].decode()) for request in proxy.requests]
        append = ["POST /v1/sessions/ID/commits?format=claude-code"]
        self.assertEqual(sent(store.append(K, lines[:500])),
                         ["GET /v1/sessions/ID/docs", "PUT /v1/sessions/ID", *append])
        for i in range(500, 9_500, 500):
            run(store.append(K, lines[i:i + 500]))
        self.assertEqual(sent(store.append(K, lines[9_500:])), append)
        self.assertEqual(sent(store.load(K)), ["GET /v1/sessions/ID/original"])
        self.assertEqual(run(store.load(K)), lines)
        self.assertEqual(len(sent(store.list_session_summaries("p"))), 1)

    def test_wheels_install_offline_and_the_example_runs(self) -> None:
        wheels = Path(os.environ["COPPICE_WHEELS"])
        folder, (example,) = Path(self.folder()), re.findall(r"^```python\n(.*?)^```$", (HERE / "README.md").read_text(), re.M | re.S)
        venv.create(folder, with_pip=True)
        python, env = str(folder / "bin" / "python"), {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        files = [str(f) for f in wheels.glob("*.whl")]
        subprocess.run([python, "-m", "pip", "install", "--no-index", "--quiet", *files], check=True, env=env)
        (folder / "example.py").write_text(f"url = {self.serve().url!r}\n{example}")
        subprocess.run([python, "example.py"], check=True, env=env, cwd=folder)
        self.assertIn("Requires-Dist: coppice-client==0.1.0\n",
                      next(folder.rglob("coppice_claude-*.dist-info/METADATA")).read_text())


if __name__ == "__main__":
    sys.exit("run by make adapters")

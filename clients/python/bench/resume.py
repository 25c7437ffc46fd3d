"""The cost of Session.resume compared with a bare GET of the same bytes, in the same run.

    COPPICE_BIN=... python3 bench/resume.py [ROUNDS]

It prints, for contexts of several sizes, the medians of both and their ratio. The two alternate, each on a connection
that is kept alive; the bare GET reads the body and does nothing with it.
"""
from __future__ import annotations

import http.client
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from coppice_client import Store  # noqa: E402
from tests.served import Server  # noqa: E402


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder)
        try:
            with Store(server.url) as store:
                for messages in (1, 10, 50, 200):
                    measure(server, store, messages, rounds)
        finally:
            server.stop()


def measure(server: Server, store: Store, messages: int, rounds: int) -> None:
    session = store.create()
    session.commit([{"role": "user", "content": "x" * 400} for _ in range(messages)], state={"n": messages})
    path = f"/v1/sessions/{session.id}/resume"
    conn = http.client.HTTPConnection("127.0.0.1", server.port)
    bare, ours = [], []
    size = 0
    for n in range(rounds + 20):
        start = time.perf_counter()
        conn.request("GET", path)
        size = len(conn.getresponse().read())
        middle = time.perf_counter()
        session.resume()
        end = time.perf_counter()
        if n >= 20:  # the first ones warm up
            bare.append(middle - start)
            ours.append(end - middle)
    conn.close()
    a, b = statistics.median(bare), statistics.median(ours)
    print(f"{messages:4} messages, {size:6} bytes: bare GET {a * 1e6:6.0f} us, resume {b * 1e6:6.0f} us, "
          f"ratio {b / a:.2f}")


if __name__ == "__main__":
    main()

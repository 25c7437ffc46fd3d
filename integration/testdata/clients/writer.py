"""A process of writers: each commits turns with a text of its own to the given sessions, one after the other, until
standard input ends. It prints a line for each turn that was acknowledged, and fails if one was not.

    PYTHONPATH=clients/python python3 writer.py URL NAME WRITERS SEED SESSION...
"""
from __future__ import annotations

import json
import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Callable

from coppice_client import Conflict, OutcomeUnknown, Store
from coppice_client.schema import Committed

MAX_ROUNDS = 20  # of one turn: each is as many attempts as the store allows
URL, NAME, WRITERS, SEED, *SESSIONS = sys.argv[1:]
over = threading.Event()


def acknowledged(write: Callable[[], Committed]) -> Committed:
    """Make a write until it is acknowledged: as a branch if another writer was first, and again if it is not known."""
    for _ in range(MAX_ROUNDS - 1):
        try:
            return write()
        except Conflict as e:
            write = e.keep_both
        except OutcomeUnknown as e:
            write = e.retry
    return write()


def write(who: int) -> None:
    with Store(URL, timeout=1.5) as store:
        draw = random.Random(int(SEED) + who)
        handles = [store.session(id) for id in SESSIONS]
        n = 0
        while not over.is_set():
            session, text = draw.choice(handles), f"{NAME}{who}.{n}"
            if not session.base:
                session.resume()
            base = "*" if draw.randrange(8) else ""  # else on what it has seen last, which is mostly an older commit
            r = acknowledged(lambda: session.commit([{"role": "user", "content": text}], state={"text": text}, base=base))
            line = {"session": session.id, "text": text, "commit": r["commit"], "repeated": r.get("repeated", False),
                    "kept": r.get("kept", "")}
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()
            n += 1


def main() -> None:
    with ThreadPoolExecutor(int(WRITERS)) as threads:
        writers = [threads.submit(write, who) for who in range(int(WRITERS))]
        sys.stdin.read()
        over.set()
        for writer in writers:
            writer.result()


main()

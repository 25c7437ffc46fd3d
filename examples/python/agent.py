"""An agent that calls tools, and may lose its host at any moment: another process continues after one request.

    coppice serve --store /tmp/store &
    PYTHONPATH=clients/python python3 examples/python/agent.py http://127.0.0.1:7070 SESSION

The model is a fake that streams, requests one tool call for each prompt, and then answers.
"""
from __future__ import annotations

import sys
from typing import Any, Callable, Iterator

from coppice_client import Store, Turn

PROMPTS = ["list the files", "and again"]


class Done(Exception):
    """Every prompt is answered."""


def work(url: str, id: str, tool: Callable[[str, dict[str, Any]], str]) -> None:
    """Answer the prompts that no earlier process has answered."""
    # persistence: begin
    with Store(url) as store:
        session = store.session(id)

        def turn(t: Turn) -> None:
            t.state = t.state or {"asked": 0, "answered": 0}
            next_prompt(t)  # if the last one is answered
            while calls := ask(t):
                key = t.commit(reason="intent")["commit"]  # the calls are known before they have effects
                for call in calls:
                    t.append(result(call, tool(f"{key}/{call['id']}", call)))
            t.state["answered"] += 1

        while True:
            session.turn(turn, create=True)  # messages and state together, once
    # persistence: end


def next_prompt(t: Turn) -> None:
    """Append the next prompt, unless a process that stopped has already appended it."""
    if t.state["answered"] == len(PROMPTS):
        raise Done
    if t.state["asked"] == t.state["answered"]:
        t.append({"role": "user", "content": PROMPTS[t.state["asked"]]})
        t.state["asked"] += 1


def ask(t: Turn) -> list[dict[str, Any]]:
    """Append the model's reply, show it while it is streamed, and return its tool calls."""
    reply: dict[str, Any] = {}
    for reply in model(t.messages):
        t.session.partial(reply)
    t.append(reply)
    return [part for part in reply["content"] if part["type"] == "toolCall"]


def result(call: dict[str, Any], text: str) -> dict[str, Any]:
    """Return the message that answers a tool call."""
    return {"role": "toolResult", "toolCallId": call["id"], "toolName": call["name"], "isError": False,
            "content": [{"type": "text", "text": text}]}


def model(messages: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield what a provider has streamed so far: a tool call after a prompt, text after a result."""
    if messages[-1]["role"] == "toolResult":
        for text in ("There", "There are two", "There are two files."):
            yield {"role": "assistant", "content": [{"type": "text", "text": text}]}
        return
    call = {"type": "toolCall", "id": f"call-{len(messages)}", "name": "bash", "arguments": {"command": "ls"}}
    yield {"role": "assistant", "content": [{"type": "text", "text": "I look"}]}
    yield {"role": "assistant", "content": [{"type": "text", "text": "I look."}, call]}


def list_files(key: str, call: dict[str, Any]) -> str:
    """Run a tool. The key is the same for one call, in every process that runs it."""
    return "go.mod\nmain.go"


if __name__ == "__main__":
    try:
        work(sys.argv[1], sys.argv[2], list_files)
    except Done:
        print("every prompt is answered")

"""One turn of an agent."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping

from .operations import Resumed
from .rawjson import UNSET, Raw, encode, parse
from .schema import Committed

if TYPE_CHECKING:
    from .session import Session

INTERRUPTED = "interrupted: it is unknown whether this ran; check before repeating it"


class Turn:
    """A turn: the resumed session, its messages with appended ones, and the state, sent only if it was changed."""

    def __init__(self, session: Session, resumed: Resumed, interrupted: str) -> None:
        self.session, self.resumed, self.state, self.messages = session, resumed, resumed.state, [*resumed.context]
        self._before, self._pending = encode(self.state), list[Any]()
        for call in resumed.open_calls:  # so that no provider refuses the context
            self.append({"role": "toolResult", "toolCallId": call["id"], "toolName": call["name"], "isError": True,
                         "content": [{"type": "text", "text": interrupted}]})

    def append(self, *messages: Any) -> None:
        """Add messages of any provider to the turn. The next commit stores them."""
        self._pending += messages
        self.messages += [parse(m) if isinstance(m, Raw) else m for m in messages]

    def commit(self, *, reason: str | None = None, keep: bool = False) -> Committed:
        """Store appended messages and the state. Call it before a tool runs, so that its call is durable first."""
        after = encode(self.state)
        receipt = self.session.commit(self._pending, state=UNSET if after == self._before else self.state,
                                      reason=reason, on_conflict="keep-both" if keep else None)
        self._before, self._pending = after, []
        return receipt

    def end(self, result: Mapping[str, Any] | None) -> Committed:
        """Commit the entries and the state that the turn returned: as a branch if the race was lost."""
        self.append(*(result or {}).get("entries", ()))
        self.state = (result or {}).get("state", self.state)
        return self.commit(keep=True)

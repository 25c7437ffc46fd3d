"""The store: everything that a server serves, or one tenant's part of it."""
from __future__ import annotations

import ssl
import threading

from .operations import StoreOperations
from .requests import Limits, check_header, segment
from .session import Session
from .transport import HTTP


class Store(StoreOperations):
    """A store that `coppice serve` serves at base_url; with a tenant, the part at /t/TENANT. Threads may share it.

    writer names this client: its own claim does not fence it. timeout is in seconds without a byte, of one attempt;
    limits bound all attempts of a request.
    """

    def __init__(
        self, base_url: str = "", *, token: str = "", tenant: str = "", writer: str = "",
        tls: ssl.SSLContext | None = None, timeout: float = 40.0, limits: Limits = Limits(), transport: HTTP | None = None,
    ) -> None:
        headers = {}
        if token:
            check_header("token", token)
            headers["Authorization"] = f"Bearer {token}"
        if writer:
            check_header("writer", writer)
            headers["Coppice-Writer"] = writer
        shared = transport or HTTP(base_url, tls, timeout), headers, limits, threading.Event()
        super().__init__(shared, f"/t/{segment(tenant)}/v1" if tenant else "/v1")

    def session(self, id: str) -> Session:
        """Return the handle of a session. No request is made. Call resume() before writing."""
        return Session(self._shared, self._path("sessions", id))

    def close(self) -> None:
        """End pauses, and close idle connections: a request ends after its attempt, a stream at its next event."""
        self._closing.set()
        self._transport.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

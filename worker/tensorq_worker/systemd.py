"""Systemd: the messages that a service of Type=notify sends its supervisor; see sd_notify(3)."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Mapping

log = logging.getLogger("rq.worker")


class Systemd:
    """The socket that systemd, or a supervisor that does the same, named in NOTIFY_SOCKET.

    Without one nothing is sent. A supervisor that does not listen never stops the worker.

    Args:
        environment: where the variables are; None for the process's.

    Attributes:
        watchdog_s: seconds after which silence counts as death; None where nobody watches.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        variables = os.environ if environment is None else environment
        address = variables.get("NOTIFY_SOCKET", "")
        # An @ stands for the null byte of an abstract socket.
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self.watchdog_s: float | None = None
        watched = variables.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        if self._address and watched and variables.get("WATCHDOG_USEC", "").isdecimal():
            self.watchdog_s = int(variables["WATCHDOG_USEC"]) / 1e6 or None

    def send(self, *assignments: str) -> None:
        """Sends assignments, such as ``READY=1``, in one datagram."""
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
                channel.setblocking(False)
                channel.sendto("\n".join(assignments).encode(), self._address)
        except OSError as exc:
            log.warning("the supervisor's socket does not take %s: %s", assignments[0], exc.strerror or exc)

"""Streams of the GPU in ordinary memory."""

import queue
import threading


class Fault(Exception):
    """A kernel or copy touched memory that is not there."""


class Stream:
    """Work in order on a thread; while it captures, work is written down instead."""

    def __init__(self, cuda):
        self.cuda, self.work, self.captured, self.broken = cuda, queue.SimpleQueue(), None, False
        threading.Thread(target=self._run, daemon=True).start()

    def put(self, operation):
        if self.captured is None:
            self.work.put(operation)
        else:
            self.captured.append(operation)

    def drain(self):
        done = threading.Event()
        self.work.put(done.set)
        done.wait()

    def _run(self):
        while (operation := self.work.get()) is not None:
            try:
                if not self.cuda.sticky or getattr(operation, "__name__", "") == "set":
                    operation()
            except Fault as exc:
                self.cuda.sticky = self.cuda.sticky or exc.args[0]

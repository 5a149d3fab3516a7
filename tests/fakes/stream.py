"""Streams of the GPU in ordinary memory."""

import queue
import threading
import time


class Fault(Exception):
    """A kernel or copy touched memory that is not there."""


class Mark(threading.Event):
    """An event that was recorded, and when the stream came to it."""

    at = None

    def __init__(self, clock=time.perf_counter):
        super().__init__()
        self.clock = clock

    def set(self):
        self.at = self.clock()
        super().set()


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
            self.cuda.steps += 1
            try:
                if not self.cuda.sticky or getattr(operation, "__name__", "") == "set":
                    operation()
            except Fault as exc:
                self.cuda.sticky = self.cuda.sticky or exc.args[0]

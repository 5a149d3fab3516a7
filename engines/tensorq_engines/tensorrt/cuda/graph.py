"""Graph: work captured from a stream, ready to be launched again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorq_engines.tensorrt.cuda.errors import CudaError
from tensorq_engines.tensorrt.cuda.status import clear_last_error, runtime, runtime_module
from tensorq_engines.tensorrt.cuda.stream import Stream


class CaptureFailed(Exception):
    """Work could not be captured; ``reason`` is one of the words below.

    Attributes:
        reason: ``refused`` where the work said no, ``invalidated`` where CUDA did, ``empty`` where a graph
            without nodes came back as if nothing were wrong, ``instantiate`` where it could not be made
            ready.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason


class Graph:
    """An executable graph. It bakes in every address that its work used.

    Attributes:
        nodes: how many nodes it has.
    """

    def __init__(self, handle: Any, nodes: int) -> None:
        self._handle = handle
        self.nodes = nodes

    def launch(self, stream: Stream) -> None:
        """Queues the work in ``stream``."""
        runtime("cudaGraphLaunch", self._handle, stream.handle)

    def close(self) -> None:
        """Destroys the graph; idempotent. If it is running it runs to its end."""
        if self._handle is not None:
            runtime("cudaGraphExecDestroy", self._handle)
            self._handle = None


def capture(stream: Stream, work: Callable[[], None]) -> Graph:
    """Captures what ``work`` queues in ``stream`` on this thread; nothing of it runs.

    The mode is thread-local, so other threads go on allocating while this one captures. The capture is ended
    in every case, and the thread's last error is cleared after a failure.

    Args:
        stream: a non-blocking stream that is not being captured.
        work: queues the work, and raises `CaptureFailed` or `CudaError` where it cannot.

    Raises:
        CaptureFailed: there is no graph; the stream is usable.
        EngineFatal: the process must end.
    """
    mode = runtime_module().cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal
    runtime("cudaStreamBeginCapture", stream.handle, mode)
    failure: CaptureFailed | None = None
    try:
        work()
    except CaptureFailed as exc:
        failure = exc
    except CudaError as exc:
        failure = CaptureFailed("invalidated", str(exc))
    except BaseException:
        _discard(stream)
        raise
    if failure is not None:
        _discard(stream)
        raise failure
    try:
        graph = runtime("cudaStreamEndCapture", stream.handle)
    except CudaError as exc:
        raise CaptureFailed("invalidated", str(exc)) from exc
    return _instantiate(graph)


def _instantiate(graph: Any) -> Graph:
    if not int(graph):
        raise CaptureFailed("empty", "the capture ended without an error and without a graph")
    try:
        nodes = _count(graph)
        if nodes == 0:
            raise CaptureFailed("empty", "the captured graph has no nodes")
        return Graph(runtime("cudaGraphInstantiate", graph, 0), nodes)
    except CudaError as exc:
        raise CaptureFailed("instantiate", str(exc)) from exc
    finally:
        runtime("cudaGraphDestroy", graph)


def _count(graph: Any) -> int:
    return int(runtime("cudaGraphGetNodes", graph)[1])


def _discard(stream: Stream) -> None:
    """Ends a capture whose work failed; CUDA may give a graph back all the same."""
    status, graph = runtime_module().cudaStreamEndCapture(stream.handle)
    if not int(status) and int(graph):
        runtime("cudaGraphDestroy", graph)
    clear_last_error()

"""A GPU in ordinary memory, behind the names of cuda-python that tensorq calls.

Streams run in order, each on a thread. Touching memory that is not there ends the GPU's use, as error 700
does. `FakeCuda.fail` makes the next call of a function fail.
"""

# ruff: noqa: N802
from __future__ import annotations

import ctypes
import mmap
import time
from collections import defaultdict
from types import ModuleType, SimpleNamespace

import numpy as np

from fakes.stream import Fault, Mark, Stream

GRANULARITY = 2 * 1024 * 1024
ILLEGAL_ADDRESS, NOT_READY, OUT_OF_MEMORY, INVALIDATED = 700, 600, 2, 901
INVALID_HANDLE, DISABLE_TIMING = 400, 2


class Names:
    def __init__(self, *_):
        pass

    def __getattr__(self, name):
        return name


class FakeCuda:
    """One GPU.

    Attributes:
        sticky: the error that every call returns from now on; 0 for none.
        calls: how often each function was called.
        steps: operations that streams came to, marks included.
        clock: seconds on the device, as events with timing tell them.
        ended: what was destroyed, in order: graphs, contexts, engines, memory and streams.
    """

    def __init__(self, memory_bytes=1 << 30, address_ranges=True):
        self.memory_bytes, self.address_ranges = memory_bytes, address_ranges
        self.sticky, self.calls, self.failures = 0, defaultdict(int), defaultdict(list)
        self.clock, self.timed = time.perf_counter, set()
        self.steps = 0
        self.device, self.pinned, self.ranges, self.ended = {}, {}, {}, []
        self.streams, self.events, self.graphs, self.execs = {}, {}, {}, {}
        self._next = 1000
        self.runtime = self._module("cuda.bindings.runtime", "cuda")
        self.driver = self._module("cuda.bindings.driver", "cu")

    def fail(self, name, *codes):
        self.failures[name] += codes

    @property
    def used_bytes(self):
        return sum(self.device.values())

    def view(self, address, size):
        """Device memory as bytes, if all of it is there."""
        for base, length in self.device.items():
            if base <= address and address + size <= base + length:
                return (ctypes.c_uint8 * size).from_address(address)
        end = address
        while end < address + size and (piece := self._piece(end)) is not None:
            end = piece
        if end < address + size or not size:
            raise Fault(ILLEGAL_ADDRESS)
        return (ctypes.c_uint8 * size).from_address(address)

    def _piece(self, address):
        return next((b + n for b, n in self.device.items() if b <= address < b + n), None)

    def _module(self, name, prefix):
        module = ModuleType(name)
        for attribute in dir(self):
            if attribute.startswith(f"_{prefix}"):
                function = attribute.removeprefix("_")
                setattr(module, function, self._wrap(function, getattr(self, attribute)))
        for enum in (
            "CUdevice_attribute",
            "CUmemLocationType",
            "CUmemAllocationType",
            "cudaMemcpyKind",
            "CUmemAllocationGranularity_flags",
            "CUmemAccess_flags",
            "cudaStreamCaptureMode",
        ):
            setattr(module, enum, Names())
        for struct in ("CUmemLocation", "CUmemAllocationProp", "CUmemAccessDesc"):
            setattr(module, struct, SimpleNamespace)
        module.cudaError_t = module.CUresult = int
        return module

    def _wrap(self, name, function):
        def call(*args):
            self.calls[name] += 1
            if self.failures[name]:
                return (self.failures[name].pop(0), *self._nothing(name))
            if self.sticky and "Error" not in name:
                return (self.sticky, *self._nothing(name))
            try:
                result = function(*args)
            except MemoryError:
                return (OUT_OF_MEMORY, 0)
            return result if isinstance(result, tuple) else (0,) if result is None else (0, result)

        return call

    def _nothing(self, name):
        return (None,) if name == "cudaStreamEndCapture" else ()

    def _new(self, table, thing):
        self._next += 1
        table[self._next] = thing
        return self._next

    # What the device is.
    def _cuInit(self, flags): ...
    def _cudaDriverGetVersion(self):
        return 13000

    def _cudaGetDeviceCount(self):
        return 1

    def _cudaSetDevice(self, ordinal): ...
    def _cuDeviceGet(self, ordinal):
        return 0

    def _cuDeviceGetName(self, length, device):
        return b"Fake GPU\0\0"

    def _cuDeviceTotalMem(self, device):
        return self.memory_bytes

    def _cudaMemGetInfo(self):
        return 0, self.memory_bytes - self.used_bytes, self.memory_bytes

    def _cudaGetLastError(self):
        return (0,)

    def _cudaGetErrorName(self, code):
        return f"fakeError{code}".encode()

    def _cudaGetErrorString(self, code):
        return b"a failure of the fake"

    def _cuGetErrorName(self, code):
        return f"FAKE_ERROR_{code}".encode()

    def _cuGetErrorString(self, code):
        return b"a failure of the fake"

    def _cuDeviceGetAttribute(self, name, device):
        return {"MAJOR": 9, "MINOR": 0}.get(name.split("_")[-1], int(self.address_ranges))

    # Memory.
    def _take(self, size):
        if self.used_bytes + size > self.memory_bytes:
            raise MemoryError

    def _cudaMalloc(self, size):
        self._take(size)
        memory = mmap.mmap(-1, max(size, 1))
        address = np.frombuffer(memory, np.uint8).ctypes.data
        self.device[address] = size
        self.ranges[address] = memory
        return address

    def _cudaFree(self, address):
        self._cudaDeviceSynchronize()
        del self.device[int(address)]
        self.ended.append("memory")

    def _cudaHostAlloc(self, size, flags):
        memory = np.empty(size, np.uint8)
        self.pinned[memory.ctypes.data] = memory
        return memory.ctypes.data

    def _cudaFreeHost(self, address):
        self._cudaDeviceSynchronize()
        del self.pinned[address]

    def _cudaMemcpyAsync(self, target, source, size, kind, stream):
        inward = kind.endswith("HostToDevice")
        host, device = (source, target) if inward else (target, source)

        def copy():
            there = any(
                base <= host and host + size <= base + block.nbytes for base, block in self.pinned.items()
            )
            if not there:
                raise Fault(ILLEGAL_ADDRESS)
            self.view(device, size)
            ctypes.memmove(target, source, size)

        self.streams[stream].put(copy)

    def _cuMemGetAllocationGranularity(self, kind, option):
        return GRANULARITY

    def _cuMemAddressReserve(self, size, alignment, address, flags):
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        base = np.frombuffer(memory, np.uint8).ctypes.data
        self.ranges[base] = memory
        return base

    def _cuMemAddressFree(self, address, size):
        self.ranges.pop(address)

    def _cuMemRelease(self, handle): ...
    def _cuMemSetAccess(self, address, size, access, count): ...

    def _cuMemCreate(self, size, kind, flags):
        self._take(size)
        return size

    def _cuMemMap(self, address, size, offset, handle, flags):
        self.device[address] = size

    def _cuMemUnmap(self, address, size):
        assert self.device.pop(address) == size
        ctypes.memset(address, 0xEE, size)
        self.ended.append("memory")

    # Streams and events.
    def _cudaStreamCreateWithFlags(self, flags):
        return self._new(self.streams, Stream(self))

    def _cudaStreamDestroy(self, stream):
        self.streams.pop(stream).work.put(None)
        self.ended.append("stream")

    def _cudaStreamSynchronize(self, stream):
        self.streams[stream].drain()
        return (self.sticky,)

    def _cudaDeviceSynchronize(self):
        for stream in list(self.streams.values()):
            stream.drain()

    def _cudaStreamQuery(self, stream): ...
    def _cudaEventCreateWithFlags(self, flags):
        event = self._new(self.events, [])
        if not flags & DISABLE_TIMING:
            self.timed.add(event)
        return event

    def _cudaEventDestroy(self, event):
        del self.events[event]

    def _cudaEventRecord(self, event, stream):
        mark = Mark(lambda: self.clock())
        self.events[event] = [mark]
        self.streams[stream].put(mark.set)

    def _cudaEventQuery(self, event):
        return (0 if all(mark.is_set() for mark in self.events[event]) else NOT_READY,)

    def _cudaEventSynchronize(self, event):
        for mark in self.events[event]:
            mark.wait()
        return (self.sticky,)

    def _cudaEventElapsedTime(self, start, end):
        marks = [*self.events[start], *self.events[end]]
        if len(marks) < 2 or not {start, end} <= self.timed:
            return INVALID_HANDLE, 0.0
        if not all(mark.is_set() for mark in marks):
            return NOT_READY, 0.0
        return 0, 1000 * (marks[1].at - marks[0].at)

    def _cudaStreamWaitEvent(self, stream, event, flags):
        marks = self.events[event]
        self.streams[stream].put(lambda: [mark.wait() for mark in marks])

    # Graphs.
    def _cudaStreamBeginCapture(self, stream, mode):
        assert mode.endswith("ThreadLocal")
        self.streams[stream].captured = []
        self.streams[stream].broken = False

    def _cudaStreamEndCapture(self, stream):
        work, self.streams[stream].captured = self.streams[stream].captured, None
        return (INVALIDATED, None) if self.streams[stream].broken else (0, self._new(self.graphs, work))

    def _cudaGraphGetNodes(self, graph):
        return 0, None, len(self.graphs[graph])

    def _cudaGraphInstantiate(self, graph, flags):
        return self._new(self.execs, list(self.graphs[graph]))

    def _cudaGraphDestroy(self, graph):
        del self.graphs[graph]

    def _cudaGraphExecDestroy(self, graph):
        del self.execs[graph]
        self.ended.append("graph")

    def _cudaGraphLaunch(self, graph, stream):
        for operation in self.execs[graph]:
            self.streams[stream].put(operation)

"""TensorRT as notes say it behaves, over ONNX Runtime and a `FakeCuda`.

A plan is a header and an ONNX model. `Behaviour` makes the next call say no in one of TensorRT's ways.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import IntEnum
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np
import onnx
import onnxruntime

from tensorq_engines.base.profile import Profile
from tensorq_engines.onnx_model.inference import infer

MAGIC = b"fake plan 1\n"
VERSION = "8.6.1"
CODES = {
    "float32": "FLOAT",
    "float16": "HALF",
    "int32": "INT32",
    "int64": "INT64",
    "bool": "BOOL",
    "uint8": "UINT8",
}


@dataclass
class Behaviour:
    """What TensorRT will do wrong next.

    Attributes:
        refuse_runs: execute_async_v3 returns False this many times.
        refuse_captured_runs: the same, only while the stream captures.
        empty_captures: runs while capturing leave nothing in the graph, and return True.
        break_captures: runs while capturing invalidate the capture.
        refuse_contexts: no context is created.
        sticky_after_run: the CUDA error that the next run ends in.
    """

    refuse_runs: int = 0
    refuse_captured_runs: int = 0
    empty_captures: int = 0
    break_captures: int = 0
    refuse_contexts: int = 0
    sticky_after_run: int = 0
    log: list = field(default_factory=list)


def make_plan(
    model,
    profiles=(),
    *,
    activation_bytes=3 << 20,
    weights_bytes=0,
    narrow=True,
    version=VERSION,
    device="9.0",
):
    """The bytes of a plan; ``narrow`` makes int32 of int64, as 8.6 does.

    The weights are what its engine takes of the device, 0 as a small one does.
    """
    header = {
        "version": version,
        "device": device,
        "activation": activation_bytes,
        "weights": weights_bytes,
        "narrow": narrow,
        "profiles": [{r.name: [r.min, r.opt, r.max] for r in p} for p in profiles or (Profile(()),)],
    }
    return MAGIC + json.dumps(header).encode() + b"\n" + model.SerializeToString()


def make_module(cuda):
    """A module ``tensorrt`` on a fake GPU; its ``behaviour`` can be set."""
    module = ModuleType("tensorrt")
    module.__spec__ = ModuleSpec("tensorrt", None)
    module.__version__, module.behaviour, module.cuda = VERSION, Behaviour(), cuda
    module.engines = module.contexts = 0

    class ILogger:
        Severity = IntEnum("Severity", "INTERNAL_ERROR ERROR WARNING INFO VERBOSE", start=0)

    class IOutputAllocator: ...

    class Runtime:
        def __init__(self, logger):
            assert cuda.calls["cuInit"], "a real Runtime ends the process where CUDA was not asked first"
            module.say = lambda words: logger.log(ILogger.Severity.ERROR, words)

        def deserialize_cuda_engine(self, data):
            assert type(data) is bytes
            if not data.startswith(MAGIC):
                return module.say("Magic tag does not match")
            try:
                header, _, model = data.removeprefix(MAGIC).partition(b"\n")
                header = json.loads(header)
                if header["version"] != VERSION:
                    return module.say("Version tag does not match")
                if header["device"] != "9.0":
                    return module.say("generated on an incompatible device, expecting compute 9.0")
                return Engine(module, header, onnx.ModelProto.FromString(model))
            except MemoryError:
                return module.say("out of memory for the weights")
            except Exception as exc:
                return module.say(f"the plan is cut short: {exc}")

    module.ILogger, module.IOutputAllocator, module.Runtime = ILogger, IOutputAllocator, Runtime
    module.DataType = IntEnum("DataType", [*CODES.values(), "BF16"])
    module.TensorIOMode = IntEnum("TensorIOMode", "NONE INPUT OUTPUT")
    module.TensorLocation = IntEnum("TensorLocation", "DEVICE HOST")
    return module


class Nothing(list):
    """A capture that keeps nothing and says nothing."""

    def append(self, operation): ...


class Engine:
    def __init__(self, module, header, model):
        self.module, self.header, self.model = module, header, model
        self.weights = 0
        module.engines += 1
        weights = {item.name for item in model.graph.initializer}
        self.inputs = {item.name: item for item in model.graph.input if item.name not in weights}
        self.outputs = {item.name: item for item in model.graph.output}
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 4
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        self.names = [*self.inputs, *self.outputs]
        self.num_io_tensors, self.num_optimization_profiles = len(self.names), len(header["profiles"])
        self.device_memory_size = header["activation"]
        if header.get("weights"):
            code, self.weights = module.cuda.runtime.cudaMalloc(header["weights"])
            if code:
                raise MemoryError

    def __del__(self):
        assert not self.module.cuda.sticky, "destroyed after an error that sticks"
        self.module.engines -= 1
        if self.weights:
            self.module.cuda.runtime.cudaFree(self.weights)
        self.module.cuda.ended.append("engine")

    def wire_dtype(self, name):
        elem_type = ({**self.inputs, **self.outputs})[name].type.tensor_type.elem_type
        return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(elem_type))

    def dtype(self, name):
        wire = self.wire_dtype(name)
        return np.dtype("int32") if wire == "int64" and self.header["narrow"] else wire

    def get_tensor_name(self, index):
        return self.names[index]

    def get_tensor_location(self, name):
        return self.module.TensorLocation.DEVICE

    def get_tensor_dtype(self, name):
        return self.module.DataType[CODES[self.dtype(name).name]]

    def get_tensor_mode(self, name):
        return self.module.TensorIOMode.INPUT if name in self.inputs else self.module.TensorIOMode.OUTPUT

    def get_tensor_shape(self, name):
        return self.shape(({**self.inputs, **self.outputs})[name])

    def get_tensor_profile_shape(self, name, index):
        return self.header["profiles"][index][name]

    def create_execution_context_without_device_memory(self):
        return self.create_execution_context(False)

    def create_execution_context(self, own=True):
        if self.module.behaviour.refuse_contexts:
            self.module.behaviour.refuse_contexts -= 1
            return self.module.say("out of memory for a context")
        return Context(self, own)

    @staticmethod
    def shape(info):
        dims = info.type.tensor_type.shape.dim
        return tuple(dim.dim_value if dim.HasField("dim_value") else -1 for dim in dims)


class Context:
    def __init__(self, engine, own):
        self.engine, self.module, self.cuda = engine, engine.module, engine.module.cuda
        self.module.contexts += 1
        self.active_optimization_profile, self.shapes, self.addresses = 0, {}, {}
        self.allocators, self.told = {}, {}
        size = engine.device_memory_size
        # Set by what TensorRT works on in the first run after it, in ways that a capture forbids.
        self.unsettled = True
        self.own = self.device_memory = self.cuda.runtime.cudaMalloc(size)[1] if own else 0

    def __del__(self):
        assert not self.cuda.sticky, "destroyed after an error that sticks"
        self.module.contexts -= 1
        self.cuda.ended.append("context")
        if self.own:
            self.cuda.runtime.cudaFree(self.own)

    def set_optimization_profile_async(self, index, stream):
        self.active_optimization_profile, self.shapes = index, {}
        return True

    def set_input_shape(self, name, shape):
        declared = self.engine.get_tensor_shape(name)
        low, _, high = self.engine.header["profiles"][self.active_optimization_profile].get(
            name, [declared] * 3
        )
        if len(shape) != len(low) or not all(a <= b <= c for a, b, c in zip(low, shape, high, strict=True)):
            self.module.say(f"Static dimension mismatch or out of profile: {name} {shape}")
            return False
        self.unsettled |= self.shapes.get(name) != shape
        self.shapes[name] = shape
        inferred = (
            infer(self.engine.model, self.shapes) if set(self.shapes) == set(self.engine.inputs) else None
        )
        self.inferred = {} if inferred is None else {o.name: Engine.shape(o) for o in inferred.graph.output}
        return True

    def infer_shapes(self):
        return [name for name in self.engine.inputs if name not in self.shapes]

    def get_tensor_shape(self, name):
        return self.shapes.get(name) or self.told.get(name) or self.inferred[name]

    def get_max_output_size(self, name):
        return 1 << 16

    def set_tensor_address(self, name, address):
        self.addresses[name] = address
        return address % 256 == 0

    def set_output_allocator(self, name, allocator):
        self.allocators[name] = allocator
        return True

    def execute_async_v3(self, number):
        behaviour, stream = self.module.behaviour, self.cuda.streams[number]
        capturing = stream.captured is not None
        for which in ("refuse_runs", *(["refuse_captured_runs"] if capturing else [])):
            if getattr(behaviour, which):
                setattr(behaviour, which, getattr(behaviour, which) - 1)
                self.module.say("Error Code 1: the fake refuses to run")
                return False
        if capturing and self.unsettled:
            stream.broken = True
            self.module.say("createCaskHardwareInfo: operation not permitted when stream is capturing")
            return False
        self.unsettled = False
        if capturing and behaviour.empty_captures:
            behaviour.empty_captures -= 1
            stream.captured = Nothing()
            return True
        if capturing and behaviour.break_captures:
            behaviour.break_captures -= 1
            stream.broken = True
        if self.allocators:
            stream.drain()
            try:
                self._run(dict(self.shapes), dict(self.addresses), self.device_memory)
            except MemoryError:
                self.module.say("an output allocator gave no memory")
                return False
        else:
            shapes, addresses, arena = dict(self.shapes), dict(self.addresses), self.device_memory
            stream.put(lambda: self._run(shapes, addresses, arena))
        return True

    def _run(self, shapes, addresses, arena):
        engine = self.engine
        self._scribble(arena)
        feeds = {}
        for name, shape in shapes.items():
            dtype = engine.dtype(name)
            size = int(np.prod(shape)) * dtype.itemsize
            data = np.frombuffer(self.cuda.view(addresses[name], size), dtype).reshape(shape)
            feeds[name] = data.astype(engine.wire_dtype(name))
        results = engine.session.run(list(engine.outputs), feeds)
        for name, result in zip(engine.outputs, results, strict=True):
            data = np.ascontiguousarray(result, engine.dtype(name))
            address = addresses.get(name, 0)
            if name in self.allocators:
                address = self.allocators[name].reallocate_output(name, address, data.nbytes, 256)
                self.allocators[name].notify_shape(name, data.shape)
                self.told[name] = data.shape
                if not address:
                    raise MemoryError
            if data.nbytes:
                self.cuda.view(address, data.nbytes)[:] = data.tobytes()
        if self.module.behaviour.sticky_after_run:
            self.cuda.sticky = self.module.behaviour.sticky_after_run
        # Whoever else ran on this memory meanwhile has overwritten it.
        if bytes(self.cuda.view(arena, 8)) != id(self).to_bytes(8, "little"):
            self.cuda.sticky = 719

    def _scribble(self, arena):
        self.cuda.view(arena, self.engine.device_memory_size)[:8] = list(id(self).to_bytes(8, "little"))

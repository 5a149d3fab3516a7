"""TensorRT's builder: it parses ONNX, and a plan is the model with its profiles."""

from __future__ import annotations

from enum import IntEnum
from types import SimpleNamespace

import onnx

from fakes.tensorrt import make_plan
from tensorq_engines.base.profile import InputRange, Profile


class TimingCache:
    def __init__(self, data):
        self.data = data

    def combine(self, other, ignore_mismatch):
        return True

    def serialize(self):
        return self.data or b"timings"


class Config(SimpleNamespace):
    """Attributes that are set are kept, as TensorRT does."""

    def __init__(self):
        super().__init__(flags=set(), profiles=[], features={}, cache=None)

    def set_flag(self, flag):
        self.flags.add(flag)

    def clear_flag(self, flag):
        self.flags.discard(flag)

    def set_preview_feature(self, feature, on):
        self.features[feature] = on

    def set_memory_pool_limit(self, pool, size): ...

    def add_optimization_profile(self, shapes):
        self.profiles.append(Profile(tuple(shapes.ranges)))
        return len(self.profiles) - 1

    def create_timing_cache(self, data):
        return TimingCache(data)

    def set_timing_cache(self, cache, ignore_mismatch):
        self.cache = cache
        return True

    def get_timing_cache(self):
        return self.cache


class Shapes:
    def __init__(self):
        self.ranges = []

    def set_shape(self, name, low, opt, high):
        self.ranges.append(InputRange(name, low, opt, high))


class Network:
    model = None

    @property
    def num_inputs(self):
        return len(self.model.graph.input)

    def get_input(self, index):
        return SimpleNamespace(name=self.model.graph.input[index].name, is_shape_tensor=False)


class Parser:
    """Takes what onnx's checker takes."""

    def __init__(self, network, logger):
        self.network, self.errors = network, []

    def parse_from_file(self, path):
        try:
            model = onnx.load(path)
            onnx.checker.check_model(model, full_check=True)
        except Exception as exc:
            self.errors = [exc]
            return False
        self.network.model = model
        return True

    @property
    def num_errors(self):
        return len(self.errors)

    def get_error(self, index):
        text = str(self.errors[index])
        return SimpleNamespace(
            node=lambda: -1,
            desc=lambda: text,
            code=lambda: 1,
            func=lambda: "",
            line=lambda: 0,
            file=lambda: "",
        )


def add_builder(module):
    """Gives the module what building needs; ``builds`` counts the plans made."""
    module.builds = 0

    class Builder:
        def __init__(self, logger): ...

        def create_network(self, flags):
            return Network()

        def create_builder_config(self):
            return Config()

        def create_optimization_profile(self):
            return Shapes()

        def build_serialized_network(self, network, config):
            module.builds += 1
            module.last_config = config
            return make_plan(network.model, config.profiles)

    module.Builder, module.OnnxParser = Builder, Parser
    module.BuilderFlag = IntEnum("BuilderFlag", "FP16 INT8 TF32")
    module.NetworkDefinitionCreationFlag = IntEnum("NetworkDefinitionCreationFlag", "EXPLICIT_BATCH", start=0)
    module.MemoryPoolType = IntEnum("MemoryPoolType", "WORKSPACE")
    module.ProfilingVerbosity = IntEnum("ProfilingVerbosity", "DETAILED")
    module.PreviewFeature = IntEnum("PreviewFeature", "PROFILE_SHARING_0806")
    module.plugins = []
    module.init_libnvinfer_plugins = lambda logger, namespace: module.plugins.append("own")
    registry = SimpleNamespace(load_library=lambda path: module.plugins.append(path) or path)
    module.get_plugin_registry = lambda: registry

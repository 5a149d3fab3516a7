"""What a builder of 8.6 or 10 is told, by a fake that takes notes: TensorRT-RTX has no such flags."""

from contextlib import contextmanager
from dataclasses import replace
from enum import IntEnum
from types import SimpleNamespace

import pytest

from tensorq_engines import BuildFailed
from tensorq_engines.tensorrt.builder.config import configure
from tensorq_engines.tensorrt.builder.network import _flags
from tensorq_engines.tensorrt.builder.recipe import BuildOptions

from .test_recipe import RECIPE


class Config:
    def __init__(self, accepted=True):
        self.told = []
        self.accepted = accepted

    def __getattr__(self, name):
        return lambda *args: self.told.append((name, *args))

    def add_optimization_profile(self, shapes):
        self.told.append(("profile", *shapes))
        return 0 if self.accepted else -1


class Shapes(list):
    def set_shape(self, *args):
        self.append(args)


class Log:
    @contextmanager
    def listen(self):
        yield "TensorRT's words"


BuilderFlag = IntEnum("BuilderFlag", ["FP16", "INT8", "TF32"])
PreviewFeature = IntEnum("PreviewFeature", ["PROFILE_SHARING_0806"])
OLD = SimpleNamespace(
    BuilderFlag=BuilderFlag,
    PreviewFeature=PreviewFeature,
    MemoryPoolType=SimpleNamespace(WORKSPACE="workspace"),
    NetworkDefinitionCreationFlag=SimpleNamespace(EXPLICIT_BATCH=0),
)


def told(recipe, accepted=True):
    config = Config(accepted)
    builder = SimpleNamespace(create_builder_config=lambda: config, create_optimization_profile=Shapes)
    configure(SimpleNamespace(module=OLD, log=Log()), builder, recipe, "m")
    return config.told


def test_flags_options_and_profiles_reach_the_builder():
    options = BuildOptions(workspace_mib=64, tf32=False)
    found = told(replace(RECIPE, flags=("FP16", "INT8"), options=options))
    assert found == [
        ("set_flag", BuilderFlag.FP16),
        ("set_flag", BuilderFlag.INT8),
        ("clear_flag", BuilderFlag.TF32),
        ("set_memory_pool_limit", "workspace", 64 << 20),
        ("set_preview_feature", PreviewFeature.PROFILE_SHARING_0806, True),
        ("profile", ("x", (1, 4), (8, 4), (32, 4))),
    ]


def test_a_profile_that_is_not_taken_is_refused_in_tensorrts_words():
    with pytest.raises(
        BuildFailed, match=r"'m': TensorRT refuses the profile x \[1\.\.32, 4\]: TensorRT's words"
    ):
        told(RECIPE, accepted=False)


def test_the_batch_is_explicit_where_that_is_a_choice():
    assert _flags(OLD) == 1
    assert _flags(SimpleNamespace(NetworkDefinitionCreationFlag=SimpleNamespace())) == 0

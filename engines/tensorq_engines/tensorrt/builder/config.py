"""Config: what TensorRT's builder is told."""

from __future__ import annotations

from typing import Any

from tensorq_engines.base.errors import BuildFailed
from tensorq_engines.base.profile import Profile
from tensorq_engines.tensorrt.builder.recipe import Recipe
from tensorq_engines.tensorrt.flavour import Flavour

MIB = 1 << 20


def configure(flavour: Flavour, builder: Any, recipe: Recipe, name: str) -> Any:
    """Returns the ``IBuilderConfig`` of a recipe, without its timing cache and progress monitor.

    Args:
        flavour: the TensorRT at hand.
        builder: its ``Builder``.
        recipe: what to build.
        name: the model's name, for messages.

    Raises:
        BuildFailed: TensorRT refuses a profile.
    """
    trt, options = flavour.module, recipe.options
    config = builder.create_builder_config()
    for flag in recipe.flags:
        config.set_flag(getattr(trt.BuilderFlag, flag))
    if not options.tf32:
        config.clear_flag(trt.BuilderFlag.TF32)
    if options.optimization_level is not None:
        config.builder_optimization_level = options.optimization_level
    if options.workspace_mib is not None:
        config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, options.workspace_mib * MIB)
    if options.detailed_layers:
        config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    # One context per profile needs it: 8.6 lets one context at a time use a profile without; later always on.
    sharing = getattr(getattr(trt, "PreviewFeature", None), "PROFILE_SHARING_0806", None)
    if sharing is not None:
        config.set_preview_feature(sharing, True)
    for profile in recipe.profiles:
        _add_profile(flavour, builder, config, profile, name)
    return config


def _add_profile(flavour: Flavour, builder: Any, config: Any, profile: Profile, name: str) -> None:
    if not profile.ranges:
        return
    with flavour.log.listen() as heard:
        shapes = builder.create_optimization_profile()
        for item in profile:
            shapes.set_shape(item.name, item.min, item.opt, item.max)
        index = config.add_optimization_profile(shapes)
    if index < 0:
        raise BuildFailed(
            f"model {name!r}: TensorRT refuses the profile {profile}: {heard}; "
            "correct [[profile]] in model.toml"
        )

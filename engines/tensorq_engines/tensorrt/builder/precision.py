"""How a precision is made with the TensorRT at hand. Pure."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Literal

from tensorq_engines.base.errors import BuildFailed

Precision = Literal["fp32", "fp16", "bf16", "int8"]


@dataclass(frozen=True, slots=True)
class PrecisionMeans:
    """What is done for a precision.

    Attributes:
        flags: names of builder flags to set.
        converter: what the graph is converted to; None leaves its types.
        calibrated: whether the graph comes from `tensorq calibrate`.
    """

    flags: tuple[str, ...] = ()
    converter: Literal["float16", "bfloat16"] | None = None
    calibrated: bool = False


def choose_means(model: str, precision: Precision, builder_flags: Set[str], version: str) -> PrecisionMeans:
    """Returns how to build ``model`` in ``precision``.

    Args:
        model: its name, for messages.
        precision: what model.toml asks for.
        builder_flags: names of the flags that this TensorRT's ``BuilderFlag`` has; one without ``FP16``
            takes types from the graph alone.
        version: TensorRT's, for messages.

    Raises:
        BuildFailed: this TensorRT does not have the precision.
    """
    typed = "FP16" not in builder_flags
    if precision == "fp32":
        return PrecisionMeans()
    if precision == "fp16":
        return PrecisionMeans(converter="float16") if typed else PrecisionMeans(("FP16",))
    if precision == "int8":
        # Where types are the builder's, what is not quantized may be float16: as fast as it gets.
        return PrecisionMeans((() if typed else ("INT8", "FP16")), calibrated=True)
    if typed:
        return PrecisionMeans(converter="bfloat16")
    if "BF16" in builder_flags:
        return PrecisionMeans(("BF16",))
    raise BuildFailed(
        f"model {model!r}: model.toml asks for precision 'bf16', and TensorRT {version} has none before 10; "
        "write 'fp16' or 'fp32', or install a newer TensorRT"
    )

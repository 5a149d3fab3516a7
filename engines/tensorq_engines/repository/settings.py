"""Settings: what a model.toml may say."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, model_validator

from tensorq_engines.base.buckets import Buckets, Crop, Fills
from tensorq_engines.base.profile import InputRange, Profile
from tensorq_engines.base.wire import Wire

Length = Annotated[int, Field(strict=True, ge=1)]
Lengths = Annotated[tuple[Length, ...], Field(strict=False, min_length=1)]


def _sizes(value: Any) -> Any:
    if value in ("ladder", "none"):
        return value
    if isinstance(value, list) and value and all(type(size) is int and size >= 1 for size in value):
        return tuple(sorted(set(value)))
    raise ValueError("not a choice of sizes")


def _batch_axis(value: Any) -> Any:
    # Neither false nor 0.0 is 0 here, though Python holds them equal.
    if (type(value) is int and value == 0) or value == "none":
        return value
    raise ValueError("not a batch axis")


def _numbers(value: Any) -> Any:
    values = value if isinstance(value, list) else [value]
    try:
        if values and all(type(item) in (int, float) and math.isfinite(item) for item in values):
            return tuple(map(float, values))
    except OverflowError as exc:
        raise ValueError("not a number of 64 bits") from exc
    raise ValueError("not numbers")


def _ascending(lengths: tuple[int, ...]) -> tuple[int, ...]:
    if list(lengths) != sorted(set(lengths)):
        raise ValueError("not ascending")
    return lengths


def _fill(value: Any) -> Any:
    values = value.values() if isinstance(value, dict) else [value]
    # Only a number of 64 bits can be compared with every dtype.
    if all(type(item) is float or (type(item) in (bool, int) and abs(item) < 2**64) for item in values):
        return value
    raise ValueError("not a fill")


class Section(BaseModel):
    """A table of model.toml: strict types, no unknown keys. Descriptions say what a key takes."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class RangeSettings(Section):
    """The shapes of one input in a profile, the batch axis included."""

    min: Lengths = Field(description="a list of lengths >= 1, one an axis")
    opt: Lengths = Field(description="a list of lengths >= 1, one an axis")
    max: Lengths = Field(description="a list of lengths >= 1, one an axis")


Numbers = Annotated[tuple[float, ...], PlainValidator(_numbers)]


class InputSettings(Section):
    """How one input travels; the model computes on ``(sent - mean) * scale``."""

    wire: Literal["uint8"] = Field(description="'uint8'")
    scale: Numbers = Field(default=(1.0,), description="a number, or a list of one a channel")
    mean: Numbers = Field(default=(0.0,), description="a number from 0 to 255, or a list of one a channel")
    axis: int = Field(default=1, ge=0, description="the axis of the channels, 0 or more")


class CropSettings(Section):
    """How much of an output is kept for a row that was padded."""

    axis: int = Field(ge=0, description="an axis of the output, the batch axis counted")
    scale: float = Field(
        default=1.0, gt=0, allow_inf_nan=False, description="a number above 0: places for one of the row"
    )
    offset: float = Field(default=0.0, allow_inf_nan=False, description="a number: places added to that")
    round: Literal["ceil", "floor"] = Field(default="ceil", description="'ceil' or 'floor'")


class BucketSettings(Section):
    """The lengths that a free axis is padded up to; ``AXIS = [...]`` stands for ``lengths`` alone."""

    lengths: Annotated[Lengths, AfterValidator(_ascending)] = Field(
        description="a list of lengths >= 1, ascending"
    )
    fill: Annotated[Fills, PlainValidator(_fill)] = Field(
        default=0, description="a number, or a table of INPUT = NUMBER"
    )
    crop: dict[str, CropSettings] = Field(
        default={}, description="a table of OUTPUT = { axis = ..., scale = ... }"
    )

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, value: Any) -> Any:
        return {"lengths": value} if isinstance(value, list) else value


class TensorRTSettings(Section):
    """How TensorRT builds the model's plan; no other engine reads it."""

    profiles: Literal["one", "ladder"] = Field(
        default="one", description="'one' or 'ladder': one profile, or one for each size of the ladder"
    )
    optimization_level: int | None = Field(default=None, ge=0, le=5, description="a whole number, 0 to 5")
    workspace_mib: int | None = Field(default=None, ge=1, description="a whole number of MiB >= 1")
    tf32: bool = Field(default=True, description="true or false")
    detailed_layers: bool = Field(default=False, description="true or false")
    plugins: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(strict=False)] = Field(
        default=(), description="a list of names of plugin libraries in the model's folder"
    )


class BatchingSettings(Section):
    """How long rows wait for company."""

    max_delay_ms: float = Field(
        default=5.0, ge=0, allow_inf_nan=False, description="a number of milliseconds, 0 or more"
    )


class ResidencySettings(Section):
    """When the model is in memory; ``load`` None leaves it to the worker."""

    load: Literal["eager", "lazy", "lru"] | None = Field(default=None, description="'eager', 'lazy' or 'lru'")
    pin: bool = Field(default=False, description="true or false")


class GraphsSettings(Section):
    """Which batch sizes are captured as graphs; only TensorRT has them."""

    sizes: Annotated[Literal["ladder", "none"] | tuple[int, ...], PlainValidator(_sizes)] = Field(
        default="ladder", description="'ladder', 'none' or a list of batch sizes >= 1"
    )


class QueueSettings(Section):
    """Bounds of the model's queues; None leaves them to the worker."""

    max_jobs: int | None = Field(default=None, ge=1, description="a whole number of jobs >= 1")
    max_bytes: int | None = Field(default=None, ge=1, description="a whole number of bytes >= 1")


class OutputsSettings(Section):
    """What is asked of results."""

    finite: bool = Field(default=False, description="true or false")


class ModelSettings(Section):
    """All of a model.toml; every key has a default."""

    source: str | None = Field(
        default=None, min_length=1, description="the name of a .onnx or .plan file in the model's folder"
    )
    engine: Literal["auto", "tensorrt", "onnxruntime", "reference"] = Field(
        default="auto", description="'auto', 'tensorrt', 'onnxruntime' or 'reference'"
    )
    precision: Literal["fp32", "fp16", "bf16", "int8"] = Field(
        default="fp32", description="'fp32', 'fp16', 'bf16' or 'int8'"
    )
    batch_axis: Annotated[Literal[0, "none"] | None, PlainValidator(_batch_axis)] = Field(
        default=None, description="0, or 'none' for a model whose first axis does not count rows"
    )
    profile: Annotated[
        tuple[Annotated[dict[str, RangeSettings], Field(min_length=1)], ...], Field(strict=False)
    ] = Field(
        default=(), description="[[profile]] tables of INPUT = { min = [...], opt = [...], max = [...] }"
    )
    inputs: dict[str, InputSettings] = Field(
        default={}, description="tables [inputs.INPUT] of wire, scale, mean and axis"
    )
    buckets: dict[str, BucketSettings] = Field(
        default={}, description="a table of AXIS = [lengths, ascending], or tables [buckets.AXIS]"
    )
    batching: BatchingSettings = Field(default=BatchingSettings(), description="a table [batching]")
    residency: ResidencySettings = Field(default=ResidencySettings(), description="a table [residency]")
    outputs: OutputsSettings = Field(default=OutputsSettings(), description="a table [outputs]")
    graphs: GraphsSettings = Field(default=GraphsSettings(), description="a table [graphs]")
    queue: QueueSettings = Field(default=QueueSettings(), description="a table [queue]")
    tensorrt: TensorRTSettings = Field(default=TensorRTSettings(), description="a table [tensorrt]")

    @property
    def wires(self) -> tuple[Wire, ...]:
        """The inputs that travel as another dtype than the model's."""
        return tuple(
            Wire(name, item.wire, item.scale, item.mean, item.axis) for name, item in self.inputs.items()
        )

    @property
    def bucketed(self) -> tuple[Buckets, ...]:
        """The axes that are padded."""
        return tuple(
            Buckets(
                axis,
                item.lengths,
                item.fill,
                tuple(Crop(output=name, **crop.model_dump()) for name, crop in item.crop.items()),
            )
            for axis, item in self.buckets.items()
        )

    @property
    def profiles(self) -> tuple[Profile, ...]:
        """The profiles as the engines take them."""
        return tuple(
            Profile(tuple(InputRange(name, item.min, item.opt, item.max) for name, item in table.items()))
            for table in self.profile
        )

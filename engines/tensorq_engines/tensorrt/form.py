"""Form: what all tiles of one model, one profile and one set of shapes have in common on one lane."""

from __future__ import annotations

from dataclasses import dataclass, field

from tensorq_engines.base.admission import Shapes
from tensorq_engines.tensorrt.context import Context
from tensorq_engines.tensorrt.layout import Layout
from tensorq_engines.tensorrt.views import TileViews


@dataclass(eq=False, slots=True)
class Form:
    """Tiles that run alike. Two forms are the same only if they are one object.

    Attributes:
        context: runs the tiles.
        shapes: of the inputs.
        inputs: where they lie, on the host and on the device.
        outputs: where those outputs lie whose shapes are known beforehand.
        dynamic: names of the other outputs.
        room: bytes of inputs and of outputs that are worth having when such tiles come: those of the
            largest tile of the same rows.
        hot: captured after the first run.
        runs: how often such a tile ran eagerly since the last graph of it was evicted.
        tried: whether replaying was measured against running eagerly.
        eager: why such tiles are never captured; None while they may be.
        views: made once for each slot, by its index.
    """

    context: Context
    shapes: Shapes
    inputs: Layout
    outputs: Layout
    dynamic: tuple[str, ...]
    room: tuple[int, int]
    hot: bool = False
    runs: int = 0
    tried: bool = False
    eager: str | None = None
    views: dict[int, TileViews] = field(default_factory=dict)

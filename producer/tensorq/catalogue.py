"""A client's view of the published models: what to check inputs against, remembered for a few seconds."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

import numpy as np
from redis import Redis

from tensorq import keys, models, wire
from tensorq.errors import InputError, UnknownModel, WireError
from tensorq.models import ModelInfo
from tensorq.names import model_queues
from tensorq.signature import Signature
from tensorq.submission import Limits

FRESH_S = 5.0
_KEPT_LAYOUTS = 1024

Tensors = Mapping[str, np.ndarray]
_Layout = tuple[tuple[str, np.dtype, tuple[int, ...]], ...]


@dataclass(slots=True)
class Admission:
    """What a model takes, and which layouts of inputs it has taken.

    Attributes:
        model: the model's name.
        signature: what inputs are checked against; None to take any on trust.
        limits: bounds that the model's workers published.
    """

    model: str
    signature: Signature | None
    limits: Limits
    # Layouts that passed, in the signature's order and without a cast, and their rows.
    _accepted: dict[_Layout, int] = field(default_factory=dict)

    def pack(self, many: Iterable[Tensors | np.ndarray], cast: bool) -> Iterator[tuple[int, bytes]]:
        """Checks and packs the inputs of jobs; yields each one's rows and payload.

        Raises:
            InputError: as `admit`, with the job's position where there are several.
            WireError: a limit of the wire format is exceeded.
        """
        alone = isinstance(many, list) and len(many) == 1
        for position, tensors in enumerate(many):
            try:
                admitted, rows = self.admit(tensors, cast)
                payload = wire.pack(admitted)
            except (InputError, WireError) as exc:
                raise exc if alone else type(exc)(f"tensors[{position}]: {exc}") from exc
            yield rows, payload

    def admit(self, tensors: Tensors | np.ndarray, cast: bool) -> tuple[Tensors, int]:
        """Checks inputs.

        Returns:
            The arrays to pack, and the job's rows.

        Raises:
            InputError: names the input, what came, what was expected and what to do.
        """
        if isinstance(tensors, np.ndarray):
            tensors = {self._only_input(): tensors}
        try:
            layout = tuple([(name, a.dtype, a.shape) for name, a in tensors.items()])
            rows = self._accepted.get(layout)
        except (AttributeError, TypeError):
            layout, rows = (), None
        if rows is not None:
            return tensors, rows
        if not isinstance(tensors, Mapping):
            raise InputError(f"got {type(tensors).__name__}, expected a dict of numpy arrays")
        if self.signature is None:
            return tensors, _rows_on_trust(tensors)
        accepted = self.signature.conform(tensors, cast=cast)
        rows = self.signature.rows(accepted)
        if list(accepted) == list(tensors) and all(accepted[name] is tensors[name] for name in accepted):
            if len(self._accepted) >= _KEPT_LAYOUTS:
                self._accepted.clear()
            self._accepted[layout] = rows
        return accepted, rows

    def _only_input(self) -> str:
        if self.signature is None:
            raise InputError(
                f"model {self.model!r} is not published by any worker, so the names of its inputs are not "
                "known: pass a dict, {'name': array}"
            )
        names = [spec.name for spec in self.signature.inputs]
        if len(names) != 1:
            raise InputError(
                f"got one array, but model {self.model!r} has inputs {', '.join(names)}: pass a dict"
            )
        return names[0]


class Catalogue:
    """The published models as one client sees them.

    Args:
        redis: a connection that does not decode responses.
        trust: never look; take any tensors for any model.
    """

    def __init__(self, redis: Redis, trust: bool) -> None:
        self._redis = redis
        self._trust = trust
        self._known: dict[str, tuple[float, ModelInfo | None, Admission]] = {}

    def admission(self, model: str) -> Admission:
        """What ``model``, a valid name, takes; read from Redis when older than `FRESH_S`.

        Raises:
            UnknownModel: other models are published, this one is not and never had a queue.
        """
        if self._trust:
            return Admission(model, None, Limits())
        now = time.monotonic()
        known = self._known.get(model)
        if known is not None and now < known[0]:
            return known[2]
        info = models.lookup(self._redis, model)
        if info is None:
            self._require_queue(model)
        if known is not None and known[1] == info:
            admission = known[2]  # with the layouts it remembers
        elif info is None:
            admission = Admission(model, None, Limits())
        else:
            admission = Admission(model, info.signature, info.limits)
        self._known[model] = (now + FRESH_S, info, admission)
        return admission

    def _require_queue(self, model: str) -> None:
        others = [info.name for info in models.published(self._redis)]
        if not others:
            return
        queues = [keys.queue(name) for name in model_queues(model)]
        if any(self._redis.smismember(keys.QUEUES, queues)):
            return
        close = get_close_matches(model, others, n=1)
        hint = f", did you mean {close[0]!r}?" if close else ";"
        shown = ", ".join(others[:20]) + (f" and {len(others) - 20} more" if len(others) > 20 else "")
        raise UnknownModel(f"no worker serves model {model!r}{hint} Published now: {shown}")


def _rows_on_trust(tensors: Tensors) -> int:
    first = next(iter(tensors.values()), None)
    if first is None:
        raise InputError("got no tensors: expected at least one named array")
    shape = getattr(first, "shape", ())
    return int(shape[0]) if shape and shape[0] else 1

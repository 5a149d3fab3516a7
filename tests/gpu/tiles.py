"""Tiles for the plans that are known."""

import hashlib

import numpy as np

PLANS = ("tiny", "cls", "rec", "det")
FREE = {"tiny": (), "cls": (), "rec": ((320,), (64,), (960,)), "det": ((736, 736), (320, 640))}


def shapes(engine, rows, free=()):
    """Shapes of a tile: ``rows``, and lengths for the other free axes, in order; default the first opt."""
    profile = engine.profiles[0]
    found = {}
    for item in profile:
        spec = next(spec for spec in engine.signature.inputs if spec.name == item.name)
        lengths, left = [rows], list(free)
        for axis, want in list(enumerate(spec.shape))[1:]:
            if isinstance(want, int):
                lengths.append(want)
            else:
                lengths.append(left.pop(0) if left else item.opt[axis])
        found[item.name] = tuple(lengths)
    return found


def largest_free(engine):
    """The greatest lengths of the free axes other than the batch's."""
    item = engine.profiles[0].ranges[0]
    spec = next(spec for spec in engine.signature.inputs if spec.name == item.name)
    return [item.max[axis] for axis, want in enumerate(spec.shape) if axis and isinstance(want, str)]


def tile(engine, rows, free=(), seed=0):
    """Random inputs in -1..1."""
    rng = np.random.default_rng(seed)
    return {
        name: rng.uniform(-1, 1, shape).astype(
            next(s.dtype for s in engine.signature.inputs if s.name == name)
        )
        for name, shape in shapes(engine, rows, free).items()
    }


def fill(lane, engine, inputs):
    """A filled slot."""
    slot = lane.acquire(engine, {name: array.shape for name, array in inputs.items()})
    assert slot is not None
    for name, array in inputs.items():
        slot.inputs[name][...] = array
    return slot


def digest(outputs):
    """A hash over all outputs, bit by bit."""
    total = hashlib.sha256()
    for name in sorted(outputs):
        total.update(np.ascontiguousarray(outputs[name]).tobytes())
    return total.hexdigest()


def same(one, other):
    """Whether all outputs are equal, bit by bit; zeros of either sign and NaNs included."""
    return one.keys() == other.keys() and all(
        one[name].shape == other[name].shape and np.array_equal(_bits(one[name]), _bits(other[name]))
        for name in one
    )


def _bits(array):
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def cases(engine, free):
    """Rows of the ladder with each choice of free lengths."""
    return [(rows, lengths) for lengths in (free or ((),)) for rows in engine.ladder]

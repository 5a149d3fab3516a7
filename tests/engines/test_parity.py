"""ONNX Runtime against the numpy reference on random tiles."""

import numpy as np
import pytest

from models import catalogue
from tensorq_engines import create_lane

from .conftest import HOST_KINDS, engine_of


def random_tile(signature, rng, rows):
    tile = {}
    for spec in signature.inputs:
        shape = [axis if isinstance(axis, int) else 5 for axis in spec.shape]
        if signature.batch_axis == 0 and signature.fixed_rows is None:
            shape[0] = rows
        dtype = np.dtype(spec.dtype)
        values = rng.standard_normal(shape) * 3 if dtype.kind == "f" else rng.integers(0, 5, shape)
        tile[spec.name] = values.astype(dtype)
    return tile


@pytest.mark.parametrize("name", catalogue.ALL)
def test_engines_agree(tmp_path, name):
    rng = np.random.default_rng(3)
    model = catalogue.ALL[name]()
    engines = [engine_of(kind, tmp_path, model) for kind in HOST_KINDS]
    assert len({(engine.signature, engine.ladder, engine.footprint) for engine in engines}) == 1
    tiles = [random_tile(engines[0].signature, rng, rows) for rows in (1, 2, 8)]
    results = []
    for engine in engines:
        with engine, create_lane(engine.kind) as lane:
            results.append([lane.run(engine, tile) for tile in tiles])
    for expected, got in zip(*results, strict=True):
        for output, array in expected.items():
            assert (got[output].dtype, got[output].shape) == (array.dtype, array.shape)
            np.testing.assert_allclose(got[output], array, rtol=1e-5, atol=1e-5)

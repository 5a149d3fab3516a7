"""Calibration data: .npz files of rows as jobs send them."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from tensorq.errors import InputError
from tensorq.signature import Signature
from tensorq_engines.base.errors import BuildFailed
from tensorq_engines.base.wire import Wire

TILE_ROWS = 32


class CalibrationData:
    """The rows of some .npz files, one array an input, in tiles that a model takes.

    It is a ``CalibrationDataReader`` in all but its base class, which would load ONNX Runtime.

    Attributes:
        rows: rows given so far.
    """

    def __init__(
        self,
        files: Sequence[Path],
        signature: Signature,
        wires: Sequence[Wire],
        tile_rows: int = TILE_ROWS,
    ) -> None:
        """Keeps what it is told and reads nothing.

        Args:
            files: the files, read one at a time.
            signature: the model's, as jobs see it.
            wires: inputs to normalise, because the model that is calibrated does not.
            tile_rows: rows of a tile at most, where the model takes any number.
        """
        self.rows = 0
        self._signature = signature
        self._wires = {wire.name: wire for wire in wires}
        self._tile_rows = signature.fixed_rows or tile_rows
        self._tiles = self._read_all(files)

    def get_next(self) -> dict[str, np.ndarray] | None:
        """Returns the next tile as the model computes on it, or None after the last.

        Raises:
            BuildFailed: a file cannot be read, or its arrays are not the model's inputs.
        """
        return next(self._tiles, None)

    def __iter__(self) -> Iterator[dict[str, np.ndarray]]:
        return self._tiles

    def _read_all(self, files: Sequence[Path]) -> Iterator[dict[str, np.ndarray]]:
        for file in files:
            arrays = self._conform(file, _load(file))
            total = self._signature.rows(arrays)
            for tile in _tiles(arrays, total, self._signature, self._tile_rows):
                self.rows += self._signature.rows(tile)
                yield {name: self._normalise(name, array) for name, array in tile.items()}
        if not self.rows:
            need = self._signature.fixed_rows or 1
            raise BuildFailed(f"no rows in {', '.join(map(str, files))}; give a file with {need} or more")

    def _conform(self, file: Path, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        try:
            return self._signature.conform(arrays)
        except InputError as exc:
            raise BuildFailed(f"{file}: {exc}") from exc

    def _normalise(self, name: str, array: np.ndarray) -> np.ndarray:
        return self._wires[name].normalise(array) if name in self._wires else array


def _load(file: Path) -> dict[str, np.ndarray]:
    try:
        arrays = np.load(file, allow_pickle=False)
        if not isinstance(arrays, np.lib.npyio.NpzFile):
            raise ValueError("it is not an .npz archive")
        with arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as exc:
        raise BuildFailed(
            f"{file} is no calibration data: {exc}; write it with numpy.savez(FILE, INPUT=rows, ...)"
        ) from exc


def _tiles(
    arrays: Mapping[str, np.ndarray], total: int, signature: Signature, size: int
) -> Iterator[dict[str, np.ndarray]]:
    if signature.batch_axis is None:
        yield dict(arrays)
        return
    for start in range(0, total, size):
        tile = {name: array[start : start + size] for name, array in arrays.items()}
        if signature.fixed_rows is None or signature.rows(tile) == size:
            yield tile

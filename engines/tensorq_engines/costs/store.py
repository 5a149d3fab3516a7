"""Cost store: known costs in a small JSON file, in the folders where plans are kept."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tensorq_engines.costs.table import Costs, CostTable, RowShapes
from tensorq_engines.tensorrt.builder.cache import cache_folders, writable_folder
from tensorq_engines.tensorrt.builder.files import write_atomic

logger = logging.getLogger(__name__)

STORE_VERSION = 1

DAMAGE = (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError)
"""What reading a damaged file may raise."""


class CostStore:
    """Where one model's costs are kept, for one plan, runtime, device and driver.

    Attributes:
        model: the model's name.
        identity: `Engine.identity`; costs of another are not found.
    """

    def __init__(self, model: str, folder: Path, identity: str) -> None:
        """Reads and writes nothing.

        Args:
            model: the model's name, for messages.
            folder: the model's.
            identity: the engine's.
        """
        self.model = model
        self.identity = identity
        self._folders: Sequence[Path] = cache_folders(folder)
        self._name = f"costs-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.json"

    def load(self) -> CostTable:
        """Returns what is kept; an empty table where there is nothing, or nothing that can be used."""
        for folder in self._folders:
            path = folder / self._name
            try:
                data = json.loads(path.read_text(encoding="utf-8"))
                if data["version"] == STORE_VERSION and data["identity"] == self.identity:
                    return CostTable(_costs(data["costs_ms"]))
            except FileNotFoundError:
                continue
            except (OSError, *DAMAGE) as exc:
                logger.warning("%s cannot be used, costs are measured anew: %r", path, exc)
        return CostTable()

    def save(self, costs: Costs) -> None:
        """Writes the costs in one step.

        Raises:
            BuildFailed: there is no folder to write to.
            OSError: the file cannot be written.
        """
        entries = [
            {"row_shapes": row_shapes, "ms": {str(size): by_size[size] for size in sorted(by_size)}}
            for row_shapes, by_size in sorted(costs.items())
        ]
        data = {"version": STORE_VERSION, "identity": self.identity, "costs_ms": entries}
        path = writable_folder(self.model, self._folders) / self._name
        write_atomic(path, (json.dumps(data, indent=1) + "\n").encode())


def _costs(entries: list[dict[str, Any]]) -> Costs:
    return {
        _row_shapes(entry["row_shapes"]): {int(size): float(ms) for size, ms in entry["ms"].items()}
        for entry in entries
    }


def _row_shapes(shapes: list[list[int]]) -> RowShapes:
    return tuple(tuple(int(length) for length in shape) for shape in shapes)

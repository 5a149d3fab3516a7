from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fixtures.rig import Rig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Callable[..., Rig]]:
    """Makes loops over models, and closes them at the end."""
    made: list[Rig] = []

    def make(loop: dict | None = None, **models) -> Rig:
        made.append(Rig(tmp_path, models, **(loop or {})))
        return made[-1]

    yield make
    for one in made:
        one.close()

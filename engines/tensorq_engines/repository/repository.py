"""Repository: a folder with one folder a model."""

from __future__ import annotations

from pathlib import Path

from tensorq_engines.base.errors import RepositoryError
from tensorq_engines.base.problem import Problem, suggest
from tensorq_engines.repository.check import check_folder, check_name, is_model
from tensorq_engines.repository.entry import ModelEntry, read_entry


class Repository:
    """The models under a path. Nothing is kept in memory: each call reads the folders as they are.

    Attributes:
        path: the repository's folder.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the folders that hold a model, sorted, whether or not the model is in order.

        Raises:
            RepositoryError: the repository cannot be read.
        """
        return tuple(folder.name for folder in self._folders() if is_model(folder) and not check_name(folder))

    def get(self, name: str) -> ModelEntry:
        """Reads one model's settings; its model file is not opened.

        Raises:
            RepositoryError: there is no such model, or its settings or source are wrong.
        """
        names = self.names
        if name not in names:
            # Where there is no other, the name is as likely right as the folder is.
            remedy = suggest(name, names) if names else f"give the folder that holds {name}/model.onnx"
            problem = Problem(str(self.path), "", f"there is no model {name!r}", remedy)
            raise RepositoryError([problem])
        return read_entry(self.path / name)

    def check(self) -> list[Problem]:
        """Returns all that is wrong, over all models; an empty list if nothing is. Never raises for it."""
        try:
            folders = self._folders()
        except RepositoryError as exc:
            return exc.problems
        if not folders:
            message = "holds no models"
            remedy = "add a folder for each model, with its model.onnx and perhaps a model.toml"
            return [Problem(str(self.path), "", message, remedy)]
        return [problem for folder in folders for problem in check_folder(folder)]

    def _folders(self) -> list[Path]:
        try:
            return sorted(
                item
                for item in self.path.iterdir()
                if item.is_dir() and not item.name.startswith((".", "__"))
            )
        except OSError as exc:
            message = f"cannot be read: {exc.strerror or exc}"
            remedy = "give the path of a folder with one folder a model"
            raise RepositoryError([Problem(str(self.path), "", message, remedy)]) from exc

"""The demo's model repository: PP-OCR's models, as the wheel rapidocr-onnxruntime ships them."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

from ops.demo.failure import DemoFailure

DET, CLS, REC = "ocr-det", "ocr-cls", "ocr-rec"
FILES = {
    DET: "ch_PP-OCRv4_det_infer.onnx",
    CLS: "ch_ppocr_mobile_v2.0_cls_infer.onnx",
    REC: "ch_PP-OCRv4_rec_infer.onnx",
}
SETTINGS = Path(__file__).parent / "models"
PAGES = ("page.png", "text.png")


def make_repository(path: Path) -> Path:
    """Puts each model's file beside its settings under ``path``, and returns ``path``.

    A folder that is there is written again, and the plans that TensorRT built in it stay.
    """
    for name, file in FILES.items():
        shutil.copytree(SETTINGS / name, path / name, dirs_exist_ok=True)
        shutil.copyfile(packaged("rapidocr_onnxruntime", f"models/{file}"), path / name / "model.onnx")
    return path


def pages() -> list[Path]:
    """The scanned pages that scikit-image ships."""
    return [packaged("skimage", f"data/{name}") for name in PAGES]


def packaged(package: str, name: str) -> Path:
    """A file inside an installed package, which is not imported.

    Raises:
        DemoFailure: the package has no such file.
    """
    spec = importlib.util.find_spec(package)
    places = (spec.submodule_search_locations or []) if spec is not None else []
    for place in places:
        if (path := Path(place) / name).is_file():
            return path
    raise DemoFailure(f"the installed {package} has no file {name}: run `make setup` for the tested release")

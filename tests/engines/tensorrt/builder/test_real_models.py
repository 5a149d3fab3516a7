"""Models as they are published, built with TensorRT-RTX."""

import importlib.util
from pathlib import Path

import onnx
import pytest

from tensorq_engines.tensorrt.builder import find_or_build
from tensorq_engines.tensorrt.builder.build import find

OCR = {
    "det": ("ch_PP-OCRv4_det_infer", "x = {min=[1,3,320,320], opt=[2,3,736,736], max=[4,3,960,960]}"),
    "rec": ("ch_PP-OCRv4_rec_infer", "x = {min=[1,3,48,64], opt=[8,3,48,320], max=[32,3,48,960]}"),
    "cls": ("ch_ppocr_mobile_v2.0_cls_infer", "x = {min=[1,3,48,192], opt=[8,3,48,192], max=[32,3,48,192]}"),
}
WIRE = "[inputs.x]\nwire = 'uint8'\nscale = 0.00784\nmean = 127.5\n"
NUDE = "images = {min=[1,3,320,320], opt=[8,3,320,320], max=[32,3,320,320]}"


def wheel_file(package, *parts):
    """A file inside an installed wheel, which is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        pytest.skip(f"{package} is not installed")
    return onnx.load(str(Path(spec.submodule_search_locations[0], *parts)))


def ocr(name):
    file, profile = OCR[name]
    return wheel_file("rapidocr_onnxruntime", "models", f"{file}.onnx"), f"[[profile]]\n{profile}\n"


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("name", OCR)
def test_ocr_models_build(write, flavour, name, precision):
    model, profile = ocr(name)
    entry = write(model, f"precision = '{precision}'\n{profile}{WIRE}", name=name)
    plan = find_or_build(entry, flavour, None)
    assert plan.sidecar.signature.inputs[0].dtype == "uint8"
    assert plan.sidecar.profiles == entry.profiles
    assert find(entry, flavour, None) == plan


def test_both_free_axes_of_cls_take_lengths_of_their_own(build):
    """PP-OCR's cls names height and width '?', which the parser takes for one length."""
    model, _ = ocr("cls")
    sidecar = build(model, "[[profile]]\nx = {min=[1,3,32,100], opt=[4,3,48,192], max=[8,3,64,320]}").sidecar
    assert sidecar.profiles[0].ranges[0].max == (8, 3, 64, 320)


def test_a_model_with_several_profiles_builds(build):
    model, profile = ocr("cls")
    assert len(build(model, f"tensorrt.profiles = 'ladder'\n{profile}").sidecar.profiles) == 3


@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16"])
def test_nudenet_builds(build, precision):
    model = wheel_file("nudenet", "320n.onnx")
    assert build(model, f"precision = '{precision}'\n[[profile]]\n{NUDE}").read()

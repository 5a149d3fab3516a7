"""Plans against ONNX Runtime on the CPU, on a scanned page's own inputs: those given, in FP16, and our own.

`page.npz` beside the ONNX files holds what rapidocr feeds the models with on scikit-image's page.png and
text.png; where that exceeds a plan's profile it is cut to it, for both alike.

No bound is set on the greatest difference: FP16 moves single steps of rec's softmax by up to 0.26 of its
range and single pixels of det's map by 0.13. What is decided from them must agree.
"""

import numpy as np
import pytest

from gpu.build_models import prepare
from gpu.parity import Reference, as_facts, compare
from tensorq_engines import Repository, create_engine

HALF_COSINE = 0.999
WIDEST = {"rec": 960, "det": 960, "cls": 192}
TEXT_THRESHOLD = 0.3  # rapidocr's own, above which a pixel is text
BLANK = 0


@pytest.fixture
def page(onnx_files):
    path = onnx_files / "page.npz"
    if not path.exists():
        pytest.skip(f"there is no {path}")
    return np.load(path)


def read(probabilities):
    """Each line's characters, as CTC collapses them: repetitions once, blanks left out."""
    lines = []
    for steps in probabilities.argmax(-1):
        kept = steps[np.append(True, steps[1:] != steps[:-1])]
        lines.append(kept[kept != BLANK].tolist())
    return lines


@pytest.mark.parametrize("image", [0, 1])
@pytest.mark.parametrize("name", ["rec", "cls", "det"])
def test_given_plans_decide_as_onnxruntime_does(open_model, onnx_files, lane, page, name, image, fact):
    engine = open_model(name)
    inputs = {"x": np.ascontiguousarray(page[f"{name}_{image}"][..., : WIDEST[name]])}
    got, want = lane.run(engine, inputs), Reference(onnx_files / f"{name}.onnx").run(inputs)
    found = compare(got, want)
    (mine,), (theirs,) = got.values(), want.values()
    fact(parity=as_facts(found), shape=list(inputs["x"].shape))
    for one in found.values():
        assert one.cosine >= HALF_COSINE
    if name == "det":
        alike = float(np.mean((mine > TEXT_THRESHOLD) == (theirs > TEXT_THRESHOLD)))
        fact(pixels_alike=alike)
        assert alike > 0.999
    elif name == "rec":
        fact(characters=sum(map(len, read(theirs))), same_text=read(mine) == read(theirs))
        assert read(mine) == read(theirs)
    else:
        assert (mine.argmax(-1) == theirs.argmax(-1)).all()


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("name", ["rec", "cls", "det", "nude"])
def test_built_models_agree_with_onnxruntime(request, build_folder, onnx_files, lane, name, precision, fact):
    """FP32 without TF32 to 1e-3 of the range; FP16 in direction, as above. Builds where there is no plan."""
    if not (onnx_files / f"{name}.onnx").exists():
        pytest.skip(f"there is no {name}.onnx")
    entry = Repository(build_folder).get(prepare(build_folder, name, precision, "one", files=onnx_files).name)
    if name == "nude":
        image = np.random.default_rng(1).uniform(0, 1, (2, 3, 320, 320)).astype(np.float32)
        tiles = [{"images": image}]
    else:
        page = request.getfixturevalue("page")
        tiles = [{"x": np.ascontiguousarray(page[f"{name}_{n}"][..., : WIDEST[name]])} for n in (0, 1)]
    reference = Reference(entry.source)
    with create_engine(entry) as engine:
        for number, inputs in enumerate(tiles):
            got, want = lane.run(engine, inputs), reference.run(inputs)
            found = compare(got, want)
            fact(**{f"parity_{number}": as_facts(found)})
            for one in found.values():
                assert one.cosine >= HALF_COSINE
                assert precision == "fp16" or one.error <= 1e-3

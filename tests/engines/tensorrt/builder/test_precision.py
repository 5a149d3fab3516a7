import pytest

from tensorq_engines import BuildFailed
from tensorq_engines.tensorrt.builder.precision import PrecisionMeans, choose_means

V8, V10, V11 = {"FP16", "INT8", "TF32"}, {"FP16", "BF16", "INT8", "TF32"}, {"TF32"}


@pytest.mark.parametrize(
    ("precision", "flags", "means"),
    [
        ("fp32", V8, PrecisionMeans()),
        ("fp32", V11, PrecisionMeans()),
        ("fp16", V8, PrecisionMeans(("FP16",))),
        ("fp16", V10, PrecisionMeans(("FP16",))),
        ("fp16", V11, PrecisionMeans(converter="float16")),
        ("bf16", V10, PrecisionMeans(("BF16",))),
        ("bf16", V11, PrecisionMeans(converter="bfloat16")),
        ("int8", V8, PrecisionMeans(("INT8", "FP16"), calibrated=True)),
        ("int8", V11, PrecisionMeans(calibrated=True)),
    ],
)
def test_each_precision_is_made_as_the_version_makes_it(precision, flags, means):
    assert choose_means("m", precision, flags, "x") == means


def test_bf16_is_refused_on_8_6():
    with pytest.raises(BuildFailed, match=r"'m': .*'bf16', and TensorRT 8\.6\.1 has none.*write 'fp16'"):
        choose_means("m", "bf16", V8, "8.6.1")

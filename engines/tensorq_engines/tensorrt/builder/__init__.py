"""Builder: from an ONNX file and its model.toml to a plan that is kept and found again.

`find_or_build` is all that the runtime needs; `find` looks without building. Importing this loads neither
TensorRT nor onnx.
"""

from tensorq_engines.tensorrt.builder.build import find, find_or_build

__all__ = ["find", "find_or_build"]

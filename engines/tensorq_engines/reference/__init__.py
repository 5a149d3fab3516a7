"""ONNX in plain numpy, slow and simple: what other engines are compared with."""

"""ONNX Runtime, on the CPU, and on CUDA where it is installed for it."""

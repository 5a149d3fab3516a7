"""What is changed in an ONNX graph before TensorRT parses it."""

"""What an ONNX file says of its model, read without its weights and without running it."""

"""TensorRT: plans, contexts and CUDA Graph replay. Importing this imports neither TensorRT nor CUDA."""

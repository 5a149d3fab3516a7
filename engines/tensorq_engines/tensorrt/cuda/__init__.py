"""CUDA through cuda-python, which is imported with the first call and nowhere else."""

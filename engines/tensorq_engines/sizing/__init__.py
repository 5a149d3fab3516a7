"""Sizing: the memory that models would need, before anything is built or loaded."""

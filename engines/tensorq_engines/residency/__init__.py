"""Residency: which models are loaded, under a budget of memory. All but `Residency` is pure."""

"""Calibration: an int8 graph made from data, for `precision = "int8"`."""

"""The contract of engines and lanes over plans, and over models that tensorq's builder built here."""

from contract.suite import *  # noqa: F403

"""The demo's own failure: its message is all that the user needs."""

from __future__ import annotations


class DemoFailure(Exception):
    """Something that the demo needs did not work; the message says what and what to do."""

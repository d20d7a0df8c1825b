"""What is decided of a variable at a node of a tree: nothing, that it is in the support, or that it is not."""

from __future__ import annotations

FREE, IN, OUT = 0, 1, -1

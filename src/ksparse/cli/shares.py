"""Numbers that may be written as percentages: 0.2 or 20%."""

from __future__ import annotations

import argparse
import math


def number(text: str) -> float:
    """Return a number, or a percentage as a share of 1; a ValueError where the text is neither."""
    text = text.strip()
    return float(text[:-1]) / 100.0 if text.endswith("%") else float(text)


def amount(text: str) -> float:
    """Return the value of an option that is a number or a percentage."""
    try:
        return number(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number such as 0.2 or 20%, got {text!r}") from None


def weight(text: str) -> float:
    """Return the value of an option that is a weight; one above 1 must be written as a percentage."""
    value = amount(text)
    if doubt := doubtful(text, value):
        raise argparse.ArgumentTypeError(doubt)
    return value


def doubtful(text: str, value: float) -> str:
    """Say how to write a weight above 1 that may be meant as a percentage; "" for any other."""
    if not 1.0 < value < math.inf or "%" in text:
        return ""
    return f"{text} is {100.0 * value:g} % of the portfolio: write {value:g}% or {100.0 * value:g}%, whichever is meant"

"""The y-step of the perspective relaxation as one compiled loop: what `Perspective` does by whole arrays, one node after the other.

Most of a tree's time is spent there, on arrays that are written once and read once. Only variables that are still free are looked at.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ksparse.linalg.states import FREE, IN


def nearest(
    v: Any, state: Any, sigma: Any, d: Any, half: Any, near: Any, up: Any, down: Any, steepest: Any,
    k: int, weight: float, flattest: float, settled: float, newton: int, y: Any, z: Any,
) -> None:  # fmt: skip
    """y, z and σ (in place) nearest to the rows of v, as in `Perspective._nearest`."""
    count, n = v.shape
    free, flat = np.empty(n, np.int64), np.empty(n)
    for b in range(count):
        many, inside, most = 0, 0, 0.0
        for i in range(n):
            inside += state[b, i] == IN
            far = up[b, i] if v[b, i] >= 0 else down[b, i]
            if state[b, i] == FREE and far > 0:
                free[many], flat[i] = i, 1.0 / far
                many += 1
                pulled = weight * abs(v[b, i])
                if flat[i] + d[i] > 0:  # else no ν lets it in
                    most = max(most, pulled * min(far, 0.5 * pulled / max(d[i], 1e-300)))
        room = k - inside
        least = 1.0 / math.sqrt(min(max(most, 1e-300), 1e200))
        top, low, high = flattest * least, least, math.inf
        s = min(max(sigma[b], least), top)
        for _ in range(newton):
            off, rise = float(room), 0.0
            for j in range(many):
                i = free[j]
                bent = s * half[i]
                tau = min(max(bent, flat[i]), steepest[i])
                paid = (tau / s) ** 2
                part = tau * abs(v[b, i]) - (0.5 * d[i] + paid) / weight
                if part >= 1.0:
                    off -= 1.0
                elif part > 0.0:
                    off -= part
                    rise += half[i] * abs(v[b, i]) if tau == bent else 2.0 * paid / (s * weight)
            if off > 0:
                low = s
            if off < 0:
                high = s
            if abs(off) <= settled * max(room, 1) or (off > 0 and s >= top):
                break
            new = s + off / rise if rise > 0 else high
            if not (rise > 0 and low < new < high):
                new = 4.0 * s if math.isinf(high) else 0.5 * (low + high)
            s = min(new, top)
        sigma[b] = s
        for i in range(n):
            size, above = abs(v[b, i]), v[b, i] >= 0
            far = up[b, i] if above else down[b, i]
            part, tau = 0.0, 1.0
            if state[b, i] == IN:
                part = 1.0
            elif state[b, i] == FREE and far > 0:
                tau = min(max(s * half[i], flat[i]), steepest[i])
                part = min(max(tau * size - (0.5 * d[i] + (tau / s) ** 2) / weight, 0.0), 1.0)
            whole = min(max(weight * size / (weight + d[i]), near[i]), max(far, near[i]))
            at = whole if part >= 1.0 else part / (tau if tau > 0 else 1.0)
            if far <= 0 and state[b, i] == IN:  # decided, and pulled to the side where it may not be
                at = near[i] if up[b, i] > 0 else -near[i]
            elif not above:
                at = -at
            y[b, i], z[b, i] = at, part

"""The y-step of the perspective relaxation as compiled loops, without and with limits per label.

Most of the time of branch and bound is spent here. Only free variables are visited. `Perspective._y_step` is the step
without limits on whole arrays, for single nodes of small problems.

Under limits, members are variables or groups of variables, sorted by label. The σ of a label is computed if it would
otherwise hold too many or too few members; the common σ follows, clipped for each member to the range that its label
allows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

FREE, IN, OUT = 0, 1, -1  # state of a variable in a node: free, fixed in the support, fixed at 0


def y_step(
    v: Any, state: Any, sigma: Any, d: Any, half: Any, near: Any, up: Any, down: Any, steepest: Any,
    k: int, weight: float, flattest: float, settled: float, newton: int, y: Any, z: Any,
) -> None:  # fmt: skip
    """Compute y, z and σ in place, as `Perspective._y_step` does."""
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
                if flat[i] + d[i] > 0:  # else z = 0 for every ν
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
            if abs(off) <= settled * max(room, 1) or (off > 0 and s >= top):
                break
            s, low, high = next_sigma(s, off, rise, low, high, top)
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
            if far <= 0 and state[b, i] == IN:  # v has the sign that is not allowed
                at = near[i] if up[b, i] > 0 else -near[i]
            elif not above:
                at = -at
            y[b, i], z[b, i] = at, part


def y_step_with_limits(
    v: Any, state: Any, sigma: Any, d: Any, half: Any, near: Any, up: Any, down: Any,
    variables: Any, starts: Any, order: Any, ends: Any, fewest: Any, fullest: Any,
    k: int, weight: float, flattest: float, settled: float, newton: int, inner: int, close: float, y: Any, z: Any,
) -> None:  # fmt: skip
    """Compute y, z and σ in place under limits per label; see the module for the order of the σ."""
    count, n = v.shape
    members, labels = order.size, fewest.size
    kind, share = np.empty(members, np.int64), np.empty(members)  # by position in `order`
    none, whole, of = np.empty(members), np.empty(members), np.empty(members, np.int64)  # h at 0 and at 1
    taken, open_, low, high = np.empty(labels), np.empty(labels), np.empty(labels), np.empty(labels)
    size, far, least = np.empty(n), np.empty(n), np.empty(n)
    for label in range(labels):
        of[ends[label] : ends[label + 1]] = label
    for b in range(count):
        for i in range(n):
            size[i] = abs(v[b, i])
            far[i] = up[b, i] if v[b, i] >= 0 else down[b, i]
            least[i] = near[i] if state[b, i] == FREE and far[i] > 0 else 0.0
            far[i] = max(far[i], least[i])
        for label in range(labels):
            taken[label], open_[label], low[label], high[label] = 0.0, 0.0, 0.0, math.inf
        for p in range(members):
            out, inside, usable = False, False, False
            none[p], whole[p] = 0.0, 0.0
            for j in range(starts[order[p]], starts[order[p] + 1]):
                i = variables[j]
                out = out or state[b, i] == OUT
                inside = inside or state[b, i] == IN
                if state[b, i] == FREE and far[i] > 0:
                    usable = True
                    for end in range(2):  # h at 0 and at 1
                        loose = weight * size[i] / (weight * end + d[i]) if size[i] > 0 else 0.0
                        s = min(max(loose, least[i]), far[i])
                        part = 0.5 * d[i] * s * s if d[i] > 0 else 0.0
                        if s != loose:
                            part = weight * s * (size[i] - s * end) - part
                        if end == 0:
                            none[p] += part
                        else:
                            whole[p] += part
            kind[p] = OUT if out else (IN if inside else (FREE if usable else OUT))
            taken[of[p]] += kind[p] == IN
            open_[of[p]] += kind[p] == FREE
            share[p] = 1.0 if kind[p] == IN else 0.0
        for turn in range(2 * labels + 1):  # the maximum of each label, the minimum of each, then all members
            if turn < 2 * labels:
                label = turn % labels
                first, last = ends[label], ends[label + 1]
                room = (fullest[label] if turn < labels else fewest[label]) - taken[label]
                if (turn < labels and open_[label] <= room) or (turn >= labels and room <= 0):
                    continue
            else:
                label, first, last = -1, 0, members
                room = float(k)
                for one in range(labels):
                    room -= taken[one]
            most = 0.0
            for p in range(first, last):
                if kind[p] == FREE:
                    most = max(most, none[p])
            bottom = 1.0 / math.sqrt(min(max(most, 1e-300), 1e200))
            top, under, over = flattest * bottom, bottom, math.inf
            kept = 0 if label < 0 else 1 + turn  # place of this σ in `sigma`
            sig = min(max(sigma[b, kept], bottom), top)
            for _ in range(newton):
                off, rise = room, 0.0
                for p in range(first, last):
                    if kind[p] != FREE:
                        continue
                    own = sig if label >= 0 else min(max(sig, low[of[p]]), high[of[p]])
                    nu = 1.0 / (own * own)
                    if none[p] <= nu:
                        share[p] = 0.0
                        continue
                    if whole[p] >= nu:
                        share[p] = 1.0
                        off -= 1.0
                        continue
                    if starts[order[p] + 1] - starts[order[p]] == 1:  # a single variable
                        i = variables[starts[order[p]]]
                        bent = own * half[i]
                        tau = min(max(bent, 1.0 / far[i]), 1.0 / least[i])
                        paid = nu * tau * tau
                        now = min(max(tau * size[i] - (0.5 * d[i] + paid) / weight, 0.0), 1.0)
                        share[p] = now
                        off -= now
                        if own == sig:
                            rise += half[i] * size[i] if tau == bent else 2.0 * paid / (own * weight)
                        continue
                    lower, upper, bend = 0.0, 1.0, 1.0
                    now = share[p] if 0.0 < share[p] < 1.0 else 0.5
                    for _inner in range(inner):
                        h, bend = 0.0, 0.0
                        for j in range(starts[order[p]], starts[order[p] + 1]):
                            i = variables[j]
                            if state[b, i] != FREE or far[i] <= 0:
                                continue
                            loose = weight * size[i] / (weight * now + d[i]) if size[i] > 0 else 0.0
                            s = min(max(loose, least[i]), far[i])
                            if s == loose:
                                h += 0.5 * d[i] * s * s
                                bend += weight * s * s * d[i] / (weight * now + d[i])
                            else:
                                h += weight * s * (size[i] - s * now) - 0.5 * d[i] * s * s
                                bend += weight * s * s
                        if h > nu:
                            lower = now
                        else:
                            upper = now
                        new = 0.5 * (lower + upper)
                        if bend > 0:
                            step = (own - 1.0 / math.sqrt(h)) * 2.0 * h * math.sqrt(h) if h > nu else h - nu
                            if lower < now + step / bend < upper:
                                new = now + step / bend
                        moved = abs(new - now)
                        now = new
                        if moved <= close:
                            break
                    share[p] = now
                    off -= now
                    if own == sig and bend > 0:
                        rise += 2.0 * nu / (own * bend)
                if abs(off) <= settled * max(room, 1.0) or (off > 0 and sig >= top):
                    break
                sig, under, over = next_sigma(sig, off, rise, under, over, top)
            sigma[b, kept] = sig
            if turn < labels:
                high[label] = sig
            elif label >= 0:
                low[label] = sig
        for p in range(members):
            for j in range(starts[order[p]], starts[order[p] + 1]):
                i = variables[j]
                part = 0.0 if state[b, i] == OUT else share[p]
                above = v[b, i] >= 0
                reach = up[b, i] if above else down[b, i]
                at = 0.0
                if state[b, i] == IN:
                    at = min(max(weight * size[i] / (weight + d[i]), near[i]), max(reach, near[i]))
                elif state[b, i] == FREE and reach > 0 and part > 0:
                    loose = weight * size[i] / (weight * part + d[i]) if size[i] > 0 else 0.0
                    at = part * min(max(loose, near[i]), max(reach, near[i]))
                if reach <= 0 and state[b, i] == IN:  # v has the sign that is not allowed
                    at = near[i] if up[b, i] > 0 else -near[i]
                elif not above:
                    at = -at
                y[b, i], z[b, i] = at, part


def next_sigma(s: float, off: float, rise: float, low: float, high: float, top: float) -> tuple[float, float, float]:
    """Return σ after a Newton step on Σz = room, and the bracket; `off` is what Σz lacks, `rise` its slope in σ."""
    if off > 0:
        low = s
    if off < 0:
        high = s
    new = s + off / rise if rise > 0 else high
    if not (rise > 0 and low < new < high):
        new = 4.0 * s if math.isinf(high) else 0.5 * (low + high)
    return min(new, top), low, high

"""The 97.5 % quantiles that two-sided intervals of 95 % are made with. Pure."""

from __future__ import annotations

import math
from statistics import NormalDist

Z = NormalDist().inv_cdf(0.975)
"""Of the normal distribution."""
_T = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""Of Student's t by degrees of freedom, from 1; as in every book of tables."""


def t_factor(degrees: float) -> float:
    """Of Student's t; degrees of freedom below 1 count as 1."""
    # What is whole but for its rounding is whole.
    whole = max(1, math.floor(degrees + 1e-9)) if math.isfinite(degrees) else 10**9
    if whole <= len(_T):
        return _T[whole - 1]
    # First term of the expansion in 1 / degrees (Fisher and Cornish 1960): exact to 0.003 here.
    return Z + (Z**3 + Z) / (4 * whole)

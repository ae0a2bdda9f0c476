"""Experiments: the queue, grids, matching values, the order of loads, the runner, results."""

"""Operators of `sgl_kernel.speculative` in torch."""
# mypy: ignore-errors

from __future__ import annotations

import torch


def reconstruct_indices_from_tree_mask(
    tree_mask,
    verified_seq_len,
    positions,
    retrieve_index,
    retrieve_next_token,
    retrieve_next_sibling,
    bs,
    n,
):
    """First child and next sibling of every node, from who is an ancestor of whom."""
    order = torch.arange(n)
    ancestors = tree_mask.view(bs, n, n).bool() & (order[None, :] < order[:, None])
    positions.view(bs, n).copy_(ancestors.sum(-1) + verified_seq_len[:, None])
    retrieve_index.copy_(torch.arange(bs * n).view(bs, n))
    children = [[-1] * n for _ in range(bs)]
    siblings = [[-1] * n for _ in range(bs)]
    for tree, above in enumerate(ancestors.tolist()):
        first_child = {}
        for node in reversed(range(n)):
            children[tree][node] = first_child.get(node, -1)
            parent = max((other for other in range(node) if above[node][other]), default=-1)
            if parent >= 0:
                siblings[tree][node] = first_child.get(parent, -1)
                first_child[parent] = node
    retrieve_next_token.copy_(torch.tensor(children))
    retrieve_next_sibling.copy_(torch.tensor(siblings))

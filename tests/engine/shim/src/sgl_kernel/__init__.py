"""Stand-in for SGLang's kernel package on a CPU without AMX, for tests only.

The operators that its plain CPU path and its speculative workers call, in torch. Any other name can
be imported, and raises only when it is called.
"""
# mypy: ignore-errors

from __future__ import annotations

import ctypes

import torch

__version__ = "0.0.0+cpushim"


def _spans(starts, ends):
    """(request, first position, end, offset in the flat tensor) of each request."""
    offset = 0
    for request, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        yield request, start, end, offset
        offset += end - start


def assign_req_to_token_pool_cpu(
    req_pool_indices, req_to_token, start_offset, end_offset, out_cache_loc, pool_len=None
):
    """Write where the tokens of each request lie into the pool's table."""
    rows = req_pool_indices.tolist()
    for n, start, end, offset in _spans(start_offset, end_offset):
        places = out_cache_loc[offset : offset + end - start]
        req_to_token[rows[n], start:end] = places.to(req_to_token.dtype)


def assign_extend_cache_locs_cpu(
    req_pool_indices, req_to_token, start_offset, end_offset, out_cache_loc, pool_len=None
):
    """Read where the tokens of each request lie from the pool's table."""
    rows = req_pool_indices.tolist()
    for n, start, end, offset in _spans(start_offset, end_offset):
        places = req_to_token[rows[n], start:end].to(out_cache_loc.dtype)
        out_cache_loc[offset : offset + end - start] = places


def copy_all_layer_kv_cache_cpu(data_ptrs, strides, tgt_loc, src_loc):
    """Move cache rows of all layers, by their addresses."""
    targets, sources = tgt_loc.tolist(), src_loc.tolist()
    signed = data_ptrs.view(torch.int64) if data_ptrs.dtype == torch.uint64 else data_ptrs
    for base, stride in zip(signed.tolist(), strides.tolist(), strict=True):
        rows = [ctypes.string_at(base + source * stride, stride) for source in sources]
        for target, row in zip(targets, rows, strict=True):
            ctypes.memmove(base + target * stride, row, stride)


def fill_accept_out_cache_loc_cpu(accept_index, out_cache_loc, accept_out_cache_loc):
    """Gather the cache places of accepted tokens."""
    flat = accept_index.flatten()
    found = out_cache_loc[flat[flat > -1].long()]
    accept_out_cache_loc[: found.numel()] = found


def fill_bonus_tokens_cpu(accept_tokens, accept_lens, bonus_tokens, accept_stride):
    """Take the last accepted token of each request."""
    count = accept_lens.numel()
    last = torch.arange(count) * accept_stride + accept_lens.long() - 1
    bonus_tokens[:count] = accept_tokens.flatten()[last].to(bonus_tokens.dtype)


def verify_tree_greedy_cpu(
    *,
    predicts,
    accept_index,
    accept_token_num,
    candidates,
    retrive_index,
    retrive_next_token,
    retrive_next_sibling,
    target_predict,
):
    """Walk each draft tree along the target's own choices."""
    width, depth = candidates.shape[1], accept_index.shape[1]
    children, siblings = retrive_next_token.tolist(), retrive_next_sibling.tolist()
    places, target = retrive_index.tolist(), target_predict.flatten().tolist()
    for n, drafted in enumerate(candidates.tolist()):
        assert len(drafted) == width
        last = places[n][0]
        accept_index[n, 0] = last
        node, accepted = 0, 0
        while accepted + 1 < depth:
            node = children[n][node]
            while node != -1 and drafted[node] != target[last]:
                node = siblings[n][node]
            if node == -1:
                break
            predicts[last] = target[last]
            accepted += 1
            last = places[n][node]
            accept_index[n, accepted] = last
        accept_token_num[n] = accepted
        predicts[last] = target[last]


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)

    def missing(*args, **others):
        raise NotImplementedError(f"sgl_kernel shim: {name} is not implemented")

    missing.__name__ = name
    return missing

"""Plugin of SGLang, for tests only: speculative decoding on a CPU without AMX.

It lets the torch_native attention backend run the batches of a verification, and opens DFLASH's
gate for devices to the CPU. Slow, and tied to the version that install.sh names.
"""
# mypy: ignore-errors

from __future__ import annotations

import torch
from torch.nn.functional import scaled_dot_product_attention


def register():
    """Called by SGLang (entry point `sglang.srt.plugins`)."""
    _verify_in_torch_native()
    _no_streams_on_cpu()
    _dflash_on_cpu()


def _verify_in_torch_native():
    from sglang.srt.layers.attention.torch_native_backend import TorchNativeAttnBackend
    from sglang.srt.mem_cache.memory_pool import KVWriteLoc

    plain = TorchNativeAttnBackend.forward_extend

    def forward_extend(self, q, k, v, layer, forward_batch, save_kv_cache=True, **others):
        if not forward_batch.forward_mode.is_target_verify():
            return plain(self, q, k, v, layer, forward_batch, save_kv_cache, **others)
        if save_kv_cache and k is not None:
            place = KVWriteLoc(forward_batch.out_cache_loc, None)
            self.token_to_kv_pool.set_kv_buffer(layer, place, k, v)
        return _verify(self, q, layer, forward_batch)

    TorchNativeAttnBackend.forward_extend = forward_extend


def _verify(backend, q, layer, batch):
    """Attention of the draft tokens to their prefix and, by the tree's mask, to each other."""
    drafted, requests = batch.spec_info.draft_token_num, batch.batch_size
    queries = q.view(requests, drafted, layer.tp_q_head_num, layer.qk_head_dim).transpose(1, 2)
    result = torch.empty_like(queries)
    keys = backend.token_to_kv_pool.get_key_buffer(layer.layer_id)
    values = backend.token_to_kv_pool.get_value_buffer(layer.layer_id)
    places = backend.req_to_token_pool.req_to_token
    among_drafts = _draft_mask(batch.spec_info.custom_mask, layer, requests, drafted)
    for n in range(requests):
        prefix = int(batch.seq_lens[n])
        where = places[batch.req_pool_indices[n], : prefix + drafted]
        to_prefix = torch.ones(drafted, prefix, dtype=torch.bool)
        result[n] = scaled_dot_product_attention(
            queries[n].unsqueeze(0),
            keys[where].transpose(0, 1).to(q.dtype).unsqueeze(0),
            values[where].transpose(0, 1).to(q.dtype).unsqueeze(0),
            attn_mask=torch.cat((to_prefix, among_drafts[n]), 1),
            enable_gqa=layer.tp_q_head_num != layer.tp_k_head_num,
            scale=layer.scaling,
        )[0]
    return result.transpose(1, 2).reshape(q.shape)


def _draft_mask(mask, layer, requests, drafted):
    from sglang.srt.layers.radix_attention import AttentionType

    if mask is None or mask.numel() != requests * drafted * drafted:
        everything = torch.ones(drafted, drafted)
        whole = layer.attn_type == AttentionType.ENCODER_ONLY
        mask = (everything if whole else everything.tril()).expand(requests, drafted, drafted)
    return mask.reshape(requests, drafted, drafted).bool()


def _no_streams_on_cpu():
    record = torch.Tensor.record_stream

    def record_stream(tensor, stream):
        return None if tensor.device.type == "cpu" else record(tensor, stream)

    torch.Tensor.record_stream = record_stream


def _dflash_on_cpu():
    import inspect

    from sglang.srt.arg_groups import choices
    from sglang.srt.arg_groups import speculative_hook as hook
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    def without_triton(original, self, *args, **others):
        original(self, *args, **others)
        self.use_table_qk_norm_rope = False

    HookRegistry.register(
        "sglang.srt.models.dflash.DFlashAttention.__init__", without_triton, HookType.AROUND
    )
    if "torch_native" not in choices.DRAFT_ATTENTION_BACKEND_CHOICES:
        choices.add_draft_attention_backend_choices(["torch_native"])
    source = inspect.getsource(hook._handle_dflash)
    gate = 'cfg.device.startswith("cuda") or cfg.device == "npu"'
    if gate not in source:
        return
    # The lines keep their numbers, so that a traceback shows the right ones.
    lines_before = "\n" * (hook._handle_dflash.__code__.co_firstlineno - 1)
    opened = source.replace(gate, f'cfg.device == "cpu" or {gate}')
    text = f"from __future__ import annotations{lines_before}{opened}"
    exec(compile(text, hook.__file__, "exec"), hook.__dict__)

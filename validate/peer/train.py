"""Trains the decoder of scenario.json with DeepSpeed on random tokens, and prints what it measures.

    python train.py                                                   one GPU, or the CPU
    python -m torch.distributed.run --nproc_per_node N train.py       N GPUs of a node

Written by `tidegate validate deepspeed`; `tidegate validate log` reads what it prints.
"""
import json
import os
from pathlib import Path

import deepspeed
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

HERE = Path(__file__).resolve().parent
SCENARIO = json.loads((HERE / "scenario.json").read_text())
SHAPE = SCENARIO["network"]
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class RmsNorm(nn.Module):
    """x / sqrt(mean(x^2) + eps) * weight, over the last dimension."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        scale = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)
        return (x * scale).to(x.dtype) * self.weight


def norm(width):
    if SHAPE["norm"] == "rms_norm":
        return RmsNorm(width)
    return nn.LayerNorm(width, bias=SHAPE["norm_bias"])


def rotate(x, angles):
    """Rotates the first 2 * angles.shape[-1] channels of each head: [batch, heads, tokens, width]."""
    half = angles.shape[-1]
    a, b, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    return torch.cat((a * cos - b * sin, b * cos + a * sin, rest), -1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        hidden, width = SHAPE["hidden"], SHAPE["head_dim"]
        self.heads, self.kv_heads, self.width = SHAPE["heads"], SHAPE["kv_heads"], width
        self.queries, self.keys = self.heads * width, self.kv_heads * width
        # Tensors are divided as in the scenario: the optimizer's sub-groups follow from them.
        parts = [self.queries, self.keys, self.keys]
        if SHAPE["fused_qkv"]:
            parts = [sum(parts)]
        elif SHAPE["fused_projections"]:
            parts = [self.queries, 2 * self.keys]
        bias = SHAPE["attention_bias"]
        self.inputs = nn.ModuleList(nn.Linear(hidden, p, bias=bias) for p in parts)
        self.output = nn.Linear(self.queries, hidden, bias=SHAPE["output_bias"])

    def split(self, x, count):
        return x.unflatten(-1, (count, self.width)).transpose(1, 2)

    def forward(self, x, angles):
        q, k, v = torch.cat([part(x) for part in self.inputs], -1).split(
            (self.queries, self.keys, self.keys), -1
        )
        q, k, v = self.split(q, self.heads), self.split(k, self.kv_heads), self.split(v, self.kv_heads)
        if angles is not None:
            q, k = rotate(q, angles), rotate(k, angles)
        if self.kv_heads != self.heads:
            shared = self.heads // self.kv_heads
            k, v = k.repeat_interleave(shared, 1), v.repeat_interleave(shared, 1)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.output(out.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        hidden, ffn, bias = SHAPE["hidden"], SHAPE["ffn"], SHAPE["ffn_bias"]
        self.is_gated = SHAPE["gated_ffn"]
        parts = [ffn, ffn] if self.is_gated else [ffn]
        if SHAPE["fused_projections"]:
            parts = [sum(parts)]
        self.inputs = nn.ModuleList(nn.Linear(hidden, p, bias=bias) for p in parts)
        self.output = nn.Linear(ffn, hidden, bias=bias)
        self.activation = {"gelu": F.gelu, "relu": F.relu, "silu": F.silu}[SHAPE["activation"]]

    def forward(self, x):
        outs = [part(x) for part in self.inputs]
        if not self.is_gated:
            return self.output(self.activation(outs[0]))
        gate, up = outs if len(outs) == 2 else outs[0].chunk(2, -1)
        return self.output(self.activation(gate) * up)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm, self.attention = norm(SHAPE["hidden"]), Attention()
        self.ffn_norm, self.ffn = norm(SHAPE["hidden"]), FeedForward()

    def forward(self, x, angles):
        x = x + self.attention(self.attention_norm(x), angles)
        return x + self.ffn(self.ffn_norm(x))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        hidden, vocabulary = SHAPE["hidden"], SHAPE["vocabulary"]
        self.embedding = nn.Embedding(vocabulary, hidden)
        self.positions = nn.Embedding(SHAPE["max_positions"], hidden) if SHAPE["max_positions"] else None
        self.blocks = nn.ModuleList(Block() for _ in range(SHAPE["layers"]))
        self.norm = norm(hidden) if SHAPE["final_norm"] else nn.Identity()
        self.head = None if SHAPE["tied"] else nn.Linear(hidden, vocabulary, bias=False)

    def angles(self, length, device):
        """[tokens, rotated channels / 2]"""
        if SHAPE["positions"] != "rotary":
            return None
        rotated = int(SHAPE["head_dim"] * SHAPE["rotary_fraction"]) // 2 * 2
        rates = 10000.0 ** (-torch.arange(0, rotated, 2, device=device).float() / rotated)
        return torch.arange(length, device=device).float()[:, None] * rates[None, :]

    def forward(self, tokens):
        x = self.embedding(tokens)
        if self.positions is not None:
            x = x + self.positions(torch.arange(tokens.shape[1], device=tokens.device))[None]
        angles = self.angles(tokens.shape[1], tokens.device)
        for block in self.blocks:
            x = checkpoint(block, x, angles, use_reentrant=True) if SCENARIO["recompute"] else block(x, angles)
        x = self.norm(x)
        logits = self.head(x) if self.head is not None else F.linear(x, self.embedding.weight)
        return F.cross_entropy(logits[:, :-1].flatten(0, 1).float(), tokens[:, 1:].flatten())


def let_the_cpu_pin():
    """Tells DeepSpeed which buffers stand for pinned ones where there is no GPU.

    The CPU accelerator pins nothing and says so, and the swapper of optimizer states then stops at an
    assertion (0.16.9): it takes its own buffers for foreign tensors. Direct file access wants them at
    a multiple of 4096 bytes.
    """
    accelerator = deepspeed.accelerator.get_accelerator()
    if accelerator.device_name() != "cpu":
        return
    pinned = set()

    def pin(tensor, *_, **__):
        size = tensor.numel() * tensor.element_size()
        raw = torch.empty(size + 4096, dtype=torch.uint8)
        start = -raw.data_ptr() % 4096
        pinned.add(raw.untyped_storage().data_ptr())
        return raw[start : start + size].view(tensor.dtype).view(tensor.shape).copy_(tensor)

    accelerator.pin_memory = pin
    accelerator.is_pinned = lambda tensor: tensor.untyped_storage().data_ptr() in pinned


def parameters_of(network):
    # ZeRO-3 divides a parameter when it is made, and leaves its size in ds_numel.
    return sum(getattr(p, "ds_numel", p.numel()) for p in network.parameters())


def main():
    for key, alone in {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1",
                       "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"}.items():
        os.environ.setdefault(key, alone)
    config = json.loads((HERE / "ds_config.json").read_text())
    let_the_cpu_pin()
    deepspeed.init_distributed()
    torch.manual_seed(7)
    is_divided = config["zero_optimization"]["stage"] == 3
    with deepspeed.zero.Init(config_dict_or_path=config, enabled=is_divided):
        network = Decoder()
    print(f"DeepSpeed {deepspeed.__version__}, torch {torch.__version__}, {torch.get_num_threads()} threads")
    print(f"Number of trainable parameters = {parameters_of(network)}")
    engine, *_ = deepspeed.initialize(
        model=network, model_parameters=network.parameters(), config=config
    )
    size = (SCENARIO["micro_batch"], SCENARIO["sequence"])
    for _ in range(SCENARIO["iterations"]):
        for _ in range(SCENARIO["accumulation"]):
            tokens = torch.randint(SHAPE["vocabulary"], size, device=engine.device)
            loss = engine(tokens)
            engine.backward(loss)
            engine.step()
    print(f"finished, loss {loss.item():.4f}")


if __name__ == "__main__":
    main()

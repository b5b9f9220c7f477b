"""Trains the tiny decoders of tests/validate/train in PyTorch and compares the losses.

    TIDEGATE_TRAINING_EXPORT=/tmp/losses.json build/dev/tests/validate/train_test '[.export]'
    python3 validate/train/against_torch.py /tmp/losses.json

Same initial parameters and batches, fp32, torch.optim.AdamW, gradients by autograd. PyTorch is
needed here alone. Exit 1 when any loss differs by more than 1e-4 of itself.
"""

import json
import sys

import torch
import torch.nn.functional as F

TOLERANCE = 1e-4  # fp32 sums in another order, carried through twenty steps


def norm(x, p, name, net):
    width = (p[name + ".weight"].shape[0],)
    if net["is_layer_norm"]:
        return F.layer_norm(x, width, p[name + ".weight"], p.get(name + ".bias"), 1e-5)
    return F.rms_norm(x, width, p[name + ".weight"], 1e-5)


def linear(x, p, name, width):
    return F.linear(x, p[name + ".weight"].view(width, -1), p.get(name + ".bias"))


def turned(x, fraction):
    """x [batch, heads, sequence, dim]: rotate-half over the first `fraction` of dim."""
    half = int(fraction * x.shape[-1]) // 2
    if half == 0:
        return x
    frequency = 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = torch.arange(x.shape[2], dtype=torch.float64)[:, None] * frequency
    c, s = angle.cos().float(), angle.sin().float()
    a, b, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return torch.cat([a * c - b * s, b * c + a * s, rest], dim=-1)


def qkv(x, p, net):
    q, kv = net["heads"] * net["head_dim"], net["kv_heads"] * net["head_dim"]
    if "qkv.weight" in p:
        return linear(x, p, "qkv", q + 2 * kv).split([q, kv, kv], dim=-1)
    if "kv.weight" in p:
        return (linear(x, p, "q", q), *linear(x, p, "kv", 2 * kv).split([kv, kv], dim=-1))
    return linear(x, p, "q", q), linear(x, p, "k", kv), linear(x, p, "v", kv)


def attention(x, p, net):
    b, s, _ = x.shape
    q, k, v = (t.view(b, s, -1, net["head_dim"]).transpose(1, 2) for t in qkv(x, p, net))
    if "q_norm.weight" in p:
        q, k = norm(q, p, "q_norm", net), norm(k, p, "k_norm", net)
    q, k = turned(q, net["rotary_fraction"]), turned(k, net["rotary_fraction"])
    group = net["heads"] // net["kv_heads"]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    age = torch.arange(s)[:, None] - torch.arange(s)
    mask = (age >= 0) & ((age < net["sliding_window"]) | (net["sliding_window"] == 0))
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return linear(y.transpose(1, 2).reshape(b, s, -1), p, "o", net["hidden"])


def feed_forward(x, p, net):
    act = {"gelu": F.gelu, "silu": F.silu, "relu": F.relu}[net["activation"]]
    ffn = net["ffn"]
    if "gate_up.weight" in p:
        gate, up = linear(x, p, "gate_up", 2 * ffn).split([ffn, ffn], dim=-1)
        y = act(gate) * up
    elif net["is_gated"]:
        y = act(linear(x, p, "gate", ffn)) * linear(x, p, "up", ffn)
    else:
        y = act(linear(x, p, "up", ffn))
    return linear(y, p, "down", net["hidden"])


def part(parameters, layer):
    return {n[len(layer) + 1 :]: t for n, t in parameters.items() if n.startswith(layer + ".")}


def loss_of(parameters, net, batch):
    h = net["hidden"]
    tokens = torch.tensor(batch["tokens"]).view(-1, net["sequence"])
    ends, head = part(parameters, "embedding"), part(parameters, "head")
    table = ends["tokens.weight"].view(-1, h)
    x = table[tokens]
    if "positions.weight" in ends:
        x = x + ends["positions.weight"].view(-1, h)[: net["sequence"]]
    if "norm.weight" in ends:
        x = norm(x, ends, "norm", net)
    for i in range(net["layers"]):
        p = part(parameters, f"block.{i}")
        x = x + attention(norm(x, p, "attention_norm", net), p, net)
        x = x + feed_forward(norm(x, p, "ffn_norm", net), p, net)
    if "final_norm.weight" in head:
        x = norm(x, head, "final_norm", net)
    weight = head["projection.weight"].view(-1, h) if "projection.weight" in head else table
    return F.cross_entropy((x @ weight.T).flatten(0, 1), torch.tensor(batch["labels"]))


def worst_difference(case):
    parameters = {n: torch.tensor(v, requires_grad=True) for n, v in case["parameters"].items()}
    adam = torch.optim.AdamW(parameters.values(), lr=case["rate"], weight_decay=case["decay"])
    worst = 0.0
    for batch, ours in zip(case["batches"], case["losses"], strict=True):
        adam.zero_grad()
        loss = loss_of(parameters, case["network"], batch)
        loss.backward()
        adam.step()
        worst = max(worst, abs(loss.item() - ours) / abs(loss.item()))
    return worst, case["losses"][0], ours


def main():
    torch.set_num_threads(1)
    failed = False
    print(f"PyTorch {torch.__version__}: first and last loss of 20 steps, largest difference")
    for case in json.load(open(sys.argv[1])):
        worst, first, last = worst_difference(case)
        failed |= worst > TOLERANCE
        print(f"{case['name']:36s} {first:.4f} {last:.4f} {worst:.1e}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

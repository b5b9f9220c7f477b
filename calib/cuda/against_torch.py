#!/usr/bin/env python3
"""Measures a profile's GPU figures again with PyTorch and prints both, side by side.

    tidegate calib ... --out profile.yaml && calib/cuda/against_torch.py profile.yaml

Run it right after the calibration, on the same idle machine: the table is about two programs, not
about two moments. Needs PyTorch with CUDA and PyYAML; neither is a dependency of Tidegate, and no
test runs this. The products are torch.mm, y[m,n] = x[m,k] w[n,k]^T, on uniform
data with operands in turn beyond twice the L2 cache; copies are Tensor.copy_ of pinned and pageable
memory. PyTorch's product picks cuBLAS's first choice, so it stands beside pick 0.
"""

import argparse
import datetime
import sys
import time


def rows_of(profile, quantity):
    """Rows of a measured table as dictionaries of its coordinates, with "value"."""
    table = profile.get("calibration", {}).get("tables", {}).get(quantity)
    if table is None:
        return []
    names = table["coordinates"]
    return [dict(zip(names, row), value=row[len(names)]) for row in table["rows"]]


def seconds_each(torch, operation, target=0.1):
    """Mean GPU time of operation(i), over at least `target` seconds after a warm-up."""
    operation(0)
    torch.cuda.synchronize()
    count, elapsed = 4, 0.0
    while True:
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for i in range(count):
            operation(i)
        stop.record()
        torch.cuda.synchronize()
        elapsed = start.elapsed_time(stop) * 1e-3
        if elapsed >= target or count >= 100000:
            return elapsed / count
        count = int(count * min(10.0, max(2.0, 1.2 * target / max(elapsed, 1e-6))))


def gemm_rate(torch, row):
    """FLOP/s of one product; None where PyTorch has no plain call for the type."""
    m, n, k = (int(row[name]) for name in "mnk")
    dtype = {16: torch.bfloat16, 32: torch.float32}.get(int(row["dtype"]))
    if dtype is None:
        return None
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    footprint = (m * k + n * k + m * n) * int(row["dtype"]) // 8
    sets = max(1, min(64, -(-2 * cache // footprint)))
    uniform = lambda *shape: (2 * torch.rand(shape, device="cuda") - 1).to(dtype)
    operands = [(uniform(m, k), uniform(n, k)) for _ in range(sets)]
    out = torch.empty((m, n), device="cuda", dtype=dtype)

    def product(i):
        x, w = operands[i % sets]
        torch.mm(x, w.t(), out=out)

    return 2.0 * m * n * k / seconds_each(torch, product)


def copy_rate(torch, row, is_h2d):
    """B/s of one copy; pageable copies by the host's clock, because they wait."""
    size, is_pinned = int(row["bytes"]), row["memory"] == 1
    host = torch.ones(size, dtype=torch.uint8, pin_memory=is_pinned)
    device = torch.ones(size, dtype=torch.uint8, device="cuda")
    to, source = (device, host) if is_h2d else (host, device)
    if is_pinned:
        return size / seconds_each(torch, lambda i: to.copy_(source, non_blocking=True))
    to.copy_(source)
    torch.cuda.synchronize()
    count, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < 0.1:
        to.copy_(source)
        torch.cuda.synchronize()
        count += 1
    return size * count / (time.perf_counter() - begin)


def print_line(label, unit, scale, ours, theirs):
    print(f"{label:48} {ours / scale:12.2f} {theirs / scale:12.2f} {unit:8} {ours / theirs:8.3f}")


def compare(torch, profile, limit):
    print(f"{'':48} {'profile':>12} {'PyTorch':>12} {'':8} {'ratio':>8}")
    for row in [r for r in rows_of(profile, "gpu.gemm") if r["pick"] == 0][:limit]:
        rate = gemm_rate(torch, row)
        if rate is None:
            continue
        label = "gemm {m:.0f} x {n:.0f} x {k:.0f}, {dtype:.0f} bit".format(**row)
        print_line(label, "TFLOP/s", 1e12, row["value"], rate)
    for quantity, is_h2d in (("gpu.h2d", True), ("gpu.d2h", False)):
        for row in [r for r in rows_of(profile, quantity) if r["by"] == 0][:limit]:
            memory = "pinned" if row["memory"] == 1 else "pageable"
            label = f"{quantity[4:]} {row['bytes']:.0f} B, {memory}"
            print_line(label, "GB/s", 1e9, row["value"], copy_rate(torch, row, is_h2d))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("profile", help="a profile that `tidegate calib` wrote")
    parser.add_argument("--limit", type=int, help="at most so many rows of each quantity")
    arguments = parser.parse_args()
    try:
        import torch
        import yaml
    except ImportError as missing:
        sys.exit(f"against_torch.py needs PyTorch and PyYAML: {missing}")
    if not torch.cuda.is_available():
        sys.exit("against_torch.py: PyTorch sees no GPU")
    with open(arguments.profile, encoding="utf-8") as file:
        profile = yaml.safe_load(file)
    if not rows_of(profile, "gpu.gemm") and not rows_of(profile, "gpu.h2d"):
        sys.exit(f"{arguments.profile}: no measured tables gpu.gemm or gpu.h2d under calibration")
    torch.backends.cuda.matmul.allow_tf32 = False
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    print(f"{torch.cuda.get_device_name(0)}, PyTorch {torch.__version__}, CUDA {torch.version.cuda}")
    print(f"profile of {profile['calibration'].get('created', 'an unknown time')}, now {now}")
    compare(torch, profile, arguments.limit)


if __name__ == "__main__":
    main()

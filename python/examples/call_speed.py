"""Times one call of a cell from Python, emission alone: python python/examples/call_speed.py"""

import time

import autobatch as ab

m = ab.Module("calls")
w, b = m.param("w", (16, 8)), m.param("b", 8)


@m.cell(ab.f32[8], ab.f32[8])
def node(left, right):
    return ab.affine([left, right], w, b).tanh()


session = ab.Session(m)
least = float("inf")
for _ in range(20):
    with session.graph():
        x = ab.input([0.0] * 8)
        start = time.thread_time()
        for _ in range(10_000):
            x = node(x, x)
        least = min(least, time.thread_time() - start)
print(f"a cell call takes {least / 10_000 * 1e9:.0f} ns of processor time (least of 20 runs of 10,000)")

// Gradients of labels' rows, one group per label. For 64 lanes at a time, each thread computes the gradient of a logit, and
// then adds the products with the rows of the lanes to elements of its own, in order.
// Record: 0 width of a label's row, 1 labels, 2 first word of the store in the arena, 3 first word of the labels' rows, 4 their
// storage, 5 parts. A part, from 6 on, is 10 words: 0 lanes, 1 rows per lane (one), 2..6 x, 6..10 factors.

var<workgroup> slopes: array<f32, 64>;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let label = enter(group.y * groups.x + group.x);
    if label >= segment.threads {
        return;
    }
    let width = r(0u);
    let own = label * width;
    let parts = r(5u);
    for (var part = 0u; part < parts; part++) {
        let at = 6u + 10u * part;
        let lanes = r(at);
        for (var first = 0u; first < lanes; first = first + 64u) {
            let count = min(64u, lanes - first);
            if local < count {
                let logit = stored_chain(row_of(at + 2u, first + local), r(4u), r(3u) + own, width);
                let factors = row_of(at + 6u, first + local);
                var likely = op_exp(logit - ldf(factors + 1u));
                if min(u32(ldf(factors + 2u)), r(1u) - 1u) == label {
                    likely = likely - 1.0;
                }
                slopes[local] = ldf(factors) * likely;
            }
            workgroupBarrier();
            for (var k = local; k < width; k = k + 64u) {
                var sum = ldf(r(2u) + own + k);
                var i = 0u;
                for (; i + 4u <= count; i = i + 4u) {
                    let x0 = ldf(row_of(at + 2u, first + i + 0u) + k);
                    let x1 = ldf(row_of(at + 2u, first + i + 1u) + k);
                    let x2 = ldf(row_of(at + 2u, first + i + 2u) + k);
                    let x3 = ldf(row_of(at + 2u, first + i + 3u) + k);
                    sum = mad(slopes[i + 0u], x0, sum);
                    sum = mad(slopes[i + 1u], x1, sum);
                    sum = mad(slopes[i + 2u], x2, sum);
                    sum = mad(slopes[i + 3u], x3, sum);
                }
                for (; i < count; i++) {
                    sum = mad(slopes[i], ldf(row_of(at + 2u, first + i) + k), sum);
                }
                stf(r(2u) + own + k, sum);
            }
            workgroupBarrier();
        }
    }
}

// Losses of labels, one group per lane. A stripe of 256 labels at a time, each thread computes logits; then the group folds
// them, and each thread continues elements of the slope. The logits of a stripe are stored in scratch words of the lane.
// Record: 0 one, 1 width of a label's row, 2 labels, 3 first word of their rows, 4 storage of the rows, 5 first word of the
// logits of lane 0, 6..10 x, 10..14 label, 14..18 loss, 18..23 whether the logarithm of the sum is wanted and where, 23..28 the same of
// the slope.

var<workgroup> picked: f32;

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ lane
    let width = r(1u);
    let labels = r(2u);
    let label = min(ld(row_of(10u, lane)), labels - 1u);
    let x = row_of(6u, lane);
    let logits = r(5u) + 256u * lane;
    let slope = row_of(24u, lane);
    var top = -infinity();
    var total = 0.0;
    for (var first = 0u; first < labels; first = first + 256u) {
        let count = min(256u, labels - first);
        for (var i = local; i < count; i = i + 64u) {
            let logit = stored_chain(x, r(4u), r(3u) + (first + i) * width, width);
            if first + i == label {
                picked = logit;
            }
            stf(logits + i, logit);
        }
        storageBarrier();
        workgroupBarrier();
        let row = row_of_scores(logits, count, local);
        let next = op_max(top, row_max(row));
        let scale = op_exp(top - next);
        top = next;
        for (var i = local; i < count; i = i + 64u) {
            stf(logits + i, op_exp(ldf(logits + i) - top));
        }
        storageBarrier();
        workgroupBarrier();
        total = total * scale;
        total = total + row_sum(row);
        if r(23u) != 0u {
            for (var k = local; k < width; k = k + 64u) {
                var sum = 0.0;
                if first > 0u {
                    sum = ldf(slope + k);
                }
                sum = sum * scale;
                let column = r(3u) + first * width + k;
                var i = 0u;
                for (; i + 4u <= count; i = i + 4u) {
                    let w0 = stored(r(4u), column + (i + 0u) * width);
                    let w1 = stored(r(4u), column + (i + 1u) * width);
                    let w2 = stored(r(4u), column + (i + 2u) * width);
                    let w3 = stored(r(4u), column + (i + 3u) * width);
                    sum = mad(ldf(logits + i + 0u), w0, sum);
                    sum = mad(ldf(logits + i + 1u), w1, sum);
                    sum = mad(ldf(logits + i + 2u), w2, sum);
                    sum = mad(ldf(logits + i + 3u), w3, sum);
                }
                for (; i < count; i++) {
                    sum = mad(ldf(logits + i), stored(r(4u), column + i * width), sum);
                }
                stf(slope + k, sum);
            }
        }
        // The logits may still be read.
        storageBarrier();
        workgroupBarrier();
    }
    if r(23u) != 0u {
        for (var k = local; k < width; k = k + 64u) {
            stf(slope + k, quotient(ldf(slope + k), total) - stored(r(4u), r(3u) + label * width + k));
        }
    }
    if local == 0u {
        let log_of_total = op_log(total);
        stf(row_of(14u, lane), log_of_total - (picked - top));
        if r(18u) != 0u {
            stf(row_of(19u, lane), top + log_of_total);
        }
    }
}

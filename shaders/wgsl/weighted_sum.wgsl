// The weighted sum of a list, one thread per element. Weights are the scores, or their softmax over the list. A score
// is as wide as a value, or one number.
// Record: 0 elements per lane, 1 whether weights are a softmax, 2 width of a score, 3..8 scores, 8..13 values, 13..17
// result.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ thread
    let count = list_len(3u, lane);
    let e = select(0u, element, r(2u) > 1u);
    var top = 0.0;
    var total = 0.0;
    if r(1u) == 1u {
        for (var i = 0u; i < count; i++) {
            let s = ldf(list_item(3u, lane, i) + e);
            if i == 0u {
                top = s;
            } else {
                top = op_max(top, s);
            }
        }
        for (var i = 0u; i < count; i++) {
            let s = op_exp(ldf(list_item(3u, lane, i) + e) - top);
            if i == 0u {
                total = s;
            } else {
                total = total + s;
            }
        }
    }
    let scale = quotient(1.0, total);
    var sum = 0.0;
    for (var i = 0u; i < count; i++) {
        var c = ldf(list_item(3u, lane, i) + e);
        if r(1u) == 1u {
            c = op_exp(c - top) * scale;
        }
        sum = mad(c, ldf(list_item(8u, lane, i) + element), sum);
    }
    stf(row_of(13u, lane) + element, sum);
}

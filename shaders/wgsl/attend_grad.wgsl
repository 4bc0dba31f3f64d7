// The derivative of attention, one group per lane. The weights of a lane and the gradients of its scores are stored
// in scratch words of its own.
// Record: 0 one, 1 width of a key, 2 width of a value, 3 scale, 4 first word of the weights, 5 first word of the
// scores' gradients, 6..10 query, 10..15 keys, 15..20 values, 20..24 gradient of the result, 24 whether to compute
// the gradient of the query, 25..29 its address, 29 whether to compute the edges of the keys, 30 their first word, 31
// position of their offsets in the tables, 32..35 the same for the values.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let number_of_lane = enter(group.y * groups.x + group.x);
    if number_of_lane >= segment.threads {
        return;
    }
    let lane = segment.first + number_of_lane;
    let count = list_len(10u, lane);
    let before = list_before(10u, lane);
    let weights = r(4u) + before;
    let slopes = r(5u) + before;
    let query = row_of(6u, lane);
    let dy = row_of(20u, lane);
    let factor = bitcast<f32>(r(3u));
    for (var first = 0u; first < count; first = first + 4u) {
        let item = first + local / 16u;
        let bounded = min(item, count - 1u);
        let slope = dot_of(dy, list_item(15u, lane, bounded), r(2u), local);
        if item < count && local % 16u == 0u {
            stf(slopes + item, slope);
        }
    }
    for (var item = local; item < count; item = item + 64u) {
        stf(weights + item, chain_of(query, list_item(10u, lane, item), r(1u)) * factor);
    }
    storageBarrier();
    workgroupBarrier();
    let row = row_of_scores(weights, count, local);
    let top = row_max(row);
    let scale = quotient(1.0, row_exp_sum(row, top));
    storageBarrier();
    workgroupBarrier();
    if local == 0u {
        var weighted = 0.0;
        for (var i = 0u; i < count; i++) {
            let w = op_exp(ldf(weights + i) - top) * scale;
            stf(weights + i, w);
            weighted = mad(w, ldf(slopes + i), weighted);
        }
        for (var i = 0u; i < count; i++) {
            stf(slopes + i, ldf(weights + i) * (ldf(slopes + i) - weighted) * factor);
        }
    }
    storageBarrier();
    workgroupBarrier();
    if r(24u) == 1u {
        for (var e = local; e < r(1u); e = e + 64u) {
            var sum = 0.0;
            for (var i = 0u; i < count; i++) {
                sum = mad(ldf(slopes + i), ldf(list_item(10u, lane, i) + e), sum);
            }
            stf(row_of(25u, lane) + e, sum);
        }
    }
    if r(29u) == 1u {
        let to_at = r(30u) + tables[r(31u) + lane] * r(1u);
        for (var i = local; i < count * r(1u); i = i + 64u) {
            stf(to_at + i, ldf(slopes + i / r(1u)) * ldf(query + i % r(1u)));
        }
    }
    if r(32u) == 1u {
        let to_at = r(33u) + tables[r(34u) + lane] * r(2u);
        for (var i = local; i < count * r(2u); i = i + 64u) {
            stf(to_at + i, ldf(weights + i / r(2u)) * ldf(dy + i % r(2u)));
        }
    }
}

// The derivative of weighted sums over a list, one group per lane. Scores of width 1 have gradients that are dot
// products, by sixteen threads each. Wide scores take one thread per element. The weights of a lane and their
// gradients are stored in scratch words of its own.
// Record: 0 one, 1 whether weights are a softmax, 2 width of a score, 3 width of a value, 4 first word of the
// weights, 5 first word of their gradients, 6..11 scores, 11..16 values, 16..20 gradient of the result, 20 whether to
// compute the edges of the scores, 21 their first word, 22 position of their offsets in the tables, 23..26 the same
// for the values.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ lane
    let count = list_len(6u, lane);
    let wide = r(2u);
    let before = list_before(6u, lane) * wide;
    let weights = r(4u) + before;
    let slopes = r(5u) + before;
    let dy = row_of(16u, lane);
    if wide == 1u {
        for (var first = 0u; first < count; first = first + 4u) {
            let item = first + local / 16u;
            let value = list_item(11u, lane, min(item, count - 1u));
            let dot = dot_of(dy, value, r(3u), local);
            if item < count && local % 16u == 0u {
                stf(slopes + item, dot);
            }
        }
    }
    storageBarrier();
    workgroupBarrier();
    for (var e = local; e < wide; e = e + 64u) {
        for (var i = 0u; i < count; i++) {
            stf(weights + i * wide + e, ldf(list_item(6u, lane, i) + e));
            if wide > 1u {
                stf(slopes + i * wide + e, ldf(dy + e) * ldf(list_item(11u, lane, i) + e));
            }
        }
        if r(1u) == 1u {
            softmax_and_back(weights + e, slopes + e, wide, count);
        }
    }
    storageBarrier();
    workgroupBarrier();
    if r(20u) == 1u {
        let to_at = r(21u) + tables[r(22u) + lane] * wide;
        for (var i = local; i < count * wide; i = i + 64u) {
            stf(to_at + i, ldf(slopes + i));
        }
    }
    if r(23u) == 1u {
        let width = r(3u);
        let to_at = r(24u) + tables[r(25u) + lane] * width;
        for (var i = local; i < count * width; i = i + 64u) {
            let e = i % width;
            let c = ldf(weights + (i / width) * wide + select(0u, e, wide > 1u));
            stf(to_at + i, c * ldf(dy + e));
        }
    }
}

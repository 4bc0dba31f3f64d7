// The reverse of attention for a key and its value, one group per lane. The weights and slopes of the readers of a lane are
// stored in scratch words of its own.
// Record: 0 one, 1 width of a key, 2 width of a value, 3 scale, 4 first word of the weights, 5 first word of the slopes,
// 6..10 key, 10..14 value, 14..19 readers, 19 whether to compute the gradient of the key, 20..24 its address, 24..29 the same
// for the value.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ lane
    let count = list_len(14u, lane);
    let before = list_before(14u, lane);
    let weights = r(4u) + before;
    let slopes = r(5u) + before;
    let key_width = r(1u);
    let value_width = r(2u);
    let factor = bitcast<f32>(r(3u));
    for (var reader = local; reader < count; reader = reader + 64u) {
        let query = list_item(14u, lane, reader);
        let dy = query + key_width;
        let numbers = dy + value_width;
        let score = chain_of(query, row_of(6u, lane), 1u, key_width) * factor;
        let weight = op_exp(score - ldf(numbers)) * ldf(numbers + 1u);
        let slope = chain_of(dy, row_of(10u, lane), 1u, value_width);
        stf(weights + reader, weight);
        stf(slopes + reader, weight * (slope - ldf(numbers + 2u)) * factor);
    }
    storageBarrier();
    workgroupBarrier();
    if r(19u) == 1u {
        for (var e = local; e < key_width; e = e + 64u) {
            stf(row_of(20u, lane) + e, weighted_element(slopes, 14u, lane, count, e));
        }
    }
    if r(24u) == 1u {
        for (var e = local; e < value_width; e = e + 64u) {
            stf(row_of(25u, lane) + e, weighted_element(weights, 14u, lane, count, key_width + e));
        }
    }
}

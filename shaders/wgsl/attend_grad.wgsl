// The reverse of attention for the query, one group per lane. The weights of a lane and the gradients of its scores are stored
// in scratch words of its own.
// Record: 0 one, 1 width of a key, 2 width of a value, 3 scale, 4 first word of the weights, 5 first word of the
// scores' gradients, 6..10 query, 10..15 keys, 15..20 values, 20..24 gradient of the result, 24 whether to compute
// the gradient of the query, 25..29 its address, 29 whether to write the row that keys and values read, 30..34 its address.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ lane
    let count = list_len(10u, lane);
    let before = list_before(10u, lane);
    let weights = r(4u) + before;
    let slopes = r(5u) + before;
    let query = row_of(6u, lane);
    let dy = row_of(20u, lane);
    let key_width = r(1u);
    let value_width = r(2u);
    let factor = bitcast<f32>(r(3u));
    for (var item = local; item < count; item = item + 64u) {
        stf(weights + item, chain_of(query, list_item(10u, lane, item), 1u, key_width) * factor);
        stf(slopes + item, chain_of(dy, list_item(15u, lane, item), 1u, value_width));
    }
    storageBarrier();
    workgroupBarrier();
    let row = row_of_scores(weights, count, local);
    let top = row_max(row);
    let scale = quotient(1.0, row_exp_sum(row, top));
    storageBarrier();
    workgroupBarrier();
    for (var item = local; item < count; item = item + 64u) {
        stf(weights + item, op_exp(ldf(weights + item) - top) * scale);
    }
    storageBarrier();
    workgroupBarrier();
    let common_slope = dot_of(weights, slopes, count, local);
    storageBarrier();
    workgroupBarrier();
    for (var item = local; item < count; item = item + 64u) {
        stf(slopes + item, ldf(weights + item) * (ldf(slopes + item) - common_slope) * factor);
    }
    storageBarrier();
    workgroupBarrier();
    if r(24u) == 1u {
        for (var e = local; e < key_width; e = e + 64u) {
            stf(row_of(25u, lane) + e, weighted_element(slopes, 10u, lane, count, e));
        }
    }
    if r(29u) == 1u {
        let to = row_of(30u, lane);
        for (var e = local; e < key_width; e = e + 64u) {
            stf(to + e, ldf(query + e));
        }
        for (var e = local; e < value_width; e = e + 64u) {
            stf(to + key_width + e, ldf(dy + e));
        }
        if local == 0u {
            let numbers = to + key_width + value_width;
            let is_read = count > 0u;
            stf(numbers, select(0.0, top, is_read));
            stf(numbers + 1u, select(0.0, scale, is_read));
            stf(numbers + 2u, select(0.0, common_slope, is_read));
        }
    }
}

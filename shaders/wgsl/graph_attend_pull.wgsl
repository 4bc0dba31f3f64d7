// The reverse of graph attention for a key and its value, one group per lane. The weights and slopes of the readers of a lane
// are stored in scratch words of its own, a row of heads for each reader.
// Record: 0 one, 1 heads, 2 width of a value, 3 slope, 4 first word of the weights, 5 first word of the slopes, 6..10 key,
// 10..14 value, 14..19 readers, 19 whether to compute the gradient of the key, 20..24 its address, 24..29 the same for the
// value.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ lane
    let count = list_len(14u, lane);
    let heads = r(1u);
    let width = r(2u);
    let part = width / heads;
    let before = list_before(14u, lane) * heads;
    let weights = r(4u) + before;
    let slopes = r(5u) + before;
    let key = row_of(6u, lane);
    let value = row_of(10u, lane);
    let all = count * heads;
    for (var first = 0u; first < all; first = first + 4u) {
        let number = first + local / 16u;
        let at = min(number, all - 1u);
        let of_part = at % heads * part;
        let dy = list_item(14u, lane, at / heads) + heads;
        let dot = dot_of(dy + of_part, value + of_part, part, local);
        if number < all && local % 16u == 0u {
            stf(slopes + number, dot);
        }
    }
    storageBarrier();
    workgroupBarrier();
    for (var at = local; at < all; at = at + 64u) {
        let head = at % heads;
        let reader = list_item(14u, lane, at / heads) + head;
        let numbers = reader + heads + width;
        let x = ldf(reader) + ldf(key + head);
        let weight = op_exp(op_leaky_relu(x, bitcast<f32>(r(3u))) - ldf(numbers)) * ldf(numbers + heads);
        let slope = weight * (ldf(slopes + at) - ldf(numbers + 2u * heads));
        stf(weights + at, weight);
        stf(slopes + at, slope * select(bitcast<f32>(r(3u)), 1.0, x > 0.0));
    }
    storageBarrier();
    workgroupBarrier();
    if r(19u) == 1u {
        for (var head = local; head < heads; head = head + 64u) {
            var sum = 0.0;
            for (var i = 0u; i < count; i++) {
                sum = sum + ldf(slopes + i * heads + head);
            }
            stf(row_of(20u, lane) + head, sum);
        }
    }
    if r(24u) == 1u {
        for (var e = local; e < width; e = e + 64u) {
            stf(row_of(25u, lane) + e, head_element(weights + e / part, heads, 14u, lane, count, heads + e));
        }
    }
}

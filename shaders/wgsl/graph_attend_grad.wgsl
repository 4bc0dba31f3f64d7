// The reverse of graph attention for the query, one group per lane. The weights of a lane and their gradients are stored in
// scratch words of its own, a row of heads for each item.
// Record: 0 one, 1 heads, 2 width of a value, 3 slope, 4 first word of the weights, 5 first word of their gradients,
// 6..10 query, 10..15 keys, 15..20 values, 20..24 gradient of the result, 24 whether to compute the gradient of the query,
// 25..29 its address, 29 whether to write the row that keys and values read, 30..34 its address.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ lane
    let count = list_len(10u, lane);
    let heads = r(1u);
    let width = r(2u);
    let part = width / heads;
    let before = list_before(10u, lane) * heads;
    let weights = r(4u) + before;
    let slopes = r(5u) + before;
    let query = row_of(6u, lane);
    let dy = row_of(20u, lane);
    let all = count * heads;
    for (var first = 0u; first < all; first = first + 4u) {
        let number = first + local / 16u;
        let at = min(number, all - 1u);
        let of_part = at % heads * part;
        let dot = dot_of(dy + of_part, list_item(15u, lane, at / heads) + of_part, part, local);
        if number < all && local % 16u == 0u {
            stf(slopes + number, dot);
        }
    }
    for (var at = local; at < all; at = at + 64u) {
        let head = at % heads;
        let sum = ldf(query + head) + ldf(list_item(10u, lane, at / heads) + head);
        stf(weights + at, op_leaky_relu(sum, bitcast<f32>(r(3u))));
    }
    storageBarrier();
    workgroupBarrier();
    let to = row_of(30u, lane);
    for (var head = local; head < heads; head = head + 64u) {
        let top = top_score(weights + head, heads, count);
        let scale = softmax_scale(weights + head, heads, count, top);
        softmax_of_scores(weights + head, heads, count, top, scale);
        var common_slope = 0.0;
        for (var i = 0u; i < count; i++) {
            let at = i * heads + head;
            common_slope = mad(ldf(weights + at), ldf(slopes + at), common_slope);
        }
        if r(24u) == 1u {
            var sum = 0.0;
            for (var i = 0u; i < count; i++) {
                let at = i * heads + head;
                let x = ldf(query + head) + ldf(list_item(10u, lane, i) + head);
                let slope = ldf(weights + at) * (ldf(slopes + at) - common_slope);
                sum = sum + slope * select(bitcast<f32>(r(3u)), 1.0, x > 0.0);
            }
            stf(row_of(25u, lane) + head, sum);
        }
        if r(29u) == 1u {
            let numbers = to + heads + width + head;
            let is_read = count > 0u;
            stf(to + head, ldf(query + head));
            stf(numbers, select(0.0, top, is_read));
            stf(numbers + heads, select(0.0, scale, is_read));
            stf(numbers + 2u * heads, select(0.0, common_slope, is_read));
        }
    }
    if r(29u) == 1u {
        for (var e = local; e < width; e = e + 64u) {
            stf(to + heads + e, ldf(dy + e));
        }
    }
}

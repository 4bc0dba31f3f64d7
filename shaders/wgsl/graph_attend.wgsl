// Graph attention of a query over a list, one group per lane. Each thread computes the score of an item in a head, then the
// weights of a head, then an element of the result. The weights of a lane, a row of heads for each item, are stored in scratch
// words of its own.
// Record: 0 one, 1 heads, 2 width of a value, 3 slope, 4 first word of the weights, 5..9 query, 9..14 keys, 14..19 values,
// 19..23 result.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ lane
    let count = list_len(9u, lane);
    let heads = r(1u);
    let width = r(2u);
    let weights = r(4u) + list_before(9u, lane) * heads;
    let query = row_of(5u, lane);
    let all = count * heads;
    for (var at = local; at < all; at = at + 64u) {
        let head = at % heads;
        let sum = ldf(query + head) + ldf(list_item(9u, lane, at / heads) + head);
        stf(weights + at, op_leaky_relu(sum, bitcast<f32>(r(3u))));
    }
    storageBarrier();
    workgroupBarrier();
    for (var head = local; head < heads; head = head + 64u) {
        let top = top_score(weights + head, heads, count);
        softmax_of_scores(weights + head, heads, count, top, softmax_scale(weights + head, heads, count, top));
    }
    storageBarrier();
    workgroupBarrier();
    let part = width / heads;
    for (var element = local; element < width; element = element + 64u) {
        stf(row_of(19u, lane) + element, head_element(weights + element / part, heads, 14u, lane, count, element));
    }
}

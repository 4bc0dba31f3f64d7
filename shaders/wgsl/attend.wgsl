// Attention of a query over a list, one group per lane. Each thread computes the score of a key; then each thread
// computes an element of the result. The scores of a lane are stored in scratch words of its own.
// Record: 0 one, 1 width of a key, 2 width of a value, 3 scale, 4 first word of the scores, 5..9 query, 9..14 keys,
// 14..19 values, 19..23 result.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ lane
    let count = list_len(9u, lane);
    let scores = r(4u) + list_before(9u, lane);
    for (var item = local; item < count; item = item + 64u) {
        let chain = chain_of(row_of(5u, lane), list_item(9u, lane, item), 1u, r(1u));
        stf(scores + item, chain * bitcast<f32>(r(3u)));
    }
    storageBarrier();
    workgroupBarrier();
    let row = row_of_scores(scores, count, local);
    let top = row_max(row);
    let scale = quotient(1.0, row_exp_sum(row, top));
    let width = r(2u);
    for (var element = local; element < width; element = element + 64u) {
        var sum = 0.0;
        var i = 0u;
        for (; i + 4u <= count; i = i + 4u) {
            let s0 = ldf(scores + i + 0u);
            let v0 = ldf(list_item(14u, lane, i + 0u) + element);
            let s1 = ldf(scores + i + 1u);
            let v1 = ldf(list_item(14u, lane, i + 1u) + element);
            let s2 = ldf(scores + i + 2u);
            let v2 = ldf(list_item(14u, lane, i + 2u) + element);
            let s3 = ldf(scores + i + 3u);
            let v3 = ldf(list_item(14u, lane, i + 3u) + element);
            sum = mad(op_exp(s0 - top) * scale, v0, sum);
            sum = mad(op_exp(s1 - top) * scale, v1, sum);
            sum = mad(op_exp(s2 - top) * scale, v2, sum);
            sum = mad(op_exp(s3 - top) * scale, v3, sum);
        }
        for (; i < count; i++) {
            let weight = op_exp(ldf(scores + i) - top) * scale;
            sum = mad(weight, ldf(list_item(14u, lane, i) + element), sum);
        }
        stf(row_of(19u, lane) + element, sum);
    }
}

// Products of two values and outer products, one thread per element.
// Record: 0 elements per lane, 1 columns, 2 depth (0 for an outer product), 3..7 left operand, 7..11 right operand,
// 11..15 result.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ thread
    let columns = r(1u);
    let depth = r(2u);
    let x = row_of(3u, lane);
    let row = x + (element / columns) * depth;
    let y = row_of(7u, lane) + element % columns;
    var sum = 0.0;
    if depth == 0u {
        sum = ldf(x + element / columns) * ldf(y);
    }
    var k = 0u;
    // A load takes much longer than a multiply-add, so eight terms are loaded before they are added.
    for (; k + 8u <= depth; k = k + 8u) {
        let x0 = ldf(row + k + 0u);
        let y0 = ldf(y + (k + 0u) * columns);
        let x1 = ldf(row + k + 1u);
        let y1 = ldf(y + (k + 1u) * columns);
        let x2 = ldf(row + k + 2u);
        let y2 = ldf(y + (k + 2u) * columns);
        let x3 = ldf(row + k + 3u);
        let y3 = ldf(y + (k + 3u) * columns);
        let x4 = ldf(row + k + 4u);
        let y4 = ldf(y + (k + 4u) * columns);
        let x5 = ldf(row + k + 5u);
        let y5 = ldf(y + (k + 5u) * columns);
        let x6 = ldf(row + k + 6u);
        let y6 = ldf(y + (k + 6u) * columns);
        let x7 = ldf(row + k + 7u);
        let y7 = ldf(y + (k + 7u) * columns);
        sum = mad(x0, y0, sum);
        sum = mad(x1, y1, sum);
        sum = mad(x2, y2, sum);
        sum = mad(x3, y3, sum);
        sum = mad(x4, y4, sum);
        sum = mad(x5, y5, sum);
        sum = mad(x6, y6, sum);
        sum = mad(x7, y7, sum);
    }
    for (; k < depth; k++) {
        sum = mad(ldf(row + k), ldf(y + k * columns), sum);
    }
    stf(row_of(11u, lane) + element, sum);
}

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
    let y = row_of(7u, lane) + element % columns;
    var result = chain_of(x + (element / columns) * depth, y, columns, depth);
    if depth == 0u {
        result = ldf(x + element / columns) * ldf(y);
    }
    stf(row_of(11u, lane) + element, result);
}

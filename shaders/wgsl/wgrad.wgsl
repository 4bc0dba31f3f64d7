// Gradients of weights, one thread per element of the block. It owns the element and adds the rows of all parts in
// order, so no addition is atomic and the sum is one chain.
// Record: 0 elements of the block, 1 its columns, 2 its first word in the arena, 3 columns of the store, 4 parts. A
// part, from 5 on, is 10 words: 0 lanes, 1 rows per lane, 2..6 x, 6..10 dy.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ thread
    let k = element / r(1u);
    let n = element % r(1u);
    let depth = r(0u) / r(1u);
    let to_at = r(2u) + k * r(3u) + n;
    var sum = ldf(to_at);
    for (var part = 0u; part < r(4u); part++) {
        let at = 5u + 10u * part;
        for (var l = 0u; l < r(at); l++) {
            let x = row_of(at + 2u, l) + k;
            let dy = row_of(at + 6u, l) + n;
            for (var row = 0u; row < r(at + 1u); row++) {
                sum = mad(ldf(x + row * depth), ldf(dy + row * r(1u)), sum);
            }
        }
    }
    stf(to_at, sum);
}

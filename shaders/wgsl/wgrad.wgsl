// Gradients of weights, one thread per element of the block. It owns the element and adds the rows of all parts in
// order, so no addition is atomic and the sum is one chain.
// Record: 0 elements of the block, 1 its columns, 2 its first word in the arena, 3 columns of the store, 4 parts. A
// part, from 5 on, is 10 words: 0 lanes, 1 rows per lane, 2..6 x, 6..10 dy.

// The element of x and that of dy that row `q` of all lanes of a part multiplies.
fn factors(at: u32, q: u32, k: u32, n: u32) -> vec2<f32> {
    let each = r(at + 1u);
    let lane = q / each;
    let row = q % each;
    let x = row_of(at + 2u, lane) + row * (r(0u) / r(1u)) + k;
    let dy = row_of(at + 6u, lane) + row * r(1u) + n;
    return vec2<f32>(ldf(x), ldf(dy));
}

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ thread
    let k = element / r(1u);
    let n = element % r(1u);
    let to_at = r(2u) + k * r(3u) + n;
    var sum = ldf(to_at);
    let parts = r(4u);
    for (var part = 0u; part < parts; part++) {
        let at = 5u + 10u * part;
        let rows = r(at) * r(at + 1u);
        var q = 0u;
        // A load takes much longer than a multiply-add, so eight rows are loaded before they are added.
        for (; q + 8u <= rows; q = q + 8u) {
            let f0 = factors(at, q, k, n);
            let f1 = factors(at, q + 1u, k, n);
            let f2 = factors(at, q + 2u, k, n);
            let f3 = factors(at, q + 3u, k, n);
            let f4 = factors(at, q + 4u, k, n);
            let f5 = factors(at, q + 5u, k, n);
            let f6 = factors(at, q + 6u, k, n);
            let f7 = factors(at, q + 7u, k, n);
            sum = mad(f0.x, f0.y, sum);
            sum = mad(f1.x, f1.y, sum);
            sum = mad(f2.x, f2.y, sum);
            sum = mad(f3.x, f3.y, sum);
            sum = mad(f4.x, f4.y, sum);
            sum = mad(f5.x, f5.y, sum);
            sum = mad(f6.x, f6.y, sum);
            sum = mad(f7.x, f7.y, sum);
        }
        for (; q < rows; q++) {
            let f = factors(at, q, k, n);
            sum = mad(f.x, f.y, sum);
        }
    }
    stf(to_at, sum);
}

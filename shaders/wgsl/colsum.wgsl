// Gradients of biases, one thread per element. It owns the element and adds the rows of all parts in order.
// Record: 0 elements, 1 first word of the store in the arena, 2 parts. A part, from 3 on, is 6 words: 0 lanes, 1 rows
// per lane, 2..6 dy.

// The position of row `q` of all lanes of a part.
fn dy_of(at: u32, q: u32) -> u32 {
    let each = r(at + 1u);
    return row_of(at + 2u, q / each) + (q % each) * r(0u);
}

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ thread
    var sum = ldf(r(1u) + element);
    let parts = r(2u);
    for (var part = 0u; part < parts; part++) {
        let at = 3u + 6u * part;
        let rows = r(at) * r(at + 1u);
        var q = 0u;
        // A load takes much longer than an addition, so eight rows are loaded before they are added.
        for (; q + 8u <= rows; q = q + 8u) {
            let y0 = ldf(dy_of(at, q) + element);
            let y1 = ldf(dy_of(at, q + 1u) + element);
            let y2 = ldf(dy_of(at, q + 2u) + element);
            let y3 = ldf(dy_of(at, q + 3u) + element);
            let y4 = ldf(dy_of(at, q + 4u) + element);
            let y5 = ldf(dy_of(at, q + 5u) + element);
            let y6 = ldf(dy_of(at, q + 6u) + element);
            let y7 = ldf(dy_of(at, q + 7u) + element);
            sum = sum + y0;
            sum = sum + y1;
            sum = sum + y2;
            sum = sum + y3;
            sum = sum + y4;
            sum = sum + y5;
            sum = sum + y6;
            sum = sum + y7;
        }
        for (; q < rows; q++) {
            sum = sum + ldf(dy_of(at, q) + element);
        }
    }
    stf(r(1u) + element, sum);
}

// Gradients of biases, one thread per element. It owns the element and adds the rows of all parts in order.
// Record: 0 elements, 1 first word of the store in the arena, 2 parts. A part, from 3 on, is 6 words: 0 lanes, 1 rows
// per lane, 2..6 dy.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ thread
    var sum = ldf(r(1u) + element);
    for (var part = 0u; part < r(2u); part++) {
        let at = 3u + 6u * part;
        for (var l = 0u; l < r(at); l++) {
            let dy = row_of(at + 2u, l) + element;
            for (var row = 0u; row < r(at + 1u); row++) {
                sum = sum + ldf(dy + row * r(0u));
            }
        }
    }
    stf(r(1u) + element, sum);
}

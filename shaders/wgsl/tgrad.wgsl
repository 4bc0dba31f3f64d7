// Gradients of tables. A thread owns one column of the rows that have one remainder modulo `remainders`, and adds the
// rows of all parts with that remainder, in order.
// Record: 0 columns times remainders, 1 columns, 2 remainders, 3 first word of the store in the arena, 4 last row, 5
// parts. A part, from 6 on, is 10 words: 0 lanes, 1 rows per lane, 2..6 index, 6..10 dy.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ thread
    let column = element % r(1u);
    let rest = element / r(1u);
    for (var part = 0u; part < r(5u); part++) {
        let at = 6u + 10u * part;
        for (var l = 0u; l < r(at); l++) {
            let number = min(ld(row_of(at + 2u, l)), r(4u));
            if number % r(2u) == rest {
                let to_at = r(3u) + number * r(1u) + column;
                var sum = ldf(to_at);
                let dy = row_of(at + 6u, l) + column;
                for (var row = 0u; row < r(at + 1u); row++) {
                    sum = sum + ldf(dy + row * r(1u));
                }
                stf(to_at, sum);
            }
        }
    }
}

// Gradients of tables. A thread owns one column of the rows that have one remainder modulo `remainders`, and adds the
// rows of all parts with that remainder, in order.
// Record: 0 columns times remainders, 1 columns, 2 remainders, 3 first word of the store in the arena, 4 last row, 5
// parts. A part, from 6 on, is 10 words: 0 lanes, 1 rows per lane, 2..6 index, 6..10 dy.

// The row of the table that a lane of a part looked up.
fn number_of(at: u32, l: u32) -> u32 {
    return min(ld(row_of(at + 2u, l)), r(4u));
}

// Adds the rows of a lane to a row of the table, if this thread owns it.
fn add_lane(at: u32, l: u32, number: u32, element: u32) {
    let column = element % r(1u);
    if number % r(2u) != element / r(1u) {
        return;
    }
    let to_at = r(3u) + number * r(1u) + column;
    var sum = ldf(to_at);
    let dy = row_of(at + 6u, l) + column;
    let each = r(at + 1u);
    for (var row = 0u; row < each; row++) {
        sum = sum + ldf(dy + row * r(1u));
    }
    stf(to_at, sum);
}

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ thread
    let parts = r(5u);
    for (var part = 0u; part < parts; part++) {
        let at = 6u + 10u * part;
        let lanes = r(at);
        var l = 0u;
        // Most lanes belong to other threads, so a thread waits for indices: it loads eight before it uses them.
        for (; l + 8u <= lanes; l = l + 8u) {
            let n0 = number_of(at, l);
            let n1 = number_of(at, l + 1u);
            let n2 = number_of(at, l + 2u);
            let n3 = number_of(at, l + 3u);
            let n4 = number_of(at, l + 4u);
            let n5 = number_of(at, l + 5u);
            let n6 = number_of(at, l + 6u);
            let n7 = number_of(at, l + 7u);
            add_lane(at, l, n0, element);
            add_lane(at, l + 1u, n1, element);
            add_lane(at, l + 2u, n2, element);
            add_lane(at, l + 3u, n3, element);
            add_lane(at, l + 4u, n4, element);
            add_lane(at, l + 5u, n5, element);
            add_lane(at, l + 6u, n6, element);
            add_lane(at, l + 7u, n7, element);
        }
        for (; l < lanes; l++) {
            add_lane(at, l, number_of(at, l), element);
        }
    }
}

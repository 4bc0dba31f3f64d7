// The derivatives of sum, mean and maximum over a list, one thread per element, which visits the values of its lane
// in order.
// Record: 0 elements per lane, 1 fold (0 sum, 1 mean, 2 maximum, 3 mean in one row for all values), 2..7 list, 7..11 gradient of
// the result, 11 first word of the edges, 12 position of their offsets in the tables; of the one row, 11..15 its address.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ thread
    let count = list_len(2u, lane);
    let dy = ldf(row_of(7u, lane) + element);
    if r(1u) == 3u {
        stf(row_of(11u, lane) + element, quotient(dy, f32(max(count, 1u))));
        return;
    }
    var winner = 0u;
    if r(1u) == 2u {
        var best = 0.0;
        for (var i = 0u; i < count; i++) {
            let x = ldf(list_item(2u, lane, i) + element);
            if i == 0u || exceeds(x, best) {
                best = x;
                winner = i;
            }
        }
    }
    var to_at = r(11u) + tables[r(12u) + lane] * r(0u) + element;
    for (var i = 0u; i < count; i++) {
        var dx = dy;
        if r(1u) == 1u {
            dx = quotient(dy, f32(count));
        }
        if r(1u) == 2u && i != winner {
            dx = 0.0;
        }
        stf(to_at, dx);
        to_at = to_at + r(0u);
    }
}

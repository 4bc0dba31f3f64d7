// Joins the sums of blocks to one scalar: a fold of a row for each store, then the stores from left to right.
// Record: 0 stores, 1 scalar. A store, from 2 on, is two words: the position of its first sum, and the number of
// sums.

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) local: u32) {
    let v = local % 16u;
    var total = 0.0;
    let stores = r(0u);
    for (var store = 0u; store < stores; store++) {
        let first = r(2u + 2u * store);
        let count = r(3u + 2u * store);
        var mine = 0.0;
        for (var sixteenth = 0u; sixteenth < count; sixteenth = sixteenth + 16u) {
            let block = sixteenth + v;
            if block < count {
                mine = mine + bitcast<f32>(numbers[first + block]);
            }
        }
        total = total + joined_sum(Row(0u, 0u, 0u, 0u, v, local, true), mine);
    }
    if local == 0u {
        numbers[r(1u)] = bitcast<u32>(total);
    }
}

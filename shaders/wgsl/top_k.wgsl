// The largest elements of each row of a value and their indices, one thread per row. Order: descending, ties by
// ascending index, NaN before all numbers.
// Record: 0 rows per lane, 1 width, 2 number of elements, 3..7 value, 7..11 largest elements, 11..15 their indices.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ thread
    let width = r(1u);
    let wanted = r(2u);
    let x = row_of(3u, lane) + element * width;
    let values = row_of(7u, lane) + element * wanted;
    let indices = row_of(11u, lane) + element * wanted;
    var last = 0.0;
    var last_index = GATHERED;
    for (var k = 0u; k < wanted; k++) {
        var best = 0.0;
        var best_index = GATHERED;
        for (var i = 0u; i < width; i++) {
            let e = ldf(x + i);
            let later = last_index == GATHERED || exceeds(last, e) || (!exceeds(e, last) && i > last_index);
            if later && (best_index == GATHERED || exceeds(e, best)) {
                best = e;
                best_index = i;
            }
        }
        stf(values + k, best);
        st(indices + k, best_index);
        last = best;
        last_index = best_index;
    }
}

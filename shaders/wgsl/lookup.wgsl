// Rows of tables, a thread an element: neighbouring threads read neighbours, and a thread writes one word whatever
// it reads. An index past the end is cut to the last.
//
// Record: 0 elements a lane, 1 the first element of the table that is read, 2 its last row, 3..7 the index, 7..11 the
// result, 11 how the table is stored, 12 how long its rows are.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ thread
    let row = min(ld(row_of(3u, lane)), r(2u));
    stf(row_of(7u, lane) + element, stored(r(11u), r(1u) + row * r(12u) + element));
}

// Rows of tables, one thread per element. Neighbouring threads read neighbouring elements. Indices are clamped to the
// last row.
// Record: 0 elements per lane, 1 first element of the table that is read, 2 last row, 3..7 index, 7..11 result, 11
// storage of the table, 12 length of its rows.

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

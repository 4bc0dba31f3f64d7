// One row of a value by its index, one thread per element. Indices are clamped to the last row.
// Record: 0 elements per lane, 1 last row, 2..6 value, 6..10 index, 10..14 result.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ thread
    let row = min(ld(row_of(6u, lane)), r(1u));
    st(row_of(10u, lane) + element, ld(row_of(2u, lane) + row * r(0u) + element));
}

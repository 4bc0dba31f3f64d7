// One row of a value by its index, a thread an element. An index past the end is cut to the last.
//
// Record: 0 elements a lane, 1 the last row, 2..6 the value, 6..10 the index, 10..14 the result.

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

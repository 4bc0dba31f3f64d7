// 1 at an index, 0 elsewhere, a thread an element. An index past the end is cut to the last.
//
// Record: 0 elements a lane, 1..5 the index, 5..9 the result.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ thread
    let hot = min(ld(row_of(1u, lane)), r(0u) - 1u);
    stf(row_of(5u, lane) + element, f32(u32(hot == element)));
}

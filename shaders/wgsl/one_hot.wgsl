// 1 at an index, 0 elsewhere, one thread per element. Indices are clamped to the last element.
// Record: 0 elements per lane, 1..5 index, 5..9 result.

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

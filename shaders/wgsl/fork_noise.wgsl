// The noise key of a call, derived from that of its caller, one thread per lane.
// Record: 0 one, 1 ordinal, 2..6 and 6..10 words of the key, 10..14 and 14..18 words of the new key.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ thread
    let key = noise_key(vec2<u32>(ld(row_of(2u, lane)), ld(row_of(6u, lane))), r(1u));
    st(row_of(10u, lane), key.x);
    st(row_of(14u, lane), key.y);
}

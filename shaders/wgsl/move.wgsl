// Moves of words: broadcast, transpose, slice, concat, split, and results that are stored elsewhere.
// Record: 0 elements per lane, 1 moves. A move is 23 words: 0 elements, 1..5 extents, 5..9 strides of the source,
// 9..13 strides of the result, 13 offset in the source, 14 offset in the result, 15..19 source, 19..23 result.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ thread
    var index = element;
    var at = 2u;
    let moves = r(1u);
    for (var number = 1u; number < moves; number++) {
        if index < r(at) {
            break;
        }
        index = index - r(at);
        at = at + 23u;
    }
    var from_at = row_of(at + 15u, lane) + r(at + 13u);
    var to_at = row_of(at + 19u, lane) + r(at + 14u);
    for (var axis = 4u; axis > 0u; axis--) {
        let place = index % r(at + axis);
        index = index / r(at + axis);
        from_at = from_at + place * r(at + 4u + axis);
        to_at = to_at + place * r(at + 8u + axis);
    }
    st(to_at, ld(from_at));
}

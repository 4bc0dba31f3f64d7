// An optimiser on whole arrays, a thread an element. The body is generated: it reads all that the element
// has, then writes.
//
// Record: 0 stretches, 1 where they begin, 2 words of a tile of states; then as the body says; a stretch is
// 6 words: 0 the group behind its last, 1 its first element, 2 the one behind its last, and what is added to
// the number of an element to find 3 its gradient, 4 its parameter, 5 of its tile the state's.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let tile = group.y * groups.x + group.x;
    if tile >= dispatch.threads {
        return;
    }
    let at = stretch_of(tile, r(1u), r(0u), 6u);
    let element = r(at + 1u) + (tile - groups_before(at, r(1u), 6u)) * 64u + local;
    if element >= r(at + 2u) {
        return;
    }
    let own = places_of(at, element);
//~ body
}

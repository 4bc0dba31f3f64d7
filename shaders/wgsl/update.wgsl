// An optimiser on whole arrays, one thread per element. The generated body reads everything before it writes
// anything.
// Record: 0 stretches, 1 position of the first, 2 words of a tile of states, then the words that the body reads. A
// stretch is 6 words: 0 end of its groups, 1 first element, 2 end of its elements, then the offsets from the number
// of an element to 3 its gradient and 4 its parameter, and 5 from the number of its tile's first word to its state.

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

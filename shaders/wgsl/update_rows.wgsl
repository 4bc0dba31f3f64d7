// An optimiser on sparse rows of tables, a thread an element of a row that a lookup named. A row that
// several lookups named is updated by its owner.
//
// Record: as of whole arrays, but a stretch is 11 words: behind the six are 6 where the sparse rows begin,
// 7 where the owners do, 8 the first of these lookups, 9 the one behind the last, 10 the width of a row.

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
    let at = stretch_of(tile, r(1u), r(0u), 11u);
    let item = (tile - groups_before(at, r(1u), 11u)) * 64u + local;
    let lookup = r(at + 8u) + item / r(at + 10u);
    if lookup >= r(at + 9u) {
        return;
    }
    let row = rows[r(at + 6u) + lookup];
    let element = row * r(at + 10u) + item % r(at + 10u);
    if rows[r(at + 7u) + row] != lookup + 1u || element < r(at + 1u) || element >= r(at + 2u) {
        return;
    }
    let own = places_of(at, element);
//~ body
}

// An optimiser on the sparse rows of tables, one thread per element of a row that a lookup names. Only the owner of a
// row updates it.
// Record: as for whole arrays, but a stretch is 11 words. After the six: 6 position of the list, 7 position of the
// owners, 8 first lookup, 9 end of the lookups, 10 width of a row.

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

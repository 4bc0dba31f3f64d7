// The rows of tables that lookups named, a thread a lookup: the list of them, and for each row the last
// lookup that named it, from 1 on; it owns the row.

struct Touch {
    // Where the rows of indices are: base, row, stride, width.
    indices: vec4<u32>,
    // The first word of the list and of the owners, lookups listed before, and these.
    list: u32,
    owners: u32,
    before: u32,
    lookups: u32,
    // The last row of the table, to which indices are cut.
    last: u32,
    padding0: u32,
    padding1: u32,
    padding2: u32,
}

@group(0) @binding(0) var<uniform> touch: Touch;
@group(0) @binding(1) var<storage, read> tables: array<u32>;
@group(0) @binding(2) var<storage, read_write> rows: array<atomic<u32>>;
//~ memory

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let lookup = (group.y * groups.x + group.x) * 64u + local;
    if lookup >= touch.lookups {
        return;
    }
    var place = touch.indices.y + lookup * touch.indices.z;
    if touch.indices.z == 0xffffffffu {
        place = tables[touch.indices.y + lookup];
    }
    let row = min(ld(touch.indices.x + place * touch.indices.w), touch.last);
    atomicStore(&rows[touch.list + touch.before + lookup], row);
    atomicMax(&rows[touch.owners + row], touch.before + lookup + 1u);
}

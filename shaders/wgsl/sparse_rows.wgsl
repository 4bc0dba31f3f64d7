// The rows of tables that lookups name, one thread per lookup. It writes the list of rows, and for each row its
// owner: the number of the last lookup that names it, plus one.

struct Args {
    // The address of the row indices: base, row, stride, width.
    indices: vec4<u32>,
    // The first words of the list and of the owners, the lookups listed before, and the lookups of this dispatch.
    list: u32,
    owners: u32,
    before: u32,
    lookups: u32,
    // The last row of the table. Indices are clamped to it.
    last: u32,
    padding0: u32,
    padding1: u32,
    padding2: u32,
}

@group(0) @binding(0) var<uniform> args: Args;
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
    if lookup >= args.lookups {
        return;
    }
    var place = args.indices.y + lookup * args.indices.z;
    if args.indices.z == 0xffffffffu {
        place = tables[args.indices.y + lookup];
    }
    let row = min(ld(args.indices.x + place * args.indices.w), args.last);
    atomicStore(&rows[args.list + args.before + lookup], row);
    atomicMax(&rows[args.owners + row], args.before + lookup + 1u);
}

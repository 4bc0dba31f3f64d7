// Products on matrix units: a subgroup computes a block of DOWN by ACROSS squares of SIZE by SIZE sums, from terms
// that dispatches before have gathered, and leaves them for the dispatch that takes them. Nothing is exchanged
// within a dispatch, so no order among its threads matters. Four blocks are a group's; sums are chains in
// ascending steps of SIZE, in whatever order a device adds within a step.
//
// Record: 0 rows, 1 terms a row, 2 where the operand's terms begin, 3 where the weight's begin, 4 columns, 5 where
// sums begin. Rows and columns are whole blocks; terms and columns are multiples of 16, as is where they begin.

//~ shape

@compute @workgroup_size(128)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(num_subgroups) subgroups: u32,
) {
    let number = enter(group.y * groups.x + group.x);
    let rows = r(0u);
    let depth = r(1u);
    let columns = r(4u);
    let across = (columns + 2u * ACROSS * SIZE - 1u) / (2u * ACROSS * SIZE);
    for (var block = subgroup; block < 4u; block = block + subgroups) {
        let row = (2u * (number / across) + block / 2u) * DOWN * SIZE;
        let column = (2u * (number % across) + block % 2u) * ACROSS * SIZE;
        if row < rows && column < columns {
            let x = r(2u) + row * depth;
            let w = r(3u) + column;
            let to = r(5u) + row * columns + column;
//~ body
        }
    }
}

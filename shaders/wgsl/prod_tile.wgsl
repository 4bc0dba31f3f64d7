// Products of many rows: a group of 16 by 16 threads makes a tile of HIGH rows and, of every group of
// columns, WIDE columns; a thread has DOWN rows and ACROSS columns of each. DEEP columns of the gathered operand
// and as many rows of the weight at a time are in the memory of the group, TALL rows and BROAD columns a word, so
// that a thread reads neighbours at once. Every sum is one chain in ascending k, part by part: the bits of
// `prod_few`.
//
// Record: see `products.wgsl`. Groups are tiles: a row of tiles has `ceil(columns / WIDE)`.

//~ shape

//~ epilogue

var<workgroup> starts: array<u32, HIGH>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let number = enter(group.y * groups.x + group.x);
    let columns = r(1u);
    let each = r(2u);
    // The rows of all lanes of the segment.
    let rows = segment.threads;
    let across = (columns + WIDE - 1u) / WIDE;
    let first_row = (number / across) * HIGH;
    let first_column = (number % across) * WIDE;
    if first_row >= rows {
        return;
    }
    let down = (local / 16u) * DOWN;
    let right = local % 16u;
//~ body
}

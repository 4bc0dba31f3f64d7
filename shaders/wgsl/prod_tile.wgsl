// Products of many rows, tile by tile. A group of 16 by 16 threads computes HIGH rows and WIDE columns of every
// column group; a thread computes DOWN rows and ACROSS columns of each. Group memory holds DEEP columns of the
// gathered operand and DEEP rows of the weight at a time. A word of it holds TALL rows or BROAD columns, so that a
// thread reads neighbours at once. Every sum is one chain in ascending k, part by part, with the bits of `prod_few`.
// Record: see `products.wgsl`. A row of tiles has `ceil(columns / WIDE)` groups.

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
    // In a loop over the elements of a thread, so that the text of the epilogue occurs once.
    for (var i = 0u; i < DOWN; i++) {
        let row = first_row + down + i;
        if row < rows {
            let lane = segment.first + row / each;
            for (var j = 0u; j < ACROSS; j++) {
                let column = first_column + (j / BROAD) * 16u * BROAD + right * BROAD + j % BROAD;
                if column < columns {
                    let element = (row % each) * columns + column;
//~ call
                }
            }
        }
    }
}

// Gradients of weights, tile by tile. A group of 16 by 16 threads owns EDGE by EDGE elements of the block; a thread
// owns EACH by EACH neighbours of them. Group memory holds DEEP rows of x and dy at a time, EACH elements per word,
// so that a thread reads all it needs of a row at once. Every element is one chain over the rows of all parts in
// order, with the bits of `wgrad`.
// Record: as for `wgrad`. A row of tiles has `ceil(columns / EDGE)` groups.

//~ shape

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let number = enter(group.y * groups.x + group.x);
    let columns = r(1u);
    let depth = r(0u) / columns;
    let across = (columns + EDGE - 1u) / EDGE;
    let first_k = (number / across) * EDGE;
    let first_n = (number % across) * EDGE;
    if first_k >= depth {
        return;
    }
    let down = local / 16u;
    let right = local % 16u;
//~ starts
    let k_at = first_k + EACH * right;
    let n_at = first_n + EACH * right;
    let k_end = depth - 1u;
    let n_end = columns - 1u;
    let parts = r(4u);
    for (var part = 0u; part < parts; part++) {
        let at = 5u + 10u * part;
        let each = r(at + 1u);
        let rows = r(at) * each;
        // A load takes much longer than a multiply-add, so the registers of a thread hold its words of the rows that follow.
//~ nexts
        for (var first = 0u; first < rows; first = first + DEEP) {
            if first == 0u {
                let next = down;
//~ loads
            }
            // The memory may still be read.
            workgroupBarrier();
//~ puts
            workgroupBarrier();
            if first + DEEP < rows {
                let next = first + DEEP + down;
//~ loads
            }
            if first + DEEP <= rows {
                // Its length is known, so compilers may unroll it.
                for (var q = 0u; q < DEEP; q++) {
                    let x = xs[q * 16u + down];
                    let y = ys[q * 16u + right];
//~ chains
                }
            } else {
                for (var q = 0u; q < rows - first; q++) {
                    let x = xs[q * 16u + down];
                    let y = ys[q * 16u + right];
//~ chains
                }
            }
        }
    }
//~ stores
}

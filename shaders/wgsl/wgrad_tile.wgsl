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
    // In loops of known length, which compilers may unroll, so that the text of a load occurs once.
    var kept: array<f32, OWN>;
    for (var i = 0u; i < OWN; i++) {
        let k = min(first_k + EACH * down + i / EACH, depth - 1u);
        let n = min(first_n + EACH * right + i % EACH, columns - 1u);
        kept[i] = ldf(r(2u) + k * r(3u) + n);
    }
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
        var x_next: array<f32, WORDS * EACH>;
        var y_next: array<f32, WORDS * EACH>;
        for (var first = 0u; first < rows + DEEP; first = first + DEEP) {
            if first > 0u {
//~ puts
                workgroupBarrier();
            }
            if first < rows {
                // Rows past the last one, and elements past an edge, are loaded again, and their results are dropped.
                for (var word = 0u; word < WORDS; word++) {
                    let row = min(first + down + 16u * word, rows - 1u);
                    let x = row_of(at + 2u, row / each) + (row % each) * depth;
                    let y = row_of(at + 6u, row / each) + (row % each) * columns;
                    for (var i = 0u; i < EACH; i++) {
                        x_next[word * EACH + i] = ldf(x + min(k_at + i, k_end));
                        y_next[word * EACH + i] = ldf(y + min(n_at + i, n_end));
                    }
                }
            }
            if first > 0u {
                if first <= rows {
                    // Its length is known, so compilers may unroll it.
                    for (var q = 0u; q < DEEP; q++) {
                        let x = xs[q * 16u + down];
                        let y = ys[q * 16u + right];
//~ chains
                    }
                } else {
                    for (var q = 0u; q < rows + DEEP - first; q++) {
                        let x = xs[q * 16u + down];
                        let y = ys[q * 16u + right];
//~ chains
                    }
                }
                workgroupBarrier();
            }
        }
    }
//~ stores
    for (var i = 0u; i < OWN; i++) {
        let k = first_k + EACH * down + i / EACH;
        let n = first_n + EACH * right + i % EACH;
        if k < depth && n < columns {
            stf(r(2u) + k * r(3u) + n, kept[i]);
        }
    }
}

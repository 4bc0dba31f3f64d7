// Gradients of biases. A group of 256 threads owns 32 elements. All its threads load 64 rows into group memory, eight each,
// while the rows before are added: a load takes much longer than an addition. One thread per element adds the rows of all
// parts in order, so the sum is one chain.
// Record: 0 elements, 1 first word of the store in the arena, 2 parts. A part, from 3 on, is 6 words: 0 lanes, 1 rows
// per lane, 2..6 dy.

// Row `row` and element `column` are at `32 * row + column`.
var<workgroup> loaded: array<f32, 2048>;

// An element of row `q` of all lanes of a part. Rows past the last one are the last one, and are not added.
fn dy_of(at: u32, q: u32, rows: u32, element: u32) -> f32 {
    let each = r(at + 1u);
    let row = min(q, rows - 1u);
    return ldf(row_of(at + 2u, row / each) + (row % each) * r(0u) + element);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let number = enter(group.y * groups.x + group.x);
    let column = local % 32u;
    let slice = local / 32u;
    let wanted = 32u * number + column;
    let element = min(wanted, r(0u) - 1u);
    var sum = ldf(r(1u) + element);
    let parts = r(2u);
    for (var part = 0u; part < parts; part++) {
        let at = 3u + 6u * part;
        let rows = r(at) * r(at + 1u);
        var next: array<f32, 8>;
        for (var first = 0u; first < rows + 64u; first = first + 64u) {
            // Loops over eight words have a known length, so compilers may unroll them.
            if first > 0u {
                for (var i = 0u; i < 8u; i++) {
                    loaded[local + 256u * i] = next[i];
                }
                workgroupBarrier();
            }
            if first < rows {
                for (var i = 0u; i < 8u; i++) {
                    next[i] = dy_of(at, first + slice + 8u * i, rows, element);
                }
            }
            if first > 0u {
                if slice == 0u {
                    let count = min(64u, rows + 64u - first);
                    var row = 0u;
                    for (; row + 8u <= count; row = row + 8u) {
                        sum = sum + loaded[32u * row + column];
                        sum = sum + loaded[32u * row + 32u + column];
                        sum = sum + loaded[32u * row + 64u + column];
                        sum = sum + loaded[32u * row + 96u + column];
                        sum = sum + loaded[32u * row + 128u + column];
                        sum = sum + loaded[32u * row + 160u + column];
                        sum = sum + loaded[32u * row + 192u + column];
                        sum = sum + loaded[32u * row + 224u + column];
                    }
                    for (; row < count; row++) {
                        sum = sum + loaded[32u * row + column];
                    }
                }
                workgroupBarrier();
            }
        }
    }
    if slice == 0u && wanted < r(0u) {
        stf(r(1u) + element, sum);
    }
}

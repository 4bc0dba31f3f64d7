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
        if rows > 0u {
            var next0 = dy_of(at, slice, rows, element);
            var next1 = dy_of(at, slice + 8u, rows, element);
            var next2 = dy_of(at, slice + 16u, rows, element);
            var next3 = dy_of(at, slice + 24u, rows, element);
            var next4 = dy_of(at, slice + 32u, rows, element);
            var next5 = dy_of(at, slice + 40u, rows, element);
            var next6 = dy_of(at, slice + 48u, rows, element);
            var next7 = dy_of(at, slice + 56u, rows, element);
            for (var first = 0u; first < rows; first = first + 64u) {
                // The memory may still be read.
                workgroupBarrier();
                loaded[local] = next0;
                loaded[local + 256u] = next1;
                loaded[local + 512u] = next2;
                loaded[local + 768u] = next3;
                loaded[local + 1024u] = next4;
                loaded[local + 1280u] = next5;
                loaded[local + 1536u] = next6;
                loaded[local + 1792u] = next7;
                workgroupBarrier();
                let q = first + 64u + slice;
                if first + 64u < rows {
                    next0 = dy_of(at, q, rows, element);
                    next1 = dy_of(at, q + 8u, rows, element);
                    next2 = dy_of(at, q + 16u, rows, element);
                    next3 = dy_of(at, q + 24u, rows, element);
                    next4 = dy_of(at, q + 32u, rows, element);
                    next5 = dy_of(at, q + 40u, rows, element);
                    next6 = dy_of(at, q + 48u, rows, element);
                    next7 = dy_of(at, q + 56u, rows, element);
                }
                if slice == 0u {
                    let count = min(64u, rows - first);
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
            }
        }
    }
    if slice == 0u && wanted < r(0u) {
        stf(r(1u) + element, sum);
    }
}

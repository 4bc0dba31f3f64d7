// Gradients of tables. A thread owns one column of the rows that have one remainder modulo `remainders`, and adds the
// rows of all parts with that remainder, in order. A group loads the numbers for 128 rows into group memory at a time, because
// most of them belong to other threads. A thread collects its own and loads eight of them before it adds them: a load takes
// much longer than an addition.
// Record: 0 columns times remainders, 1 columns, 2 remainders, 3 first word of the store in the arena, 4 last row, 5
// parts. A part, from 6 on, is 10 words: 0 lanes, 1 rows per lane, 2..6 index, 6..10 dy.

// The rows of the table that lanes looked up, and their remainders.
var<workgroup> numbers: array<u32, 128>;
var<workgroup> owners: array<u32, 128>;

// The row of the table to which a thread adds, and the sum so far.
var<private> current: u32;
var<private> sum: f32;

// The first word of a column in a row of the table.
fn place_of(number: u32, column: u32) -> u32 {
    return r(3u) + number * r(1u) + column;
}

// A column of row `q` of all lanes of a part.
fn dy_of(at: u32, q: u32, column: u32) -> f32 {
    let each = r(at + 1u);
    return ldf(row_of(at + 6u, q / each) + (q % each) * r(1u) + column);
}

// Adds an element to a row of the table.
fn add_to(number: u32, column: u32, y: f32) {
    if number != current {
        current = number;
        sum = ldf(place_of(number, column));
    }
    sum = sum + y;
    stf(place_of(number, column), sum);
}

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let element = enter(group.y * groups.x + group.x) * 64u + local;
    let column = element % r(1u);
    // Threads past the end own no remainder, but load numbers for the others.
    let own = element / r(1u);
    current = GATHERED;
    let parts = r(5u);
    for (var part = 0u; part < parts; part++) {
        let at = 6u + 10u * part;
        let each = r(at + 1u);
        let rows = r(at) * each;
        for (var first = 0u; first < rows; first = first + 128u) {
            // The memory may still be read.
            workgroupBarrier();
            for (var l = local; l < 128u; l = l + 64u) {
                let number = min(ld(row_of(at + 2u, min(first + l, rows - 1u) / each)), r(4u));
                numbers[l] = number;
                owners[l] = number % r(2u);
            }
            workgroupBarrier();
            let count = min(128u, rows - first);
            var mine: array<u32, 128>;
            var collected = 0u;
            for (var l = 0u; l < count; l++) {
                if owners[l] == own {
                    mine[collected] = l;
                    collected = collected + 1u;
                }
            }
            for (var begin = 0u; begin < collected; begin = begin + 8u) {
                // Their lengths are known, so compilers may unroll them. Places past the last one load the last one again.
                var y: array<f32, 8>;
                for (var i = 0u; i < 8u; i++) {
                    y[i] = dy_of(at, first + mine[min(begin + i, collected - 1u)], column);
                }
                for (var i = 0u; i < 8u; i++) {
                    if begin + i < collected {
                        add_to(numbers[mine[begin + i]], column, y[i]);
                    }
                }
            }
        }
    }
}

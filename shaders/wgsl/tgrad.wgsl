// Gradients of tables. A thread owns one column of the rows that have one remainder modulo `remainders`, and adds the
// rows of all parts with that remainder, in order. A group loads the numbers for 256 rows into group memory at a time, because
// most of them belong to other threads. A thread collects eight of its own before it loads them: a load takes much longer than
// an addition.
// Record: 0 columns times remainders, 1 columns, 2 remainders, 3 first word of the store in the arena, 4 last row, 5
// parts. A part, from 6 on, is 10 words: 0 lanes, 1 rows per lane, 2..6 index, 6..10 dy.

// The rows of the table that lanes looked up, and their remainders.
var<workgroup> numbers: array<u32, 256>;
var<workgroup> owners: array<u32, 256>;

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

// Adds an element to a row of the table, unless it is one too many.
fn add_to(number: u32, column: u32, y: f32, is_wanted: bool) {
    if is_wanted && number != current {
        current = number;
        sum = ldf(place_of(number, column));
    }
    sum = select(sum, sum + y, is_wanted);
    stf(place_of(current, column), sum);
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
        for (var first = 0u; first < rows; first = first + 256u) {
            // The memory may still be read.
            workgroupBarrier();
            for (var l = local; l < 256u; l = l + 64u) {
                let number = min(ld(row_of(at + 2u, min(first + l, rows - 1u) / each)), r(4u));
                numbers[l] = number;
                owners[l] = number % r(2u);
            }
            workgroupBarrier();
            let count = min(256u, rows - first);
            var mine: array<u32, 8>;
            var collected = 0u;
            for (var l = 0u; l < count; l++) {
                if owners[l] == own {
                    mine[collected] = l;
                    collected = collected + 1u;
                }
                if collected == 8u || (l + 1u == count && collected > 0u) {
                    // Places past the last one load the last one again.
                    let end = collected - 1u;
                    let l0 = mine[0];
                    let l1 = mine[min(1u, end)];
                    let l2 = mine[min(2u, end)];
                    let l3 = mine[min(3u, end)];
                    let l4 = mine[min(4u, end)];
                    let l5 = mine[min(5u, end)];
                    let l6 = mine[min(6u, end)];
                    let l7 = mine[min(7u, end)];
                    let y0 = dy_of(at, first + l0, column);
                    let y1 = dy_of(at, first + l1, column);
                    let y2 = dy_of(at, first + l2, column);
                    let y3 = dy_of(at, first + l3, column);
                    let y4 = dy_of(at, first + l4, column);
                    let y5 = dy_of(at, first + l5, column);
                    let y6 = dy_of(at, first + l6, column);
                    let y7 = dy_of(at, first + l7, column);
                    add_to(numbers[l0], column, y0, collected > 0u);
                    add_to(numbers[l1], column, y1, collected > 1u);
                    add_to(numbers[l2], column, y2, collected > 2u);
                    add_to(numbers[l3], column, y3, collected > 3u);
                    add_to(numbers[l4], column, y4, collected > 4u);
                    add_to(numbers[l5], column, y5, collected > 5u);
                    add_to(numbers[l6], column, y6, collected > 6u);
                    add_to(numbers[l7], column, y7, collected > 7u);
                    collected = 0u;
                }
            }
        }
    }
}

// What every module begins with: the numbers of a dispatch, and how memory is reached.
//
// `tables` holds the row tables of the plan and, behind them, records and segments. A dispatch executes one
// or more segments, each a stretch of groups with a record of its own: stages of different steps that run
// the same program. Rows of all slabs, registers, bound numbers and gradients are words of one arena;
// parameters are words of one other array, in vectors of four. Each is cut into as many bindings as the device
// needs; the functions `ld`, `st`, `param` and `param4` that are put in here know the cuts.
//
// A place of a record that names rows is four words: base, row, stride, width. The row of lane `l` is
// `row + l * stride`, or `tables[row + l]` where the stride is TABLED; its first word is
// `base + row * width`.

struct Dispatch {
    // Where its segments begin in the tables: four words each, 0 the first group, 1 record, 2 threads,
    // 3 first lane; and how many there are.
    segments: u32,
    count: u32,
    // Zero, which no compiler knows: infinities and NaN are made with it at run time.
    zero: u32,
}

struct Segment {
    // Where the record of the segment begins in the tables.
    record: u32,
    // How many threads have work (of templates that are executed by groups: how many groups).
    threads: u32,
    // The first lane.
    first: u32,
}

//~ numbers
@group(0) @binding(1) var<storage, read> tables: array<u32>;
//~ memory

// What the group of this thread executes.
var<private> segment: Segment;

const TABLED: u32 = 0xffffffffu;

// Finds the segment of a group; gives the number of the group in it.
fn enter(group: u32) -> u32 {
    var low = 0u;
    var high = dispatch.count;
    while low + 1u < high {
        let middle = (low + high) / 2u;
        if tables[dispatch.segments + 4u * middle] <= group {
            low = middle;
        } else {
            high = middle;
        }
    }
    let at = dispatch.segments + 4u * low;
    segment = Segment(tables[at + 1u], tables[at + 2u], tables[at + 3u]);
    return group - tables[at];
}

fn r(at: u32) -> u32 {
    return tables[segment.record + at];
}

fn row_of(at: u32, lane: u32) -> u32 {
    let stride = r(at + 2u);
    var row = r(at + 1u) + lane * stride;
    if stride == TABLED {
        row = tables[r(at + 1u) + lane];
    }
    return r(at) + row * r(at + 3u);
}

fn ldf(at: u32) -> f32 {
    return bitcast<f32>(ld(at));
}

fn stf(at: u32, x: f32) {
    st(at, bitcast<u32>(x));
}

fn paramf(at: u32) -> f32 {
    return bitcast<f32>(param(at));
}

// Four neighbours, from a multiple of four on.
fn paramf4(at: u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(param4(at));
}

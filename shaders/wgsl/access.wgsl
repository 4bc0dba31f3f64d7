// The head of every module of a plan: the arguments of a dispatch, and access to memory.
// `tables` holds the row tables of the plan, then records and segments. A dispatch executes one or more segments. A
// segment is a range of groups with a record of its own: stages of different steps that run the same program. The
// arena is one array of words for the rows of all slabs, registers, bound inputs and gradients. Parameters are
// another array, of vectors of four words. Both are split across bindings; the generated functions `ld`, `st`,
// `param` and `param4` hide the split.
// The address of rows in a record is four words: base, row, stride, width. The row of lane `l` is `row + l * stride`,
// or `tables[row + l]` if the stride is GATHERED. Its first word is `base + row * width`.

struct Dispatch {
    // The position of the segments in the tables, and their number. A segment is four words: 0 first group, 1 record,
    // 2 threads, 3 first lane.
    segments: u32,
    count: u32,
    // Zero, but unknown to compilers: infinities and NaN are built from it at run time.
    zero: u32,
}

struct Segment {
    // The position of the segment's record in the tables.
    record: u32,
    // The number of threads that have work. For templates with one lane per group: the number of groups.
    threads: u32,
    // The first lane.
    first: u32,
}

//~ numbers
@group(0) @binding(1) var<storage, read> tables: array<u32>;
//~ memory

// The segment of this thread's group.
var<private> segment: Segment;

const GATHERED: u32 = 0xffffffffu;
// The mark of lists that share ranges of numbers.
const SHARED: u32 = 0xfffffffeu;

// Finds the segment of a group. Returns the number of the group in it.
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
    if stride == GATHERED {
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

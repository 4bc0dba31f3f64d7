// What every module begins with: the numbers of a dispatch, and how memory is reached.
//
// `tables` holds the row tables of the plan and, behind them, a record a dispatch. Rows of all slabs,
// registers, bound numbers and gradients are words of one arena; parameters are words of one other
// array. Each is cut into as many bindings as the device needs; the functions `ld`, `st` and `param`
// that are put in here know the cuts.
//
// A place of a record that names rows is four words: base, row, stride, width. The row of lane `l` is
// `row + l * stride`, or `tables[row + l]` where the stride is TABLED; its first word is
// `base + row * width`.

struct Play {
    // Where the record of the dispatch begins in the tables.
    record: u32,
    // How many threads have work (of templates that are played by groups: how many groups).
    threads: u32,
    // The first lane of the dispatch.
    first: u32,
    // Zero, which no compiler knows: infinities and NaN are made with it at run time.
    zero: u32,
}

@group(0) @binding(0) var<uniform> play: Play;
@group(0) @binding(1) var<storage, read> tables: array<u32>;
//~ memory

const TABLED: u32 = 0xffffffffu;

fn r(at: u32) -> u32 {
    return tables[play.record + at];
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

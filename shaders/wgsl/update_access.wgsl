// What every module of an update begins with. An update binds what it changes and nothing else: one buffer
// each of the gradients, the parameters and the states, whichever a stretch of elements lies in; so arrays
// of any size are updated within the bindings that every device has.

struct Dispatch {
    // Where the record of the dispatch begins in the tables.
    record: u32,
    // How many groups have work.
    threads: u32,
    first: u32,
    // Zero, which no compiler knows: infinities and NaN are made with it at run time.
    zero: u32,
}

@group(0) @binding(0) var<uniform> dispatch: Dispatch;
@group(0) @binding(1) var<storage, read> tables: array<u32>;
@group(0) @binding(2) var<storage, read> gradients: array<u32>;
@group(0) @binding(3) var<storage, read_write> params: array<u32>;
// Tiles of 64 elements: those of the first state, then those of the second, and so on.
@group(0) @binding(4) var<storage, read_write> states: array<u32>;
// Bound floats, scalars, sums of blocks, lanes of blocks that two buffers share.
@group(0) @binding(5) var<storage, read_write> numbers: array<u32>;
// Of tables, the sparse rows as lookups name them, and which of these owns a row.
@group(0) @binding(6) var<storage, read> rows: array<u32>;

fn r(at: u32) -> u32 {
    return tables[dispatch.record + at];
}

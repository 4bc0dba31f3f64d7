// The head of every module of an update. A dispatch binds one buffer each of the gradients, the parameters and the
// states: those that hold its stretch of elements. So arrays of any size are updated with the bindings that every
// device has.

struct Dispatch {
    // The position of the dispatch's record in the tables.
    record: u32,
    // The number of groups that have work.
    threads: u32,
    first: u32,
    // Zero, but unknown to compilers: infinities and NaN are built from it at run time.
    zero: u32,
}

@group(0) @binding(0) var<uniform> dispatch: Dispatch;
@group(0) @binding(1) var<storage, read> tables: array<u32>;
@group(0) @binding(2) var<storage, read> gradients: array<u32>;
@group(0) @binding(3) var<storage, read_write> params: array<u32>;
// Tiles of 64 elements: those of the first state, then those of the second, and so on.
@group(0) @binding(4) var<storage, read_write> states: array<u32>;
// Bound floats, scalars, sums of blocks, and lanes that one buffer hands over to the next.
@group(0) @binding(5) var<storage, read_write> numbers: array<u32>;
// The owners of table rows, then the list of rows that lookups name.
@group(0) @binding(6) var<storage, read> rows: array<u32>;

fn r(at: u32) -> u32 {
    return tables[dispatch.record + at];
}

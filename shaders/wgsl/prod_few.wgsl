// Products, a thread an element: of few rows, where reading the weights is the work and neighbouring
// threads read neighbouring columns.
//
// Record: 0 elements a lane, 1 columns, 2 parts, 3 what sums start from (0 zero, 1 a bias at the word of
// the parameters in 4, 2 the place in 4..8), 8..12 the result; a part from 12 on is 8 words: 0..4 the
// source, 4 its width a row, 5 the first word of the weight, 6 from one k to the next, 7 from one column
// to the next.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ thread
    let columns = r(1u);
    let row = element / columns;
    let column = element % columns;
    var sum = 0.0;
    if r(3u) == 1u {
        sum = paramf(r(4u) + column);
    }
    if r(3u) == 2u {
        sum = ldf(row_of(4u, lane) + element);
    }
    for (var part = 0u; part < r(2u); part++) {
        let at = 12u + 8u * part;
        let width = r(at + 4u);
        let x = row_of(at, lane) + row * width;
        var w = r(at + 5u) + column * r(at + 7u);
        let step = r(at + 6u);
        for (var k = 0u; k < width; k++) {
            sum = mad(ldf(x + k), paramf(w), sum);
            w = w + step;
        }
    }
    stf(row_of(8u, lane) + element, sum);
}

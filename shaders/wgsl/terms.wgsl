// Terms of products for matrix units: operands gathered as halves, two a word, part after part; zeros behind the
// last. Where numbers are pairs of halves a row is three pieces: upper halves, these once more, lower halves, to meet
// upper, lower and upper ones of the weight.
//
// Record: 0 words a lane, 1 words a row, 2 where the first lane's begin, 3 parts, 4 terms of a piece; a part is six
// words: 0..4 the source, 4 its width a row, 5 where in the row it begins.

fn term(lane: u32, row: u32, k: u32) -> f32 {
    for (var number = 0u; number < r(3u); number++) {
        let at = 5u + 6u * number;
        // Before its first element this is more than any width.
        let place = k - r(at + 5u);
        if place < r(at + 4u) {
            return ldf(row_of(at, lane) + row * r(at + 4u) + place);
        }
    }
    return 0.0;
}

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ thread
    let row = element / r(1u);
    let k = 2u * (element % r(1u));
    let place = k % r(4u);
    let two = vec2<f32>(term(lane, row, place), term(lane, row, place + 1u));
    terms[r(2u) + thread] = two_halves(two, k / r(4u) == 2u);
}

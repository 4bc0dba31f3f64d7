// Weights of a product for matrix units: halves, two a word, the columns of all groups side by side; zeros behind
// the last column and the last k. Where numbers are pairs of halves the rows are three pieces: upper, lower, upper.
//
// Record: 0 words, 1 words a row, 2 where they begin, 3 columns of a group, 4 columns of all groups, 5 rows of a
// piece, 6 groups, 7 parts; then each group's first column; then six words a part: 0 its first k, 1 its width, 2 the
// first element of the weight, 3 from one k to the next, 4 from one column to the next, 5 how it is stored.

fn weight_term(k: u32, column: u32) -> f32 {
    if column >= r(4u) {
        return 0.0;
    }
    let own = r(8u + column / r(3u)) + column % r(3u);
    for (var number = 0u; number < r(7u); number++) {
        let at = 8u + r(6u) + 6u * number;
        let place = k - r(at);
        if place < r(at + 1u) {
            return stored(r(at + 5u), r(at + 2u) + place * r(at + 3u) + own * r(at + 4u));
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
    let k = element / r(1u);
    let column = 2u * (element % r(1u));
    let place = k % r(5u);
    let two = vec2<f32>(weight_term(place, column), weight_term(place, column + 1u));
    terms[r(2u) + lane * r(0u) + element] = two_halves(two, k / r(5u) == 1u);
}

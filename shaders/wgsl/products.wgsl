// Products. The record of a product is 0 elements a lane, 1 columns, 2 rows a lane; from 3 on where the
// block of each product begins; then what the epilogue wants. The products of a dispatch are as wide as one
// another: each computes `columns` columns at every place of its groups, so that what the epilogue of a row
// and column needs of all of them is in one thread.
//
// A block is 0 parts, 1 what sums start from (0 zero, 1 a bias, 2 a place), 2..6 the place, or in 2 the
// first element of the bias, 6 how the bias is stored; from 7 on a group's first column each; then 9 words a
// part: 0..4 the source, 4 its width a row, 5 the first element of the weight, 6 from one k to the next, 7
// from one column to the next, 8 how the weight is stored.

// An element of a parameter: 0 a word each, 1 halves, 2 the upper halves of words.
fn stored(kind: u32, at: u32) -> f32 {
    if kind == 0u {
        return paramf(at);
    }
    let half = (param(at >> 1u) >> ((at & 1u) * 16u)) & 0xffffu;
    if kind == 1u {
        return widened(half);
    }
    return bitcast<f32>(half << 16u);
}

// Four neighbours, from a multiple of four on. Halves are read with the four beside them.
fn stored4(kind: u32, at: u32) -> vec4<f32> {
    if kind == 0u {
        return paramf4(at);
    }
    let eight = param4((at >> 1u) & 0xfffffffcu);
    var pair = eight.xy;
    if (at & 4u) != 0u {
        pair = eight.zw;
    }
    let halves = vec4<u32>(pair.x & 0xffffu, pair.x >> 16u, pair.y & 0xffffu, pair.y >> 16u);
    if kind == 1u {
        return vec4<f32>(widened(halves.x), widened(halves.y), widened(halves.z), widened(halves.w));
    }
    return bitcast<vec4<f32>>(halves << vec4<u32>(16u));
}

// The number that a half of a word stands for, exactly, on devices that know no halves.
fn widened(half: u32) -> f32 {
    let sign = (half & 0x8000u) << 16u;
    let magnitude = half & 0x7fffu;
    var bits = (magnitude << 13u) + 0x38000000u;
    if magnitude >= 0x7c00u {
        bits = (magnitude << 13u) | 0x7f800000u;
    }
    if magnitude < 0x0400u {
        // Denormals count multiples of 2^-24, which are no denormals here.
        bits = bitcast<u32>(f32(magnitude) * bitcast<f32>(0x33800000u));
    }
    return bitcast<f32>(sign | bits);
}

// What a sum starts from, of a row of a lane, at a column of the product.
fn sum_start(block: u32, lane: u32, row: u32, column: u32) -> f32 {
    let kind = r(block + 1u);
    if kind == 1u {
        return stored(r(block + 6u), r(block + 2u) + column);
    }
    if kind == 2u {
        return ldf(row_of(block + 2u, lane) + row * r(1u) + column);
    }
    return 0.0;
}

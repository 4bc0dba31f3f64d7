// Products. Record: 0 elements per lane, 1 columns, 2 rows per lane, from 3 on the position of each product's block,
// then the words that the epilogue reads. All products of a dispatch have `columns` columns in each of their groups.
// So one thread holds everything that the epilogue reads of a row and a column.
// A block is: 0 parts, 1 initial value (0 zero, 1 a bias, 2 a view), 2..6 the address of the view, or in 2 the first
// element of the bias, 6 storage of the bias, from 7 on the first column of each group, then 9 words per part: 0..4
// source, 4 its width per row, 5 first element of the weight, 6 step to the next k, 7 step to the next column, 8
// storage of the weight.

// An element of a parameter. Its storage is: 0 a word, 1 `f16`, 2 `bf16`.
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

// The chain of the products of `width` words with as many elements of a parameter.
fn stored_chain(x: u32, kind: u32, at: u32, width: u32) -> f32 {
    var chain = 0.0;
    var i = 0u;
    for (; i + 4u <= width; i = i + 4u) {
        let x0 = ldf(x + i + 0u);
        let y0 = stored(kind, at + i + 0u);
        let x1 = ldf(x + i + 1u);
        let y1 = stored(kind, at + i + 1u);
        let x2 = ldf(x + i + 2u);
        let y2 = stored(kind, at + i + 2u);
        let x3 = ldf(x + i + 3u);
        let y3 = stored(kind, at + i + 3u);
        chain = mad(x0, y0, chain);
        chain = mad(x1, y1, chain);
        chain = mad(x2, y2, chain);
        chain = mad(x3, y3, chain);
    }
    for (; i < width; i++) {
        chain = mad(ldf(x + i), stored(kind, at + i), chain);
    }
    return chain;
}

// Four neighbours, from a multiple of four on. Elements of 16 bits are read with the four beside them.
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

// The value of an `f16`, exactly, on devices without 16-bit floats.
fn widened(half: u32) -> f32 {
    let sign = (half & 0x8000u) << 16u;
    let magnitude = half & 0x7fffu;
    var bits = (magnitude << 13u) + 0x38000000u;
    if magnitude >= 0x7c00u {
        bits = (magnitude << 13u) | 0x7f800000u;
    }
    if magnitude < 0x0400u {
        // Denormals count multiples of 2^-24, which are normal numbers here.
        bits = bitcast<u32>(f32(magnitude) * bitcast<f32>(0x33800000u));
    }
    return bitcast<f32>(sign | bits);
}

// The initial value of a sum, for a row of a lane and a column of the product.
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

// The product of a row with words that are `step` apart, as one chain. A load takes much longer than a multiply-add, so eight
// elements are loaded before they are multiplied.
fn chain_of(x: u32, y: u32, step: u32, width: u32) -> f32 {
    var chain = 0.0;
    var i = 0u;
    for (; i + 8u <= width; i = i + 8u) {
        let x0 = ldf(x + i + 0u);
        let y0 = ldf(y + (i + 0u) * step);
        let x1 = ldf(x + i + 1u);
        let y1 = ldf(y + (i + 1u) * step);
        let x2 = ldf(x + i + 2u);
        let y2 = ldf(y + (i + 2u) * step);
        let x3 = ldf(x + i + 3u);
        let y3 = ldf(y + (i + 3u) * step);
        let x4 = ldf(x + i + 4u);
        let y4 = ldf(y + (i + 4u) * step);
        let x5 = ldf(x + i + 5u);
        let y5 = ldf(y + (i + 5u) * step);
        let x6 = ldf(x + i + 6u);
        let y6 = ldf(y + (i + 6u) * step);
        let x7 = ldf(x + i + 7u);
        let y7 = ldf(y + (i + 7u) * step);
        chain = mad(x0, y0, chain);
        chain = mad(x1, y1, chain);
        chain = mad(x2, y2, chain);
        chain = mad(x3, y3, chain);
        chain = mad(x4, y4, chain);
        chain = mad(x5, y5, chain);
        chain = mad(x6, y6, chain);
        chain = mad(x7, y7, chain);
    }
    for (; i < width; i++) {
        chain = mad(ldf(x + i), ldf(y + i * step), chain);
    }
    return chain;
}

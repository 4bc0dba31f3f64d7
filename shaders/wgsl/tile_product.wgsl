    let b{product} = r({at}u);
    if r(b{product} + 1u) != 0u {
        for (var at = 0u; at < {count}u; at++) {
            let g = at / (DOWN * ACROSS);
            let row = min(first_row + down + (at / ACROSS) % DOWN, rows - 1u);
            let j = at % ACROSS;
            let column = min(first_column + (j / BROAD) * 16u * BROAD + right * BROAD + j % BROAD, columns - 1u);
            let start = r(b{product} + {head}u + g) + column;
            kept[{before}u + at] = sum_start(b{product}, segment.first + row / each, row % each, start);
        }
    }
//~ starts
    for (var part = 0u; part < r(b{product}); part++) {
        let at = b{product} + {parts}u + {part}u * part;
        let width = r(at + 4u);
        let step = r(at + 6u);
        workgroupBarrier();
        if local < HIGH {
            let row = min(first_row + local, rows - 1u);
            starts[local] = row_of(at, segment.first + row / each) + (row % each) * width;
        }
        workgroupBarrier();
        for (var k0 = 0u; k0 < width; k0 = k0 + DEEP) {
            let deep = min(DEEP, width - k0);
            // DEEP columns of the operand. Neighbouring threads read along a row.
            for (var place = local; place < DEEP * HIGH / TALL; place = place + 256u) {
                let k = place % DEEP;
                let row = TALL * (place / DEEP);
                if k < deep {
                    xs[(k * HIGH + row) / TALL] = {tall};
                }
            }
            // DEEP rows of the groups' columns of the weight. Neighbouring threads read along a row as it is stored.
            // Elements past the last column or the last `k` lie in the same stored row, and their results are dropped.
            for (var place = local; place < {along} * {across}; place = place + 256u) {
                let k = {ks}u * ({k});
                let c = {columns}u * ({c});
                if k < deep {
                    let column = first_column + c % WIDE;
                    let next = r(at + 7u);
                    let begin = r(at + 5u) + r(b{product} + {head}u + c / WIDE) * next + (k0 + k) * step;
                    let word = (k * {band} + c) / BROAD;
//~ weights
                }
            }
            workgroupBarrier();
            for (var k = 0u; k < deep; k++) {
//~ operands
//~ chains
            }
            workgroupBarrier();
        }
    }

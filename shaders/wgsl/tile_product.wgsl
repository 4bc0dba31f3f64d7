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
    let parts{product} = r(b{product});
    for (var part = 0u; part < parts{product}; part++) {
        let at = b{product} + {parts}u + {part}u * part;
        let width = r(at + 4u);
        let step = r(at + 6u);
        let next = r(at + 7u);
        workgroupBarrier();
        if local < HIGH {
            let row = min(first_row + local, rows - 1u);
            starts[local] = row_of(at, segment.first + row / each) + (row % each) * width;
        }
        workgroupBarrier();
        // The words of group memory that this thread fills: DEEP columns of the operand and DEEP rows of the groups'
        // columns of the weight. Neighbouring threads read along a row as it is stored. Elements past the last column or
        // the last `k` lie in the same stored row, and their results are dropped.
//~ places
        // A load takes much longer than a tile, so the registers of a thread hold its words of the tile that follows.
        for (var k1 = 0u; k1 < width + DEEP; k1 = k1 + DEEP) {
            if k1 > 0u {
//~ stores
                workgroupBarrier();
            }
            if k1 < width {
                let last = width - 1u - k1;
//~ loads
            }
            if k1 > 0u {
                let deep = min(DEEP, width + DEEP - k1);
                if deep == DEEP {
                    // Its length is known, so compilers may unroll it.
                    for (var k = 0u; k < DEEP; k++) {
//~ operands
//~ chains
                    }
                } else {
                    for (var k = 0u; k < deep; k++) {
//~ operands
//~ chains
                    }
                }
                workgroupBarrier();
            }
        }
    }

    let b{product} = r({at}u);
    var starts{product}: array<f32, {count}>;
    for (var at = 0u; at < {count}u; at++) {
        let c = r(b{product} + {head}u + at / {each}u) + column + at % {each}u;
        starts{product}[at] = sum_start(b{product}, lane, row, c);
    }
//~ sums
    let parts{product} = r(b{product});
    for (var part = 0u; part < parts{product}; part++) {
        let at = b{product} + {parts}u + {part}u * part;
        let width = r(at + 4u);
        let x_at = row_of(at, lane) + row * width;
        let step = r(at + 6u);
//~ weights
        var k = 0u;
//~ together
        for (; k < width; k++) {
            let x = ldf(x_at + k);
//~ chains
        }
    }

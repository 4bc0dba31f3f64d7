// Folds of rows over sixteen virtual lanes, one thread per lane, four rows per group. Lane `v` folds the elements `v,
// v + 16, ..` in ascending order. Then lanes are joined as a tree. This gives the bits of the language's definition.
// All threads of a group take the same number of turns in a loop before a join, because subgroup operations need them
// together; those without an element skip the body.

struct Row {
    // The first words of the row and of the second operand's row. A label is the label itself.
    x: u32,
    y: u32,
    // The first word of the result.
    result: u32,
    width: u32,
    // The virtual lane, the thread in its group, and whether the row exists.
    v: u32,
    local: u32,
    live: bool,
}

var<workgroup> lanes: array<f32, 64>;
var<workgroup> places: array<u32, 64>;

fn exceeds(a: f32, b: f32) -> bool {
    return a > b || (is_nan(a) && !is_nan(b));
}

fn row_sum(row: Row) -> f32 {
    var mine = 0.0;
    for (var first = 0u; first < row.width; first = first + 16u) {
        let i = first + row.v;
        if i < row.width {
            mine = mine + ldf(row.x + i);
        }
    }
    return joined_sum(row, mine);
}

fn row_dot(row: Row) -> f32 {
    var mine = 0.0;
    for (var first = 0u; first < row.width; first = first + 16u) {
        let i = first + row.v;
        if i < row.width {
            mine = mad(ldf(row.x + i), ldf(row.y + i), mine);
        }
    }
    return joined_sum(row, mine);
}

fn row_max(row: Row) -> f32 {
    var mine = -infinity();
    for (var first = 0u; first < row.width; first = first + 16u) {
        let i = first + row.v;
        if i < row.width {
            mine = op_max(mine, ldf(row.x + i));
        }
    }
    return joined_max(row, mine);
}

fn row_min(row: Row) -> f32 {
    var mine = infinity();
    for (var first = 0u; first < row.width; first = first + 16u) {
        let i = first + row.v;
        if i < row.width {
            mine = op_min(mine, ldf(row.x + i));
        }
    }
    return joined_min(row, mine);
}

fn row_exp_sum(row: Row, top: f32) -> f32 {
    var mine = 0.0;
    for (var first = 0u; first < row.width; first = first + 16u) {
        let i = first + row.v;
        if i < row.width {
            mine = mine + op_exp(ldf(row.x + i) - top);
        }
    }
    return joined_sum(row, mine);
}

fn row_log_sum(row: Row, top: f32) -> f32 {
    return op_log(row_exp_sum(row, top));
}

fn number(row: Row, x: f32) {
    if row.live && row.v == 0u {
        stf(row.result, x);
    }
}

fn store_sum(row: Row) {
    number(row, row_sum(row));
}

fn store_mean(row: Row) {
    number(row, quotient(row_sum(row), f32(row.width)));
}

fn store_max(row: Row) {
    number(row, row_max(row));
}

fn store_min(row: Row) {
    number(row, row_min(row));
}

fn store_argmax(row: Row) {
    var best = 0.0;
    var place = GATHERED;
    for (var first = 0u; first < row.width; first = first + 16u) {
        let i = first + row.v;
        if i < row.width {
            let x = ldf(row.x + i);
            if place == GATHERED || exceeds(x, best) {
                best = x;
                place = i;
            }
        }
    }
    lanes[row.local] = best;
    places[row.local] = place;
    workgroupBarrier();
    for (var width = 8u; width > 0u; width = width / 2u) {
        if row.v < width {
            let other = lanes[row.local + width];
            let other_place = places[row.local + width];
            let mine = lanes[row.local];
            let tie = !exceeds(mine, other) && other_place < places[row.local];
            if other_place != GATHERED && (exceeds(other, mine) || tie) {
                lanes[row.local] = other;
                places[row.local] = other_place;
            }
        }
        workgroupBarrier();
    }
    if row.live && row.v == 0u {
        st(row.result, places[row.local]);
    }
}

fn store_softmax(row: Row) {
    let top = row_max(row);
    let scale = quotient(1.0, row_exp_sum(row, top));
    if row.live {
        for (var i = row.v; i < row.width; i = i + 16u) {
            stf(row.result + i, op_exp(ldf(row.x + i) - top) * scale);
        }
    }
}

fn store_log_softmax(row: Row) {
    let top = row_max(row);
    let total = row_log_sum(row, top);
    if row.live {
        for (var i = row.v; i < row.width; i = i + 16u) {
            stf(row.result + i, (ldf(row.x + i) - top) - total);
        }
    }
}

fn store_logsumexp(row: Row) {
    let top = row_max(row);
    let total = row_log_sum(row, top);
    if magnitude(top) == infinity() {
        number(row, top);
    } else {
        number(row, top + total);
    }
}

fn store_norm(row: Row) {
    var mine = 0.0;
    for (var first = 0u; first < row.width; first = first + 16u) {
        let i = first + row.v;
        if i < row.width {
            let x = ldf(row.x + i);
            mine = mad(x, x, mine);
        }
    }
    number(row, root(joined_sum(row, mine)));
}

fn store_layer_norm(row: Row) {
    let count = f32(row.width);
    let centre = quotient(row_sum(row), count);
    var mine = 0.0;
    for (var first = 0u; first < row.width; first = first + 16u) {
        let i = first + row.v;
        if i < row.width {
            let d = ldf(row.x + i) - centre;
            mine = mad(d, d, mine);
        }
    }
    let variance = quotient(joined_sum(row, mine), count);
    let factor = op_rsqrt(variance + bitcast<f32>(r(3u)));
    if row.live {
        for (var i = row.v; i < row.width; i = i + 16u) {
            stf(row.result + i, (ldf(row.x + i) - centre) * factor);
        }
    }
}

fn store_pick_neg_log_softmax(row: Row) {
    let top = row_max(row);
    let total = row_log_sum(row, top);
    let picked = ldf(row.x + min(row.y, row.width - 1u));
    number(row, total - (picked - top));
}

fn store_hinge(row: Row) {
    let index = min(row.y, row.width - 1u);
    let offset = bitcast<f32>(r(3u)) - ldf(row.x + index);
    var mine = 0.0;
    for (var first = 0u; first < row.width; first = first + 16u) {
        let i = first + row.v;
        if i < row.width {
            var violation = op_relu(offset + ldf(row.x + i));
            if i == index {
                violation = 0.0;
            }
            mine = mine + violation;
        }
    }
    number(row, joined_sum(row, mine));
}

fn store_dot(row: Row) {
    number(row, row_dot(row));
}

// Whether a target is not 0. NaN counts as not 0, which no comparison says, not even `!=` as naga translates it.
fn counts(t: f32) -> bool {
    return t != 0.0 || is_nan(t);
}

fn store_cross_entropy(row: Row) {
    let top = row_max(row);
    let total = row_log_sum(row, top);
    var mine = 0.0;
    for (var first = 0u; first < row.width; first = first + 16u) {
        let i = first + row.v;
        if i < row.width {
            let t = ldf(row.y + i);
            if counts(t) {
                mine = mad(t, total - (ldf(row.x + i) - top), mine);
            }
        }
    }
    number(row, joined_sum(row, mine));
}

fn store_kl_div(row: Row) {
    var mine = 0.0;
    for (var first = 0u; first < row.width; first = first + 16u) {
        let i = first + row.v;
        if i < row.width {
            let t = ldf(row.y + i);
            if counts(t) {
                mine = mad(t, op_log(t) - ldf(row.x + i), mine);
            }
        }
    }
    number(row, joined_sum(row, mine));
}

fn store_mse(row: Row) {
    var mine = 0.0;
    for (var first = 0u; first < row.width; first = first + 16u) {
        let i = first + row.v;
        if i < row.width {
            let d = ldf(row.x + i) - ldf(row.y + i);
            mine = mad(d, d, mine);
        }
    }
    number(row, quotient(joined_sum(row, mine), f32(row.width)));
}

fn store_bce(row: Row) {
    var mine = 0.0;
    for (var first = 0u; first < row.width; first = first + 16u) {
        let i = first + row.v;
        if i < row.width {
            let x = ldf(row.x + i);
            let linear = mad(flipped(x), ldf(row.y + i), op_relu(x));
            mine = mine + (linear + log1p_of_unit(op_exp(flipped(magnitude(x)))));
        }
    }
    number(row, quotient(joined_sum(row, mine), f32(row.width)));
}

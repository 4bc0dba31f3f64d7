// Lists. A list in a record is five words: the mark GATHERED or SHARED, base, lists, items, width for rows that tables
// name; or the length and the position of the addresses in the record, for values of the kernel.
// GATHERED: `lists` is the position of the offsets of all lanes, and `items` that of their row numbers.
// SHARED: `lists` is the position of four words per lane: 0 the first row number, or its position, 1 the length, 2 the
// total length of earlier lanes from the first of the segment on, 3 zero if the rows are neighbours, else one: the
// numbers are in the tables.

fn list_len(at: u32, lane: u32) -> u32 {
    let mark = r(at);
    if mark == GATHERED {
        let offsets = r(at + 2u) + lane;
        return tables[offsets + 1u] - tables[offsets];
    }
    if mark == SHARED {
        return tables[r(at + 2u) + 4u * lane + 1u];
    }
    return mark;
}

fn list_item(at: u32, lane: u32, number: u32) -> u32 {
    let mark = r(at);
    if mark == GATHERED {
        let item = r(at + 3u) + tables[r(at + 2u) + lane] + number;
        return r(at + 1u) + tables[item] * r(at + 4u);
    }
    if mark == SHARED {
        let list = r(at + 2u) + 4u * lane;
        var row = tables[list] + number;
        if tables[list + 3u] != 0u {
            row = tables[row];
        }
        return r(at + 1u) + row * r(at + 4u);
    }
    return row_of(r(at + 1u) + 4u * number, lane);
}

// The number of values in the lists of earlier lanes, from the first lane of the segment on.
fn list_before(at: u32, lane: u32) -> u32 {
    let mark = r(at);
    if mark == GATHERED {
        let offsets = r(at + 2u);
        return tables[offsets + lane] - tables[offsets + segment.first];
    }
    if mark == SHARED {
        return tables[r(at + 2u) + 4u * lane + 2u];
    }
    return (lane - segment.first) * mark;
}

// The sum of the exponentials of an element of the values of a list, relative to their maximum.
fn exponential_sum(at: u32, lane: u32, element: u32, count: u32, top: f32) -> f32 {
    var total = 0.0;
    for (var i = 0u; i < count; i++) {
        let e = op_exp(ldf(list_item(at, lane, i) + element) - top);
        if i == 0u {
            total = e;
        } else {
            total = total + e;
        }
    }
    return total;
}

// The dot product of two rows, by sixteen threads of a group that computes four. All sixteen get the result.
fn dot_of(x: u32, y: u32, width: u32, local: u32) -> f32 {
    return row_dot(Row(x, y, 0u, width, local % 16u, local, true));
}

// An element of the sum over a list of its values, each times a factor: one chain, with four values loaded at a time.
fn weighted_element(factors: u32, at: u32, lane: u32, count: u32, element: u32) -> f32 {
    var sum = 0.0;
    var i = 0u;
    for (; i + 4u <= count; i = i + 4u) {
        let f0 = ldf(factors + i + 0u);
        let v0 = ldf(list_item(at, lane, i + 0u) + element);
        let f1 = ldf(factors + i + 1u);
        let v1 = ldf(list_item(at, lane, i + 1u) + element);
        let f2 = ldf(factors + i + 2u);
        let v2 = ldf(list_item(at, lane, i + 2u) + element);
        let f3 = ldf(factors + i + 3u);
        let v3 = ldf(list_item(at, lane, i + 3u) + element);
        sum = mad(f0, v0, sum);
        sum = mad(f1, v1, sum);
        sum = mad(f2, v2, sum);
        sum = mad(f3, v3, sum);
    }
    for (; i < count; i++) {
        sum = mad(ldf(factors + i), ldf(list_item(at, lane, i) + element), sum);
    }
    return sum;
}

// An element of the sum over a list of its values, each times a factor: one chain. The factors are `stride` words apart.
fn head_element(factors: u32, stride: u32, at: u32, lane: u32, count: u32, element: u32) -> f32 {
    var sum = 0.0;
    for (var i = 0u; i < count; i++) {
        sum = mad(ldf(factors + i * stride), ldf(list_item(at, lane, i) + element), sum);
    }
    return sum;
}

// The scores of attention as a row, which each sixteen threads of a group fold alike.
fn row_of_scores(scores: u32, count: u32, local: u32) -> Row {
    return Row(scores, 0u, 0u, count, local % 16u, local, true);
}

// The maximum of scores that are `stride` words apart; 0 if there are none.
fn top_score(scores: u32, stride: u32, count: u32) -> f32 {
    var top = 0.0;
    for (var i = 0u; i < count; i++) {
        let s = ldf(scores + i * stride);
        if i == 0u {
            top = s;
        } else {
            top = op_max(top, s);
        }
    }
    return top;
}

// The factor that normalises the exponentials of such scores, relative to their maximum.
fn softmax_scale(scores: u32, stride: u32, count: u32, top: f32) -> f32 {
    var total = 0.0;
    for (var i = 0u; i < count; i++) {
        let e = op_exp(ldf(scores + i * stride) - top);
        if i == 0u {
            total = e;
        } else {
            total = total + e;
        }
    }
    return quotient(1.0, total);
}

// Replaces scores that are `stride` words apart by their softmax.
fn softmax_of_scores(scores: u32, stride: u32, count: u32, top: f32, scale: f32) {
    for (var i = 0u; i < count; i++) {
        let at = scores + i * stride;
        stf(at, op_exp(ldf(at) - top) * scale);
    }
}

// Replaces scores by their softmax, and gradients of weights by gradients of scores.
fn softmax_and_back(scores: u32, slopes: u32, stride: u32, count: u32) {
    let top = top_score(scores, stride, count);
    let scale = softmax_scale(scores, stride, count, top);
    var weighted = 0.0;
    for (var i = 0u; i < count; i++) {
        let at = i * stride;
        let w = op_exp(ldf(scores + at) - top) * scale;
        stf(scores + at, w);
        weighted = mad(w, ldf(slopes + at), weighted);
    }
    for (var i = 0u; i < count; i++) {
        let at = i * stride;
        stf(slopes + at, ldf(scores + at) * (ldf(slopes + at) - weighted));
    }
}

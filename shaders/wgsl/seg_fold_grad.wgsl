// The derivatives of folds of one list, one thread per element, which visits the values of its lane in order.
// Record: 0 elements per lane, 1 fold (0 sum, 1 mean, 2 maximum, 3 mean in one row for all values, 4 logsumexp, 6 pick), 2..7 list,
// 7..11 gradient of the result, 11 first word of the edges, 12 position of their offsets in the tables, 13..17 index of a pick; of
// the one row, 11..15 its address.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ thread
    let count = list_len(2u, lane);
    let dy = ldf(row_of(7u, lane) + element);
    if r(1u) == 3u {
        stf(row_of(11u, lane) + element, quotient(dy, f32(max(count, 1u))));
        return;
    }
    let fold = r(1u);
    var winner = 0u;
    var best = 0.0;
    if fold == 6u {
        winner = min(ld(row_of(13u, lane)), max(count, 1u) - 1u);
    } else if fold > 1u {
        for (var i = 0u; i < count; i++) {
            let x = ldf(list_item(2u, lane, i) + element);
            if i == 0u || exceeds(x, best) {
                best = x;
                winner = i;
            }
        }
    }
    var scale = 0.0;
    if fold == 4u && count > 0u {
        scale = quotient(1.0, exponential_sum(2u, lane, element, count, best));
    }
    var to_at = r(11u) + tables[r(12u) + lane] * r(0u) + element;
    for (var i = 0u; i < count; i++) {
        var dx = dy;
        if fold == 1u {
            dx = quotient(dy, f32(count));
        } else if fold == 4u {
            let weight = op_exp(ldf(list_item(2u, lane, i) + element) - best) * scale;
            dx = select(dy * weight, 0.0, best == -infinity());
        } else if fold > 1u && i != winner {
            dx = 0.0;
        }
        stf(to_at, dx);
        to_at = to_at + r(0u);
    }
}

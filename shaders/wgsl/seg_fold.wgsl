// A fold of one list, one thread per element, left to right; or its value at an index, clamped to the last.
// Record: 0 elements per lane, 1 fold (0 sum, 1 mean, 2 maximum, 4 logsumexp, 5 place of the maximum, 6 pick), 2..7 list,
// 7..11 result, 11..15 index of a pick.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ thread
    let count = list_len(2u, lane);
    let fold = r(1u);
    let to = row_of(7u, lane) + element;
    if fold == 6u {
        var word = 0u;
        if count > 0u {
            let place = min(ld(row_of(11u, lane)), count - 1u);
            word = ld(list_item(2u, lane, place) + element);
        }
        st(to, word);
        return;
    }
    var sum = 0.0;
    var winner = 0u;
    for (var i = 0u; i < count; i++) {
        let x = ldf(list_item(2u, lane, i) + element);
        if i == 0u {
            sum = x;
        } else if fold < 2u {
            sum = sum + x;
        } else if fold < 5u {
            sum = op_max(sum, x);
        } else if exceeds(x, sum) {
            sum = x;
            winner = i;
        }
    }
    if fold == 5u {
        st(to, winner);
        return;
    }
    if fold == 1u {
        sum = quotient(sum, f32(max(count, 1u)));
    }
    if fold == 4u && count > 0u && magnitude(sum) != infinity() {
        sum = sum + op_log(exponential_sum(2u, lane, element, count, sum));
    }
    stf(to, sum);
}

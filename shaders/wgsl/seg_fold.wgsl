// Sum, mean and maximum over a list, one thread per element, left to right.
// Record: 0 elements per lane, 1 fold (0 sum, 1 mean, 2 maximum), 2..7 list, 7..11 result.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ thread
    let count = list_len(2u, lane);
    var sum = 0.0;
    for (var i = 0u; i < count; i++) {
        let x = ldf(list_item(2u, lane, i) + element);
        if i == 0u {
            sum = x;
        } else if r(1u) == 2u {
            sum = op_max(sum, x);
        } else {
            sum = sum + x;
        }
    }
    if r(1u) == 1u {
        sum = quotient(sum, f32(max(count, 1u)));
    }
    stf(row_of(7u, lane) + element, sum);
}

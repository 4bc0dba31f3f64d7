// Ops that read a row of a value as a whole, sixteen threads per row.
// Record: 0 rows per lane, 1 width of a row, 2 width of a row of the result, 3 attribute, 4 words of the second
// operand per row, 5 whether it is a label, 6..10 value, 10..14 second operand, 14..18 result.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
//~ thread_of_group
) {
//~ number_of_thread
    let wanted = enter(group.y * groups.x + group.x) * 4u + local / 16u;
    // Threads past the end compute the last row again without storing it, so that all threads reach the barriers.
    let index = min(wanted, segment.threads - 1u);
    let lane = segment.first + index / r(0u);
    let of_lane = index % r(0u);
    let x = row_of(6u, lane) + of_lane * r(1u);
    var y = row_of(10u, lane) + of_lane * r(4u);
    if r(5u) == 1u {
        y = ld(y);
    }
    let result = row_of(14u, lane) + of_lane * r(2u);
    let row = Row(x, y, result, r(1u), local % 16u, local, wanted < segment.threads);
//~ body
}

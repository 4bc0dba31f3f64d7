// Products of few rows and many columns, one thread per four neighbouring elements of each group. Reading the weights
// takes most of the time, and a thread reads four neighbours of a row at once. The generated body computes the sums
// of all groups and calls the epilogue. Every sum is the chain of `prod_few`.
// Record: see `products.wgsl`. The number of columns and the first columns are multiples of four.

//~ epilogue

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let thread = enter(group.y * groups.x + group.x) * 64u + local;
    if thread >= segment.threads {
        return;
    }
    let fours = r(0u) / 4u;
    let lane = segment.first + thread / fours;
    let element = 4u * (thread % fours);
    let row = element / r(1u);
    let column = element % r(1u);
//~ body
    for (var i = 0u; i < 4u; i++) {
//~ call
    }
}

// Products of few rows, one thread per element. Reading the weights takes most of the time, and neighbouring threads
// read neighbouring columns. The generated body computes the sums of all groups and calls the epilogue.
// Record: see `products.wgsl`.

//~ epilogue

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ thread
    let row = element / r(1u);
    let column = element % r(1u);
//~ body
//~ call
}

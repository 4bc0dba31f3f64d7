// What comes behind products on matrix units, a thread an element: the sums of all groups, with what they start
// from, go to the tail.
//
// Record: as of `products.wgsl`, but a block has no parts: behind its groups are two words, where its sums begin and
// how many columns they have.

//~ tail

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
}

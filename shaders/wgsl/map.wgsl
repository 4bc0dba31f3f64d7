// Elementwise instructions, one thread per element. The body is generated, one line per instruction. Its constants
// and addresses are in the record, so code of the same shape shares a pipeline.
// Record: 0 elements per lane, then the words that the body reads.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ thread
//~ body
}

// Elementwise instructions, a thread an element. The body is generated, a line an instruction; its
// constants and places are in the record, so that equal shapes of code are one pipeline.
//
// Record: 0 elements a lane; then as the body says.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ thread
//~ body
}

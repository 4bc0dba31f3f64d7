// Scalars of an update, computed from scalars and bound floats by one thread.

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) local: u32) {
    if local > 0u {
        return;
    }
//~ body
}

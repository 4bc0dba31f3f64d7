// Collects outputs so that one copy reads them, one thread per word.
// Record: 0 words, 1 first word of the result, 2 outputs. An output, from 3 on, is two words: 0 its end in the
// result, 1 the offset from there to its words in the arena.

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
    var low = 0u;
    var high = r(2u);
    while low + 1u < high {
        let middle = (low + high) / 2u;
        if r(3u + 2u * (middle - 1u)) <= thread {
            low = middle;
        } else {
            high = middle;
        }
    }
    st(r(1u) + thread, ld(thread + r(4u + 2u * low)));
}

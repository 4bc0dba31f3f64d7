// Sums of squares of blocks of 4096 elements, sixteen threads per block, as the fold of a row. If a block continues
// in the next buffer, its lanes are handed over to the dispatch that binds that buffer.
// Record: 0 stretches, 1 position of the first, 2 groups of sixteen threads. A stretch is 10 words: 0 end of its
// groups of sixteen, 1 first element, 2 end of its elements, 3 offset from the number of an element to its word, 4
// array (0 gradients, 1 parameters, 2 states), 5 words of a tile of states, 6 position of the first block's sum, 7
// position of handed-over lanes, 8 whether lanes were handed over to it, 9 whether it hands over.

fn element_of(at: u32, element: u32) -> f32 {
    let word = r(at + 3u) + element;
    if r(at + 4u) == 0u {
        return bitcast<f32>(gradients[word]);
    }
    if r(at + 4u) == 1u {
        return bitcast<f32>(params[word]);
    }
    return bitcast<f32>(states[r(at + 3u) + (element / 64u) * r(at + 5u) + element % 64u]);
}

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let wanted = (group.y * groups.x + group.x) * 4u + local / 16u;
    // Threads past the end fold the last block again without storing it, so that all threads reach the barriers.
    let sixteen = min(wanted, r(2u) - 1u);
    let live = wanted < r(2u);
    let v = local % 16u;
    let at = stretch_of(sixteen, r(1u), r(0u), 10u);
    let block = sixteen - groups_before(at, r(1u), 10u);
    // Blocks count from element 0, so a stretch of several blocks starts with a whole one.
    let first = r(at + 1u) + block * 4096u;
    let end = min(r(at + 2u), first - first % 4096u + 4096u);
    var mine = 0.0;
    if r(at + 8u) == 1u {
        mine = bitcast<f32>(numbers[r(at + 7u) + v]);
    }
    for (var sixteenth = first - first % 16u; sixteenth < end; sixteenth = sixteenth + 16u) {
        let element = sixteenth + v;
        if element >= first && element < end {
            let x = element_of(at, element);
            mine = mad(x, x, mine);
        }
    }
    // The blocks of a group may differ in length, and subgroup operations need all threads.
    workgroupBarrier();
    let sum = joined_sum(Row(0u, 0u, 0u, 0u, v, local, live), mine);
    if live && r(at + 9u) == 1u {
        numbers[r(at + 7u) + v] = bitcast<u32>(mine);
    } else if live && v == 0u {
        numbers[r(at + 6u) + block] = bitcast<u32>(sum);
    }
}

// Functions of all updates.

// The stretch of a group: the first one whose end is past the group. Stretches start at word `at` of the record and
// have `size` words each. Their first word is the end.
fn stretch_of(group: u32, at: u32, count: u32, size: u32) -> u32 {
    var low = 0u;
    var high = count;
    while low + 1u < high {
        let middle = (low + high) / 2u;
        if r(at + size * (middle - 1u)) <= group {
            low = middle;
        } else {
            high = middle;
        }
    }
    return at + size * low;
}

// The number of groups of all earlier stretches.
fn groups_before(stretch: u32, at: u32, size: u32) -> u32 {
    if stretch == at {
        return 0u;
    }
    return r(stretch - size);
}

// The positions of an element's gradient, parameter and first state.
struct Places {
    gradient: u32,
    value: u32,
    state: u32,
}

fn places_of(stretch: u32, element: u32) -> Places {
    let state = r(stretch + 5u) + (element / 64u) * r(2u) + element % 64u;
    return Places(r(stretch + 3u) + element, r(stretch + 4u) + element, state);
}

// The nearest `f16`, ties to even.
fn f16_rounded(x: f32) -> f32 {
    let bits = bitcast<u32>(x) & 0x7fffffffu;
    if bits > 0x7f800000u {
        return x;
    }
    var near = (bits + 0x0fffu + ((bits >> 13u) & 1u)) & 0xffffe000u;
    if bits >= 0x477ff000u {
        near = 0x7f800000u;
    }
    if bits < 0x38800000u {
        // Below 2^-14 the spacing is 2^-24, as it is for `f32` between one half and one.
        let sum = opaque(bitcast<f32>(bits) + 0.5);
        near = bitcast<u32>(sum - 0.5);
    }
    return with_sign(bitcast<f32>(near), x);
}

// The nearest `bf16`, ties to even.
fn bf16_rounded(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    if is_nan(x) {
        return x;
    }
    return bitcast<f32>((bits + 0x7fffu + ((bits >> 16u) & 1u)) & 0xffff0000u);
}

// The counter-based generator of the language, in 32-bit words. A pair is (low, high).

fn sum64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let low = a.x + b.x;
    return vec2<u32>(low, a.y + b.y + u32(low < a.x));
}

fn product64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let w = wide_product(a.x, b.x);
    return vec2<u32>(w.y, w.x + a.x * b.y + a.y * b.x);
}

// `a ^ (a >> by)` for `by` below 32.
fn folded64(a: vec2<u32>, by: u32) -> vec2<u32> {
    return vec2<u32>(a.x ^ ((a.x >> by) | (a.y << (32u - by))), a.y ^ (a.y >> by));
}

fn mix64(word: vec2<u32>) -> vec2<u32> {
    let a = product64(folded64(word, 30u), vec2<u32>(0x1ce4e5b9u, 0xbf58476du));
    let b = product64(folded64(a, 27u), vec2<u32>(0x133111ebu, 0x94d049bbu));
    return folded64(b, 31u);
}

fn absorbed(state: vec2<u32>, word: vec2<u32>) -> vec2<u32> {
    return mix64(state ^ mix64(sum64(word, vec2<u32>(0x7f4a7c15u, 0x9e3779b9u))));
}

fn rotated(x: u32, by: u32) -> u32 {
    return (x << by) | (x >> (32u - by));
}

// The key of the noise that an owner of a key draws at an ordinal.
fn noise_key(key: vec2<u32>, ordinal: u32) -> vec2<u32> {
    var low = key.x ^ (ordinal * 0x9e3779b1u);
    var high = key.y ^ (ordinal + 0x85ebca77u);
    for (var round = 0u; round < 4u; round++) {
        low = (low ^ (high >> 15u)) * 0x85ebca6bu + rotated(high, 7u);
        high = (high ^ (low >> 13u)) * 0xc2b2ae35u + rotated(low, 11u);
    }
    return vec2<u32>(low, high);
}

fn philox(element: u32, counter: u32, key: u32) -> u32 {
    var left = element;
    var right = counter;
    var round_key = key;
    for (var round = 0u; round < 10u; round++) {
        let product = wide_product(left, 0xd256d193u);
        left = product.x ^ round_key ^ right;
        right = product.y;
        round_key = round_key + 0x9e3779b9u;
    }
    return left;
}

// A multiple of 2^-24 in [0, 1) for an element of the row with this key.
fn uniform_noise(seed: vec2<u32>, step: vec2<u32>, key: vec2<u32>, element: u32) -> f32 {
    var state = absorbed(vec2<u32>(0x7f4a7c15u, 0x9e3779b9u), seed);
    state = absorbed(absorbed(state, step), key);
    return f32(philox(element, state.x, state.y) >> 8u) * bitcast<f32>(0x33800000u);
}

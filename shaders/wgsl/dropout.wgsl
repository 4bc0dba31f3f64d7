// Dropout, one thread per element. Noise is drawn by the row's key if the arena's first word is 1.
// Record: 0 elements per lane, 1 rate, 2 factor of the elements that stay, 3 ordinal, 4..8 value, 8..12 and 12..16
// words of the key, 16..20 result. Arena: 0 whether to draw noise, 1 2 seed, 3 4 step.

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
//~ thread
    var x = ldf(row_of(4u, lane) + element);
    if ld(0u) == 1u {
        let key = noise_key(vec2<u32>(ld(row_of(8u, lane)), ld(row_of(12u, lane))), r(3u));
        let noise = uniform_noise(vec2<u32>(ld(1u), ld(2u)), vec2<u32>(ld(3u), ld(4u)), key, element);
        if noise >= bitcast<f32>(r(1u)) {
            x = x * bitcast<f32>(r(2u));
        } else {
            x = 0.0;
        }
    }
    stf(row_of(16u, lane) + element, x);
}

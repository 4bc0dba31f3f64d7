// The device's own fused product, division and root: one rounding each where the device keeps its word.

fn mad(a: f32, b: f32, c: f32) -> f32 {
    return fma(a, b, c);
}

fn quotient(a: f32, b: f32) -> f32 {
    return a / b;
}

fn root(x: f32) -> f32 {
    return sqrt(x);
}

// The device's fused multiply-add, division and square root, with one rounding each if the device conforms.

fn mad(a: f32, b: f32, c: f32) -> f32 {
    return fma(a, b, c);
}

fn quotient(a: f32, b: f32) -> f32 {
    return a / b;
}

fn root(x: f32) -> f32 {
    return sqrt(x);
}

// Fused multiply-add, division and square root by error-free transformations, for devices that round twice. The
// results have the bits of IEEE arithmetic, except for double rounding near ties and for underflow. About twenty
// times slower; meant for checks.

fn upper_half(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) & 0xfffff000u);
}

fn is_finite(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u;
}

fn mad(a: f32, b: f32, c: f32) -> f32 {
    let p = opaque(a * b);
    let s = opaque(p + c);
    if !is_finite(s) {
        return s;
    }
    let ah = upper_half(a);
    let al = a - ah;
    let bh = upper_half(b);
    let bl = b - bh;
    let lost_product = ((ah * bh - p) + ah * bl + al * bh) + al * bl;
    let part = opaque(s - p);
    let lost_sum = (p - opaque(s - part)) + (c - part);
    let lost = lost_product + lost_sum;
    if lost == 0.0 {
        return s;
    }
    return s + lost;
}

fn quotient(a: f32, b: f32) -> f32 {
    let q = a / b;
    if !is_finite(q) || !is_finite(b) || q == 0.0 {
        return q;
    }
    let rest = mad(-q, b, a);
    return mad(rest, 1.0 / b, q);
}

fn root(x: f32) -> f32 {
    let s = sqrt(x);
    if !is_finite(s) || s == 0.0 {
        return s;
    }
    return mad(mad(-s, s, x), 0.5 / s, s);
}

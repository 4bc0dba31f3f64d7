// The elementwise functions, by the formulas of the language's definition. A device that rounds as defined gets its
// bits. `mad` and `quotient` come from the chosen arithmetic: native or exact.

fn is_nan(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

// The value itself, hidden from compilers. Some simplify `(a + b) - a` to `b`, which breaks error-free
// transformations.
fn opaque(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) ^ dispatch.zero);
}

fn infinity() -> f32 {
    return bitcast<f32>(0x7f800000u | dispatch.zero);
}

fn not_a_number() -> f32 {
    return bitcast<f32>(0x7fc00000u | dispatch.zero);
}

fn with_sign(magnitude: f32, sign: f32) -> f32 {
    return bitcast<f32>((bitcast<u32>(magnitude) & 0x7fffffffu) | (bitcast<u32>(sign) & 0x80000000u));
}

fn flipped(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) ^ 0x80000000u);
}

fn magnitude(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) & 0x7fffffffu);
}

fn op_neg(x: f32) -> f32 {
    return flipped(x);
}

fn op_abs(x: f32) -> f32 {
    return magnitude(x);
}

fn op_sqrt(x: f32) -> f32 {
    return root(x);
}

fn op_rsqrt(x: f32) -> f32 {
    return quotient(1.0, root(x));
}

fn op_square(x: f32) -> f32 {
    return x * x;
}

fn op_recip(x: f32) -> f32 {
    return quotient(1.0, x);
}

fn op_sign(x: f32) -> f32 {
    var y = x;
    if x > 0.0 {
        y = 1.0;
    }
    if x < 0.0 {
        y = -1.0;
    }
    return y;
}

fn op_relu(x: f32) -> f32 {
    if x <= 0.0 {
        return 0.0;
    }
    return x;
}

fn op_leaky_relu(x: f32, slope: f32) -> f32 {
    if x < 0.0 {
        return slope * x;
    }
    return x;
}

// Some drivers turn two comparisons into a minimum and a maximum, which drop NaN.
fn op_clamp(x: f32, low: f32, high: f32) -> f32 {
    if is_nan(x) {
        return x;
    }
    if x < low {
        return low;
    }
    if x > high {
        return high;
    }
    return x;
}

fn op_min(a: f32, b: f32) -> f32 {
    if b < a || is_nan(b) {
        return b;
    }
    return a;
}

fn op_max(a: f32, b: f32) -> f32 {
    if b > a || is_nan(b) {
        return b;
    }
    return a;
}

// `e^x = 2^n (1 + r + tail)` for |x| <= 104. The integer sits in the low bits of a sum with 1.5 * 2^23.
struct Reduced {
    n: i32,
    r: f32,
    tail: f32,
}

fn reduced(x: f32) -> Reduced {
    let shifted = mad(x, 1.44269504, 12582912.0);
    let integer = bitcast<i32>(bitcast<u32>(shifted) - 0x4b400000u);
    let n = f32(clamp(integer, -200, 200));
    let exact = mad(n, -bitcast<f32>(0x3f317200u), x);
    let r = mad(n, -1.4286068e-6, exact);
    var q = bitcast<f32>(0x3ab525a2u);
    q = mad(q, r, bitcast<f32>(0x3c091ccau));
    q = mad(q, r, bitcast<f32>(0x3d2aac59u));
    q = mad(q, r, bitcast<f32>(0x3e2aaa49u));
    q = mad(q, r, bitcast<f32>(0x3efffffeu));
    let tail = mad(n, -1.4286068e-6, (r * r) * q);
    return Reduced(integer, exact, tail);
}

fn power_of_two(n: i32) -> f32 {
    return bitcast<f32>(bitcast<u32>(n + 127) << 23u);
}

fn exp_bounded(x: f32) -> f32 {
    let e = reduced(x);
    return (1.0 + (e.r + e.tail)) * power_of_two(e.n);
}

fn exp_clamped(x: f32) -> f32 {
    let e = reduced(x);
    let half = e.n >> 1u;
    return ((1.0 + (e.r + e.tail)) * power_of_two(half)) * power_of_two(e.n - half);
}

fn exp_of_neg_abs(x: f32) -> f32 {
    let exponent = flipped(magnitude(x));
    if exponent < -104.0 {
        return exp_clamped(-104.0);
    }
    return exp_clamped(exponent);
}

fn op_exp(x: f32) -> f32 {
    var bounded = x;
    if x > 89.0 {
        bounded = 89.0;
    }
    if x < -104.0 {
        bounded = -104.0;
    }
    return exp_clamped(bounded);
}

fn op_expm1(x: f32) -> f32 {
    if x == 0.0 {
        return x;
    }
    var bounded = x;
    if x > 89.0 {
        bounded = 89.0;
    }
    if x < -18.0 {
        bounded = -18.0;
    }
    let e = reduced(bounded);
    let y = e.r + e.tail;
    if e.n == 0 {
        return y;
    }
    let half = power_of_two(e.n - 1);
    return 2.0 * mad(half, y, half - 0.5);
}

fn op_sigmoid(x: f32) -> f32 {
    let e = exp_of_neg_abs(x);
    var numerator = 1.0;
    if x < 0.0 {
        numerator = e;
    }
    let sum = opaque(1.0 + e);
    let lost = e - (sum - 1.0);
    let whole = quotient(numerator, sum);
    return mad(whole, flipped(lost), whole);
}

fn op_tanh(x: f32) -> f32 {
    let a = magnitude(x);
    if a < 0.625 {
        let square = a * a;
        var p = bitcast<f32>(0xbbba8671u);
        p = mad(p, square, bitcast<f32>(0x3ca8fc67u));
        p = mad(p, square, bitcast<f32>(0xbd5c1ad2u));
        p = mad(p, square, bitcast<f32>(0x3e08837bu));
        p = mad(p, square, bitcast<f32>(0xbeaaaa99u));
        return with_sign(mad(a * square, p, a), x);
    }
    var bounded = a;
    if a > 10.0 {
        bounded = 10.0;
    }
    return with_sign(1.0 - quotient(2.0, exp_bounded(2.0 * bounded) + 1.0), x);
}

fn op_silu(x: f32) -> f32 {
    let s = op_sigmoid(x);
    if s == 0.0 {
        return flipped(0.0);
    }
    return x * s;
}

fn op_softplus(x: f32) -> f32 {
    return op_relu(x) + log1p_of_unit(exp_of_neg_abs(x));
}

fn op_elu(x: f32, alpha: f32) -> f32 {
    if x > 0.0 {
        return x;
    }
    return alpha * op_expm1(x);
}

fn log_assemble(k: f32, f: f32) -> f32 {
    let square = f * f;
    var p = bitcast<f32>(0xbd9c64e0u);
    p = mad(p, f, bitcast<f32>(0x3e02af60u));
    p = mad(p, f, bitcast<f32>(0xbe06c121u));
    p = mad(p, f, bitcast<f32>(0x3e116c97u));
    p = mad(p, f, bitcast<f32>(0xbe2a3945u));
    p = mad(p, f, bitcast<f32>(0x3e4cd00eu));
    p = mad(p, f, bitcast<f32>(0xbe800113u));
    p = mad(p, f, bitcast<f32>(0x3eaaaaaau));
    let cubic = mad(k, 1.4286068e-6, (f * square) * p);
    let tail = mad(square, -0.5, cubic);
    return mad(k, bitcast<f32>(0x3f317200u), f + tail);
}

fn op_log(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    if (bits & 0x7fffffffu) == 0u {
        return -infinity();
    }
    if is_nan(x) || bits == 0x7f800000u {
        return x;
    }
    if bits >= 0x80000000u {
        return not_a_number();
    }
    var scaled = x;
    var shift = 0;
    if bits < 0x00800000u {
        // A denormal is an integer times 2^-149, however the device treats denormals.
        scaled = f32(bits);
        shift = 149;
    }
    let offset = bitcast<u32>(scaled) - 0x3f3504f3u;
    let k = (bitcast<i32>(offset) >> 23u) - shift;
    let m = bitcast<f32>((offset & 0x007fffffu) + 0x3f3504f3u);
    return log_assemble(f32(k), m - 1.0);
}

fn log1p_of_unit(e: f32) -> f32 {
    if e > 0.41421354 {
        return log_assemble(1.0, mad(e, 0.5, -0.5));
    }
    return log_assemble(0.0, e);
}

fn op_erf(x: f32) -> f32 {
    let a = magnitude(x);
    if a < 0.921875 {
        let square = a * a;
        var p = bitcast<f32>(0x38a79effu);
        p = mad(p, square, bitcast<f32>(0xba530118u));
        p = mad(p, square, bitcast<f32>(0x3baa24d1u));
        p = mad(p, square, bitcast<f32>(0xbcdc008bu));
        p = mad(p, square, bitcast<f32>(0x3de716b2u));
        p = mad(p, square, bitcast<f32>(0xbec093a0u));
        p = mad(p, square, bitcast<f32>(0x3e0375d4u));
        return with_sign(mad(a, p, a), x);
    }
    var bounded = a;
    if a > 4.0 {
        bounded = 4.0;
    }
    var q = bitcast<f32>(0x39605351u);
    q = mad(q, bounded, bitcast<f32>(0xbb52aa99u));
    q = mad(q, bounded, bitcast<f32>(0x3cbb80abu));
    q = mad(q, bounded, bitcast<f32>(0xbdd7924bu));
    q = mad(q, bounded, bitcast<f32>(0xbf22be8eu));
    q = mad(q, bounded, bitcast<f32>(0xbf907324u));
    return with_sign(1.0 - exp_bounded(bounded * q), x);
}

fn normal_cdf(x: f32) -> f32 {
    return 0.5 * (1.0 + op_erf(x * 0.70710677));
}

fn op_gelu(x: f32) -> f32 {
    let cdf = normal_cdf(x);
    if cdf == 0.0 {
        return flipped(0.0);
    }
    return x * cdf;
}

// The 64-bit product of two 32-bit words, from 16-bit products: (high, low).
fn wide_product(a: u32, b: u32) -> vec2<u32> {
    let low = (a & 0xffffu) * (b & 0xffffu);
    let first = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
    let second = (a & 0xffffu) * (b >> 16u) + (first & 0xffffu);
    return vec2<u32>((a >> 16u) * (b >> 16u) + (first >> 16u) + (second >> 16u), a * b);
}

// `sin(x + quarter * pi/2)` for |x| <= 2^30, NaN beyond. The reduction is exact: the mantissa times 96 bits of 2/pi
// in integers.
fn sine_of_shifted(x: f32, quarter: u32) -> f32 {
    let a = magnitude(x);
    if !(a <= 1073741824.0) {
        return not_a_number();
    }
    var quadrant = 0u;
    var rest = a;
    if a > 0.78 {
        let bits = bitcast<u32>(a);
        let mantissa = (bits & 0x007fffffu) | 0x00800000u;
        let exponent = i32(bits >> 23u) - 150;
        let p0 = wide_product(mantissa, 0xfc2757d1u);
        let p1 = wide_product(mantissa, 0x4e441529u);
        let p2 = wide_product(mantissa, 0xa2f9836eu);
        let w1 = p1.y + p0.x;
        let carry1 = u32(w1 < p1.y);
        let w2a = p2.y + p1.x;
        let w2 = w2a + carry1;
        let carry2 = u32(w2a < p2.y) + u32(w2 < w2a);
        let w3 = p2.x + carry2;
        var whole = w3;
        var high = w2;
        var low = w1;
        if exponent > 0 {
            let s = u32(exponent);
            whole = (w3 << s) | (w2 >> (32u - s));
            high = (w2 << s) | (w1 >> (32u - s));
            low = (w1 << s) | (p0.y >> (32u - s));
        }
        if exponent < 0 {
            let s = u32(-exponent);
            whole = w3 >> s;
            high = (w2 >> s) | (w3 << (32u - s));
            low = (w1 >> s) | (w2 << (32u - s));
        }
        let beyond = (high & 0x80000000u) != 0u;
        if beyond {
            whole = whole + 1u;
            high = ~high;
            low = ~low;
        }
        quadrant = whole;
        rest = mad(f32(high), 3.6572952e-10, f32(low) * 8.5153e-20);
        if beyond {
            rest = -rest;
        }
    }
    if (bitcast<u32>(x) & 0x80000000u) != 0u {
        rest = -rest;
        quadrant = 0u - quadrant;
    }
    quadrant = quadrant + quarter;
    let square = rest * rest;
    var value = 0.0;
    if (quadrant & 1u) == 0u {
        var s = 2.7557319e-6;
        s = mad(s, square, -1.9841270e-4);
        s = mad(s, square, 8.3333333e-3);
        s = mad(s, square, -0.16666667);
        value = mad(rest * square, s, rest);
    } else {
        var c = -2.7557319e-7;
        c = mad(c, square, 2.4801587e-5);
        c = mad(c, square, -1.3888889e-3);
        c = mad(c, square, 0.041666667);
        c = mad(c, square, -0.5);
        value = mad(c, square, 1.0);
    }
    if (quadrant & 2u) != 0u {
        value = -value;
    }
    return value;
}

fn op_sin(x: f32) -> f32 {
    if x == 0.0 {
        return x;
    }
    return sine_of_shifted(x, 0u);
}

fn op_cos(x: f32) -> f32 {
    return sine_of_shifted(x, 1u);
}

// Computed as `exp(y log |x|)`. The error grows with the exponent, as the documented bounds allow.
fn op_pow(x: f32, y: f32) -> f32 {
    if y == 0.0 || x == 1.0 {
        return 1.0;
    }
    if is_nan(x) || is_nan(y) {
        return not_a_number();
    }
    let a = magnitude(x);
    var power = 1.0;
    if a != 1.0 {
        var l = op_log(a);
        if a == infinity() {
            l = infinity();
        }
        power = op_exp(y * l);
    }
    let integer = trunc(y) == y;
    let half = y * 0.5;
    if (bitcast<u32>(x) & 0x80000000u) != 0u {
        if x < 0.0 && !integer && a != infinity() {
            return not_a_number();
        }
        if integer && trunc(half) != half {
            return -power;
        }
    }
    return power;
}

fn slope_tanh(y: f32) -> f32 {
    return mad(flipped(y), y, 1.0);
}

fn slope_sigmoid(y: f32) -> f32 {
    return y * (1.0 - y);
}

fn slope_relu(x: f32) -> f32 {
    if x > 0.0 {
        return 1.0;
    }
    return 0.0;
}

fn slope_silu(x: f32) -> f32 {
    let s = op_sigmoid(x);
    if s == 0.0 {
        return 0.0;
    }
    if s == 1.0 {
        return 1.0;
    }
    return mad(x * s, 1.0 - s, s);
}

fn slope_softplus(x: f32) -> f32 {
    return op_sigmoid(x);
}

fn slope_erf(x: f32) -> f32 {
    return 1.1283791 * op_exp(flipped(x * x));
}

fn slope_gelu(x: f32) -> f32 {
    let cdf = normal_cdf(x);
    let pdf = 0.39894228 * op_exp(-0.5 * (x * x));
    if pdf == 0.0 {
        return cdf;
    }
    return mad(x, pdf, cdf);
}

fn signed_of(x: f32) -> u32 {
    if is_nan(x) {
        return 0u;
    }
    if x >= 2147483648.0 {
        return 0x7fffffffu;
    }
    if x <= -2147483648.0 {
        return 0x80000000u;
    }
    return bitcast<u32>(i32(x));
}

fn unsigned_of(x: f32) -> u32 {
    if is_nan(x) || x <= 0.0 {
        return 0u;
    }
    if x >= 4294967296.0 {
        return 0xffffffffu;
    }
    return u32(x);
}

fn min_signed(a: u32, b: u32) -> u32 {
    return bitcast<u32>(min(bitcast<i32>(a), bitcast<i32>(b)));
}

fn max_signed(a: u32, b: u32) -> u32 {
    return bitcast<u32>(max(bitcast<i32>(a), bitcast<i32>(b)));
}

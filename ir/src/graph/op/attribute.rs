//! Attributes of ops: floats compared by bits, families of functions, and permutations.

use crate::types::Shape;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A float attribute. It compares, orders and hashes its bits, so equality is an equivalence relation.
///
/// Readable formats contain the number, or `"inf"`, `"-inf"`, `"nan(0x7fc00000)"`. Binary formats contain the bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Float(u32);

impl Float {
    /// The attribute with this value.
    #[must_use]
    pub const fn new(value: f32) -> Self {
        Self(value.to_bits())
    }

    /// The value of the attribute.
    #[must_use]
    pub const fn get(self) -> f32 {
        f32::from_bits(self.0)
    }

    /// The bits of the attribute.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }
}

impl From<f32> for Float {
    fn from(value: f32) -> Self {
        Self::new(value)
    }
}

impl Serialize for Float {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.get() {
            _ if !serializer.is_human_readable() => serializer.serialize_u32(self.0),
            finite if finite.is_finite() => serializer.serialize_f32(finite),
            nan if nan.is_nan() => serializer.collect_str(&format_args!("nan({:#x})", self.0)),
            infinite => serializer.collect_str(&infinite),
        }
    }
}

impl<'de> Deserialize<'de> for Float {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Readable {
            Number(f32),
            Word(String),
        }
        if !deserializer.is_human_readable() {
            return u32::deserialize(deserializer).map(Self);
        }
        let word = match Readable::deserialize(deserializer)? {
            Readable::Number(number) => return Ok(Self::new(number)),
            Readable::Word(word) => word,
        };
        let bits = || u32::from_str_radix(word.strip_prefix("nan(0x")?.strip_suffix(')')?, 16).ok();
        match word.as_str() {
            "inf" => Ok(Self::new(f32::INFINITY)),
            "-inf" => Ok(Self::new(f32::NEG_INFINITY)),
            _ => bits().map(Self).ok_or_else(|| {
                serde::de::Error::custom("expected a finite number, \"inf\", \"-inf\" or \"nan(0x..)\"")
            }),
        }
    }
}

impl fmt::Debug for Float {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.get())
    }
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$vdoc])* $variant,)* }

        impl $name {
            /// Every member, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The word of the member in text.
            #[must_use]
            pub const fn spelling(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }
    };
}

words! {
    /// Elementwise functions of one operand without attributes.
    Unary {
        /// `-x`
        Neg = "neg",
        /// `|x|`
        Abs = "abs",
        /// `e^x`
        Exp = "exp",
        /// Natural logarithm.
        Log = "log",
        /// Square root.
        Sqrt = "sqrt",
        /// `1 / sqrt(x)`
        Rsqrt = "rsqrt",
        /// `x * x`
        Square = "square",
        /// `1 / x`
        Recip = "recip",
        /// Hyperbolic tangent.
        Tanh = "tanh",
        /// `1 / (1 + e^-x)`
        Sigmoid = "sigmoid",
        /// `max(x, 0)`; its derivative at 0 is 0.
        Relu = "relu",
        /// Gaussian error linear unit, by the error function.
        Gelu = "gelu",
        /// `x * sigmoid(x)`
        Silu = "silu",
        /// `log(1 + e^x)`
        Softplus = "softplus",
        /// Sine.
        Sin = "sin",
        /// Cosine.
        Cos = "cos",
        /// The error function.
        Erf = "erf",
        /// -1, 0 or 1.
        Sign = "sign",
    }
}

words! {
    /// Elementwise functions of two operands of one type. A scalar operand applies to every element.
    Binary {
        /// `a + b`
        Add = "add",
        /// `a - b`
        Sub = "sub",
        /// `a * b`
        Mul = "mul",
        /// `a / b`, floats only.
        Div = "div",
        /// `a ^ b`, floats only.
        Pow = "pow",
        /// The smaller; of ties the first.
        Min = "min",
        /// The larger; of ties the first.
        Max = "max",
    }
}

words! {
    /// Elementwise comparisons; the result is `bool`.
    Compare {
        /// `a == b`
        Eq = "eq",
        /// `a != b`
        Ne = "ne",
        /// `a < b`
        Lt = "lt",
        /// `a <= b`
        Le = "le",
        /// `a > b`
        Gt = "gt",
        /// `a >= b`
        Ge = "ge",
    }
}

words! {
    /// Functions that fold several numbers into one.
    Fold {
        /// Their sum.
        Sum = "sum",
        /// Their arithmetic mean.
        Mean = "mean",
        /// The largest; of ties the first.
        Max = "max",
        /// The smallest; of ties the first.
        Min = "min",
    }
}

words! {
    /// Functions that fold the values of a list into one; 0 for an empty list.
    ListFold {
        /// Elementwise sum, left to right.
        Sum = "list_sum",
        /// Elementwise mean.
        Mean = "list_mean",
        /// Elementwise maximum; of ties the first.
        Max = "list_max",
        /// Elementwise `log(sum e^x)`.
        LogSumExp = "list_logsumexp",
        /// Elementwise place of the maximum in the list; of ties the first.
        ArgMax = "list_argmax",
    }
}

words! {
    /// The elements of a value that a fold combines.
    Over {
        /// The elements along the innermost axis; the result keeps the other axes.
        Last = "last",
        /// All of them; the result is a scalar.
        All = "all",
    }
}

/// A permutation of axes: axis `i` of the result is axis `self.0[i]` of the operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Permutation(pub [u8; Shape::MAX_RANK]);

impl Permutation {
    /// The permutation that swaps the axes of a matrix.
    pub const SWAP: Self = Self([1, 0, 2, 3]);
}

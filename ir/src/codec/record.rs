//! Records: data as words, names and ops in a fixed order, described once for writing and reading.
//!
//! [`Coded`] is the encoding of a type. The macro [`coded`] derives it from the list of fields or members, so writer and
//! reader cannot disagree. Every value has exactly one encoding: a reader rejects unknown numbers and stray words.

use super::{Blob, FORMAT, LoadError, Text, Words};
use crate::graph::Float;
use crate::graph::Op;
use crate::id::{SigId, SiteId, ValueId};
use crate::plan::{Code, FieldId, KernelId, Mode, ParamPort, RegId, SlabId, StoreId};
use crate::types::{DType, Shape, Type};
use serde::Serialize;
use serde::de::DeserializeOwned;
use smol_str::SmolStr;
use std::ops::Range;

/// The blobs that a writer fills. The text is shared with other writers of the file.
pub(super) struct Writer<'t> {
    pub(super) text: &'t mut String,
    pub(super) words: Vec<u32>,
    /// Ops, codes and callees, which have attributes, in sequence.
    pub(super) ops: Vec<u8>,
}

/// The blobs that a reader consumes.
pub(super) struct Reader<'t, 'a> {
    pub(super) text: &'t mut Text<'a>,
    pub(super) words: Words<'a>,
    pub(super) ops: &'a [u8],
}

/// The encoding of a type.
pub(super) trait Coded: Sized {
    /// The least number of words. A reader compares counts with it before it allocates memory.
    const WORDS: usize;
    fn write(&self, to: &mut Writer<'_>);
    fn read(from: &mut Reader<'_, '_>) -> Result<Self, LoadError>;
}

/// Derives [`Coded`]. A struct is its fields in the order of the list. A member of an enum is its
/// number and its fields, and zeros up to a common size if the list gives one.
macro_rules! coded {
    (struct $type:ty, $words:literal words: $($field:ident),*) => {
        impl $crate::codec::record::Coded for $type {
            const WORDS: usize = $words;
            fn write(&self, to: &mut $crate::codec::record::Writer<'_>) {
                let Self { $($field),* } = self;
                $($crate::codec::record::Coded::write($field, to);)*
            }
            fn read(from: &mut $crate::codec::record::Reader<'_, '_>) -> Result<Self, $crate::LoadError> {
                Ok(Self { $($field: $crate::codec::record::Coded::read(from)?),* })
            }
        }
    };
    (
        enum $type:ty, $words:literal words:
        $($number:literal = $member:ident $(($($item:ident),*))? $({$($field:ident),*})?;)*
    ) => {
        impl $crate::codec::record::Coded for $type {
            const WORDS: usize = $words;
            fn write(&self, to: &mut $crate::codec::record::Writer<'_>) {
                let size = to.words.len() + $words;
                match self {
                    $(Self::$member $(($($item),*))? $({$($field),*})? => {
                        to.words.push($number);
                        $($($crate::codec::record::Coded::write($item, to);)*)?
                        $($($crate::codec::record::Coded::write($field, to);)*)?
                    })*
                }
                to.words.resize(size.max(to.words.len()), 0);
            }
            fn read(from: &mut $crate::codec::record::Reader<'_, '_>) -> Result<Self, $crate::LoadError> {
                let before = from.words.len();
                let made = match from.words.next()? {
                    $($number => {
                        $($(let $item = $crate::codec::record::Coded::read(from)?;)*)?
                        $($(let $field = $crate::codec::record::Coded::read(from)?;)*)?
                        Self::$member $(($($item),*))? $({$($field),*})?
                    })*
                    word => return Err(from.words.refused(word)),
                };
                from.words.zeros(($words + from.words.len()).saturating_sub(before))?;
                Ok(made)
            }
        }
    };
}
pub(super) use coded;

/// The words of records, and nothing else.
pub(super) fn write_all<T: Coded>(items: &[T], text: &mut String) -> Blob<'static> {
    let mut to = Writer { text, words: Vec::with_capacity(items.len() * T::WORDS), ops: Vec::new() };
    items.iter().for_each(|item| item.write(&mut to));
    Blob::words(&to.words)
}

/// The records of a blob. Each has [`Coded::WORDS`] words.
pub(super) fn read_all<'a, T: Coded>(
    blob: &'a Blob<'_>,
    what: &'static str,
    text: &mut Text<'a>,
) -> Result<Vec<T>, LoadError> {
    let words = blob.reader(what)?;
    let count = words.records(T::WORDS)?;
    let mut from = Reader { text, words, ops: &[] };
    (0..count).map(|_| T::read(&mut from)).collect()
}

/// The only record of a blob.
pub(super) fn read_one<'a, T: Coded>(
    blob: &'a Blob<'_>,
    what: &'static str,
    text: &mut Text<'a>,
) -> Result<T, LoadError> {
    let mut from = Reader { text, words: blob.reader(what)?, ops: &[] };
    let read = T::read(&mut from)?;
    from.words.end().map(|()| read)
}

impl Coded for u32 {
    const WORDS: usize = 1;
    fn write(&self, to: &mut Writer<'_>) {
        to.words.push(*self);
    }
    fn read(from: &mut Reader<'_, '_>) -> Result<Self, LoadError> {
        from.words.next()
    }
}

/// The lower half comes first.
impl Coded for u64 {
    const WORDS: usize = 2;
    fn write(&self, to: &mut Writer<'_>) {
        to.words.extend([*self as u32, (*self >> 32) as u32]);
    }
    fn read(from: &mut Reader<'_, '_>) -> Result<Self, LoadError> {
        let [low, high] = from.words.array()?;
        Ok(Self::from(high) << 32 | Self::from(low))
    }
}

/// The lower half comes first.
impl Coded for u128 {
    const WORDS: usize = 4;
    fn write(&self, to: &mut Writer<'_>) {
        [*self as u64, (*self >> 64) as u64].iter().for_each(|half| half.write(to));
    }
    fn read(from: &mut Reader<'_, '_>) -> Result<Self, LoadError> {
        let (low, high) = (u64::read(from)?, u64::read(from)?);
        Ok(Self::from(high) << 64 | Self::from(low))
    }
}

/// Its bits.
impl Coded for Float {
    const WORDS: usize = 1;
    fn write(&self, to: &mut Writer<'_>) {
        to.words.push(self.bits());
    }
    fn read(from: &mut Reader<'_, '_>) -> Result<Self, LoadError> {
        from.words.next().map(f32::from_bits).map(Self::new)
    }
}

/// A count, then the items.
impl<T: Coded> Coded for Vec<T> {
    const WORDS: usize = 1;
    fn write(&self, to: &mut Writer<'_>) {
        to.words.push(self.len() as u32);
        self.iter().for_each(|item| item.write(to));
    }
    fn read(from: &mut Reader<'_, '_>) -> Result<Self, LoadError> {
        let count = from.words.next()? as usize;
        if count > from.words.len() / T::WORDS {
            return Err(from.words.ended());
        }
        let mut items = Self::with_capacity(count);
        for _ in 0..count {
            items.push(T::read(from)?);
        }
        Ok(items)
    }
}

impl<A: Coded, B: Coded> Coded for (A, B) {
    const WORDS: usize = A::WORDS + B::WORDS;
    fn write(&self, to: &mut Writer<'_>) {
        self.0.write(to);
        self.1.write(to);
    }
    fn read(from: &mut Reader<'_, '_>) -> Result<Self, LoadError> {
        Ok((A::read(from)?, B::read(from)?))
    }
}

impl Coded for Range<u32> {
    const WORDS: usize = 2;
    fn write(&self, to: &mut Writer<'_>) {
        to.words.extend([self.start, self.end]);
    }
    fn read(from: &mut Reader<'_, '_>) -> Result<Self, LoadError> {
        let [start, end] = from.words.array()?;
        if start <= end { Ok(start..end) } else { Err(from.words.refused(end)) }
    }
}

/// Its length; its bytes are in the text.
impl Coded for String {
    const WORDS: usize = 1;
    fn write(&self, to: &mut Writer<'_>) {
        to.text.push_str(self);
        to.words.push(self.len() as u32);
    }
    fn read(from: &mut Reader<'_, '_>) -> Result<Self, LoadError> {
        let length = from.words.next()?;
        from.text.take(length)
    }
}

/// One word each: a conversion to the word, and one back that may reject it.
macro_rules! single_words {
    ($($type:ty: $item:ident => $word:expr, $read:expr;)*) => {$(
        impl Coded for $type {
            const WORDS: usize = 1;
            fn write(&self, to: &mut Writer<'_>) {
                let $item = self;
                to.words.push($word);
            }
            fn read(from: &mut Reader<'_, '_>) -> Result<Self, LoadError> {
                let word = from.words.next()?;
                $read(word).ok_or_else(|| from.words.refused(word))
            }
        }
    )*};
}

single_words! {
    bool: flag => u32::from(*flag), |word| [false, true].get(word as usize).copied();
    DType: dtype => *dtype as u32, |word| DType::ALL.get(word as usize).copied();
    Mode: mode => *mode as u32, |word| Mode::ALL.get(word as usize).copied();
    FieldId: id => id.0, |word| Some(FieldId(word));
    RegId: id => id.0, |word| Some(RegId(word));
    ParamPort: id => id.0, |word| Some(ParamPort(word));
    KernelId: id => id.0, |word| Some(KernelId(word));
    SlabId: id => id.0, |word| Some(SlabId(word));
    StoreId: id => id.0, |word| Some(StoreId(word));
    SigId: id => id.index() as u32, |word| SigId::try_new(word as usize);
    SiteId: id => id.index() as u32, |word| SiteId::try_new(word as usize);
    ValueId: id => id.index() as u32, |word| ValueId::try_new(word as usize);
}

impl Coded for SmolStr {
    const WORDS: usize = 1;
    fn write(&self, to: &mut Writer<'_>) {
        to.text.push_str(self);
        to.words.push(self.len() as u32);
    }
    fn read(from: &mut Reader<'_, '_>) -> Result<Self, LoadError> {
        String::read(from).map(Self::from)
    }
}

/// Element type, rank and list flag in one word, then the extents, or 0.
impl Coded for Type {
    const WORDS: usize = 1 + Shape::MAX_RANK;
    fn write(&self, to: &mut Writer<'_>) {
        to.words.extend(type_words(*self));
    }
    fn read(from: &mut Reader<'_, '_>) -> Result<Self, LoadError> {
        let words: [u32; Self::WORDS] = from.words.array()?;
        let [head, extents @ ..] = words;
        let (rank, is_list) = (((head >> 8) & 0xff) as usize, head >> 16 == 1);
        let malformed = || LoadError::malformed(format!("{head:#x} is not a type"));
        let (Some(&dtype), Some(dims)) = (DType::ALL.get((head & 0xff) as usize), extents.get(..rank)) else {
            return Err(malformed());
        };
        let shape = Shape::new(dims).map_err(|error| LoadError::malformed(error.to_string()))?;
        let ty = Self { dtype, shape, is_list };
        // Reject stray bits: each type has exactly one encoding.
        if type_words(ty) == words { Ok(ty) } else { Err(malformed()) }
    }
}

fn type_words(ty: Type) -> [u32; Type::WORDS] {
    let head = ty.dtype as u32 | (ty.shape.rank() as u32) << 8 | u32::from(ty.is_list) << 16;
    let mut words = [head, 0, 0, 0, 0];
    words[1..][..ty.shape.rank()].copy_from_slice(ty.shape.dims());
    words
}

/// No words: these have attributes, which `bincode` encodes in the blob of ops.
macro_rules! in_ops {
    ($($type:ty),*) => {$(
        impl Coded for $type {
            const WORDS: usize = 0;
            fn write(&self, to: &mut Writer<'_>) {
                write_op(self, &mut to.ops);
            }
            fn read(from: &mut Reader<'_, '_>) -> Result<Self, LoadError> {
                read_op(&mut from.ops)
            }
        }
    )*};
}

in_ops!(Op, Code);

pub(super) fn write_op(op: impl Serialize, ops: &mut Vec<u8>) {
    bincode::serde::encode_into_std_write(op, ops, FORMAT)
        .expect("ops are plain and a vector takes all of them");
}

pub(super) fn read_op<T: DeserializeOwned>(ops: &mut &[u8]) -> Result<T, LoadError> {
    // An op takes a few dozen bytes; a forged one must not take more.
    let format = FORMAT.with_limit::<256>();
    let (op, used) = bincode::serde::decode_from_slice(ops, format)
        .map_err(|error| LoadError::malformed(format!("op: {error}")))?;
    *ops = &ops[used..];
    Ok(op)
}

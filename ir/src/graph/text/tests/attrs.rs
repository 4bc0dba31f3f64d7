//! Round trips of attributes.

use super::super::vocabulary::{prototype, spellings};
use super::super::write::push_op;
use super::*;
use crate::types::DType;

/// Random attributes.
struct Random(u64);

impl Random {
    fn word(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let small = self.0 >> 62 == 0;
        (self.0 >> 29) as u32 % if small { 5 } else { u32::MAX }
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.word() as usize % all.len()]
    }
}

impl Random {
    /// Fills an attribute with any value that its type allows.
    fn fill(&mut self, attr: Attr<'_>) {
        match attr {
            Attr::Type(ty) => {
                self.fill(Attr::DType(&mut ty.dtype));
                self.fill(Attr::Flag(&mut ty.is_list));
                self.fill(Attr::Shape(&mut ty.shape));
            }
            Attr::Axis(axis) => *axis = self.word() as u8,
            Attr::Number(number) => *number = self.word(),
            Attr::Float(number) => *number = Float::new(f32::from_bits(self.word())),
            Attr::Element(DType::Bool, bits) => *bits = self.word() % 2,
            Attr::Element(_, bits) => *bits = self.word(),
            Attr::Flag(flag) => *flag = self.word() & 1 == 0,
            Attr::DType(dtype) => *dtype = self.of(&DType::ALL),
            Attr::Order(order) => *order = Permutation([0; 4].map(|_: u8| (self.word() % 6) as u8)),
            Attr::Fold(fold) => *fold = self.of(Fold::ALL),
            Attr::Over(over) => *over = self.of(Over::ALL),
            Attr::Shape(shape) => {
                let dims = [0; 4].map(|_| self.word() % 90 + 1);
                let rank = self.word() as usize % 5;
                *shape = Shape::new(&dims[..rank]).expect("four small extents are a shape");
            }
        }
    }
}

#[test]
fn all_attributes_of_all_ops_read_back() {
    let mut random = Random(0x5eed_0002);
    for (round, word) in (0..200).flat_map(|round| spellings().map(move |word| (round, word))) {
        let mut op = prototype(word).expect("the word spells an op");
        let Ok(()) = attributes::<std::convert::Infallible>(&mut op, &mut |_, attr| {
            random.fill(attr);
            Ok(())
        });
        let mut text = String::new();
        push_op(&mut text, op);
        let mut cursor = Cursor::new(&text);
        let callee = cursor.advance();
        let mut back = prototype(word).expect("the word spells an op");
        let read = cursor.positional(&mut back).and_then(|()| cursor.braces(&mut back, callee));
        assert!(
            read.is_ok() && back == op,
            "seed 0x5eed0002, round {round}: {text} read as {back:?}: {read:?}"
        );
        assert!(cursor.at(Kind::End), "{text}");
    }
}

//! Types and shapes.

use autobatch_ir::INDEX;
use autobatch_ir::types::ShapeError;
use autobatch_ir::types::{DType, IntoShape, Shape, Type, f32, list};

#[test]
fn types_spell_as_in_text() {
    assert_eq!(f32([3, 4]).to_string(), "f32[3,4]");
    assert_eq!(INDEX.to_string(), "u32");
    assert_eq!(list(f32(7)).to_string(), "list f32[7]");
}

#[test]
fn spellings_parse_to_the_same_type() {
    for ty in [f32([3, 4]), INDEX, list(f32(7)), Type::scalar(DType::BF16)] {
        assert_eq!(ty.to_string().parse(), Ok(ty));
    }
    for wrong in ["", "f33", "f32[", "f32[0]", "f32[1,]", "f32[1,1,1,1,1]", "list list f32", "f32 [1]"] {
        assert!(wrong.parse::<Type>().is_err(), "{wrong}");
    }
}

#[test]
fn invalid_shapes_are_rejected() {
    assert_eq!(Shape::new(&[1, 0]), Err(ShapeError::ZeroExtent(1)));
    assert_eq!(Shape::new(&[1; 5]), Err(ShapeError::Rank(5)));
    assert_eq!(Shape::new(&[1 << 20, 1 << 20]), Err(ShapeError::TooLarge));
    assert_eq!([usize::MAX].into_shape(), Err(ShapeError::TooLarge));
}

#[test]
fn a_scalar_is_one_row_of_one_element() {
    assert_eq!((Shape::SCALAR.elements(), Shape::SCALAR.width(), Shape::SCALAR.rows()), (1, 1, 1));
}

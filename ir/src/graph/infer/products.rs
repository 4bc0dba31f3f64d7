//! Result types of products.

use super::{InferError, Inferred, float, sized, vector};
use crate::types::{DType, Type};

pub(super) fn affine(bias: bool, transposed: bool, operands: &[Type], params: &[Type]) -> Inferred {
    let (inputs, outputs) = match (params[0].shape.dims(), transposed) {
        ([inputs, outputs], false) | ([outputs, inputs], true) => (*inputs, *outputs),
        _ => return rejected!("the weight must be a matrix, found {}", params[0]),
    };
    let other_layout = if transposed {
        "the weight is stored as [inputs, outputs]: call affine"
    } else {
        "the weight is stored as [outputs, inputs]: call affine_transposed, or import it transposed"
    };
    let width = total_width(operands)?;
    if width != u64::from(inputs) {
        let error = InferError::new(format!("the value has {width} elements, the weight takes {inputs}"));
        return Err(if width == u64::from(outputs) { error.help(other_layout) } else { error });
    }
    if bias && params[1].shape.dims() != [outputs] {
        let found = params[1];
        return rejected!("the bias must have {outputs} elements, found {found}");
    }
    product_of(operands[0], outputs)
}

/// The width of the concatenation of vectors, or of matrices with equal numbers of rows.
fn total_width(operands: &[Type]) -> Result<u64, InferError> {
    let lead = float(operands[0])?.shape.without_last();
    let mut width = 0u64;
    for (place, &ty) in operands.iter().enumerate() {
        if !(1..=2).contains(&float(ty)?.shape.rank()) || ty.shape.without_last() != lead {
            return rejected!(
                "operands must be vectors, or matrices with equal numbers of rows; operand {place} is {ty}"
            );
        }
        width += ty.shape.width() as u64;
    }
    Ok(width)
}

/// The type of the product of a vector, or of each row of a matrix.
fn product_of(x: Type, outputs: u32) -> Inferred {
    let lead = x.shape.without_last();
    let dims: Vec<u32> = lead.dims().iter().copied().chain([outputs]).collect();
    sized(&dims).map(|shape| vec![Type::new(DType::F32, shape)])
}

pub(super) fn affine_rows(row: u32, bias: bool, onto: bool, operands: &[Type], params: &[Type]) -> Inferred {
    let &[inputs, outputs] = params[0].shape.dims() else {
        return rejected!("the weight must be a matrix, found {}", params[0]);
    };
    reject_if!(bias && onto, "the sums start at a bias or at the first operand, not at both");
    let parts = &operands[usize::from(onto)..];
    let width = total_width(parts)?;
    if u64::from(row) + width > u64::from(inputs) {
        return rejected!(
            "the value has {width} elements, but from row {row} on the weight has {}",
            u64::from(inputs).saturating_sub(u64::from(row))
        );
    }
    if bias && params[1].shape.dims() != [outputs] {
        let found = params[1];
        return rejected!("the bias must have {outputs} elements, found {found}");
    }
    let result = product_of(parts[0], outputs)?;
    reject_if!(onto && operands[0] != result[0], "the sums must be {}, found {}", result[0], operands[0]);
    Ok(result)
}

pub(super) fn matmul(a: Type, b: Type) -> Inferred {
    let (inner, result): ([u32; 2], Vec<u32>) = match (float(a)?.shape.dims(), float(b)?.shape.dims()) {
        ([m, k], [l, n]) => ([*k, *l], vec![*m, *n]),
        ([k], [l, n]) => ([*k, *l], vec![*n]),
        ([m, k], [l]) => ([*k, *l], vec![*m]),
        _ => {
            return rejected!("expected a matrix and a matrix or vector, found {a} and {b}");
        }
    };
    reject_if!(inner[0] != inner[1], "inner extents must agree, found {a} and {b}");
    sized(&result).map(|shape| vec![Type::new(DType::F32, shape)])
}

pub(super) fn outer(a: Type, b: Type) -> Inferred {
    sized(&[vector(a)?, vector(b)?]).map(|shape| vec![Type::new(DType::F32, shape)])
}

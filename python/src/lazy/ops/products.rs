//! Products of matrices and vectors.

use super::{Op, one, refuse};
use crate::lazy::call::Call;
use crate::lazy::dims::{Dims, core, elements, shape_of, written};
use crate::lazy::tensor::{Form, Kind, Operand, Tensor, shaped};
use crate::lazy::{Made, Outcome, Recording};
use autobatch::ir::graph::Value;
use autobatch::ir::module::Param;
use smallvec::SmallVec;

pub(super) const OPS: &[Op] = &[
    Op::new(&["matmul", "__matmul__", "mm", "bmm", "mv"], &["input", "other"], |r, call| {
        let (a, b) = (r.float_tensor(&call.need(0)?)?, r.float_tensor(&call.need(1)?)?);
        one(r.product(&a, &b)?)
    }),
    Op::new(&["__rmatmul__"], &["input", "other"], |r, call| {
        let (a, b) = (r.float_tensor(&call.need(1)?)?, r.float_tensor(&call.need(0)?)?);
        one(r.product(&a, &b)?)
    }),
    Op::new(&["dot", "inner"], &["input", "other"], |r, call| {
        let (a, b) = (r.float_tensor(&call.need(0)?)?, r.float_tensor(&call.need(1)?)?);
        match (a.rank(), b.rank()) {
            (1, 1) => one(r.product(&a, &b)?),
            _ => refuse("an inner product of tensors that are no vectors"),
        }
    }),
    Op::new(&["outer", "ger"], &["input", "vec2"], |r, call| {
        let (a, b) = (r.float_tensor(&call.need(0)?)?, r.float_tensor(&call.need(1)?)?);
        let (&[m], &[_]) = (&a.dims[..], &b.dims[..]) else {
            return refuse("an outer product of tensors that are no vectors");
        };
        let a = r.reshaped(&a, [m, 1].into_iter().collect::<Dims>())?;
        one(r.pair(Operand::Tensor(a), Operand::Tensor(b), |a, b| a * b)?)
    }),
    Op::new(&["linear"], &["input", "weight", "bias"], |r, call| {
        let (x, weight) = (r.float_tensor(&call.need(0)?)?, r.float_tensor(&call.need(1)?)?);
        let bias = call.get(2)?.map(|bias| r.float_tensor(&bias)).transpose()?;
        one(r.linear(&x, &weight, bias.as_ref())?)
    }),
    Op::new(&["addmm", "addmv", "baddbmm"], &["input", "mat1", "mat2", "beta", "alpha"], |r, call| {
        let onto = r.operand(&call.need(0)?)?;
        let (a, b) = (r.float_tensor(&call.need(1)?)?, r.float_tensor(&call.need(2)?)?);
        let (beta, alpha) = (call.number(3, 1.0)? as f32, call.number(4, 1.0)? as f32);
        let product = r.product(&a, &b)?;
        one(r.pair(onto, Operand::Tensor(product), |onto, product| {
            let onto = if beta == 1.0 { onto } else { onto * beta };
            onto + if alpha == 1.0 { product } else { product * alpha }
        })?)
    }),
    Op::new(&["einsum"], &["equation", "*operands"], einsum),
];

/// A weight that products take without a copy.
#[derive(Clone, Copy)]
struct Weight {
    param: Param,
    /// Whether it is stored as `[outputs, inputs]`.
    by_outputs: bool,
    outputs: u32,
}

impl<'g> Recording<'_, 'g> {
    /// A matrix parameter as the weight of `x · W`.
    fn weight(&self, tensor: &Tensor) -> Option<Weight> {
        let Form::Param { number, transposed } = tensor.form else { return None };
        let decl = &self.engine.params[number];
        let &[_, outputs] = &tensor.dims[..] else { return None };
        (decl.dims.len() == 2).then_some(Weight { param: decl.param(), by_outputs: transposed, outputs })
    }

    /// `x · Wᵀ + b`.
    pub(super) fn linear(&self, x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Made<Tensor> {
        if weight.rank() != 2 {
            return refuse(format!("a weight of shape {}", written(&weight.dims)));
        }
        let weight = self.permuted(weight, &[1, 0])?;
        let own = bias.and_then(|bias| match bias.form {
            Form::Param { number, .. } => Some(self.engine.params[number].param()),
            _ => None,
        });
        match (self.weight(&weight), bias) {
            (Some(weight), bias) if bias.is_none() || own.is_some() => self.affine(x, weight, own),
            (_, None) => self.product(x, &weight),
            (_, Some(bias)) => {
                let product = self.product(x, &weight)?;
                self.pair(Operand::Tensor(product), Operand::Tensor(bias.clone()), |a, b| a + b)
            }
        }
    }

    /// The product of each row with a parameter.
    fn affine(&self, x: &Tensor, weight: Weight, bias: Option<Param>) -> Made<Tensor> {
        self.by_last_axis(x, weight.outputs, |x| match weight.by_outputs {
            true => x.affine_transposed(weight.param, bias),
            false => x.affine(weight.param, bias),
        })
    }

    /// Applies a function of vectors, or of the rows of a matrix, along the last axis. It makes `outputs` elements a row.
    pub(super) fn by_last_axis(
        &self,
        x: &Tensor,
        outputs: u32,
        f: impl Fn(Value<'g>) -> Value<'g>,
    ) -> Made<Tensor> {
        let Some((&inputs, outer)) = x.dims.split_last() else {
            return refuse("a scalar where a vector is needed");
        };
        let dims: Dims = outer.iter().copied().chain([outputs]).collect();
        if let (Some(rows), [_, _]) = (x.as_rows(), x.core()) {
            let rows =
                rows.iter().map(|&row| shaped(f(shaped(self.value(row), &[inputs])), core(&[outputs])));
            return self.made_of_rows(rows.collect(), dims.clone());
        }
        let count = (elements(&x.dims) / inputs as usize) as u32;
        let shape = shape_of(&dims)?;
        let value = match count {
            1 => self.whole_as(x, &[inputs])?,
            _ => self.whole_as(x, &[count, inputs])?,
        };
        self.made(shaped(f(value), shape.dims()), dims)
    }

    /// `matmul` of torch.
    pub(in crate::lazy) fn product(&self, a: &Tensor, b: &Tensor) -> Made<Tensor> {
        let mismatch = || refuse(format!("the product of {} and {}", written(&a.dims), written(&b.dims)));
        match (&a.dims[..], &b.dims[..]) {
            ([], _) | (_, []) => mismatch(),
            ([k], [l]) => match k == l {
                true => self.made(self.whole_as(a, &[*k])?.dot(self.whole_as(b, &[*l])?), Dims::new()),
                false => mismatch(),
            },
            ([.., k], [l, _]) if k != l => mismatch(),
            ([.., _], [_, _]) if let Some(weight) = self.weight(b) => self.affine(a, weight, None),
            ([_, k], [l]) if k != l => mismatch(),
            ([m, _], [_]) => {
                let flipped = self.permuted(a, &[1, 0])?;
                match self.weight(&flipped) {
                    Some(weight) => self.affine(b, weight, None),
                    None => self.by_matrix(a, b, [*m].into_iter().collect()),
                }
            }
            ([m, k], [l, 1]) if k == l => {
                let vector = self.reshaped(b, [*l].into_iter().collect::<Dims>())?;
                let product = self.product(a, &vector)?;
                self.reshaped(&product, [*m, 1].into_iter().collect::<Dims>())
            }
            ([_], [_, n]) => self.by_matrix(a, b, [*n].into_iter().collect()),
            ([m, _], [_, n]) => self.by_matrix(a, b, [*m, *n].into_iter().collect()),
            _ => self.products(a, b),
        }
    }

    /// The product of two values.
    fn by_matrix(&self, a: &Tensor, b: &Tensor, dims: Dims) -> Made<Tensor> {
        let (a, b) = (self.whole_as(a, &a.dims)?, self.whole_as(b, &b.dims)?);
        let value = a.matmul(b);
        let shape = shape_of(&dims)?;
        self.made(shaped(value, shape.dims()), dims)
    }

    /// Products of matrices along outer axes, which are repeated where they have one element.
    fn products(&self, a: &Tensor, b: &Tensor) -> Made<Tensor> {
        let vector = [a.rank() == 1, b.rank() == 1];
        let a = if vector[0] {
            self.reshaped(a, [1, a.dims[0]].into_iter().collect::<Dims>())?
        } else {
            a.clone()
        };
        let b = if vector[1] {
            self.reshaped(b, [b.dims[0], 1].into_iter().collect::<Dims>())?
        } else {
            b.clone()
        };
        let ([outer_a @ .., m, k], [outer_b @ .., l, n]) = (&a.dims[..], &b.dims[..]) else {
            return refuse("a product of such tensors");
        };
        if k != l {
            return refuse(format!("the product of {} and {}", written(&a.dims), written(&b.dims)));
        }
        let outer = crate::lazy::dims::broadcast(outer_a, outer_b)?;
        let matrices = |x: &Tensor, own: &[u32]| {
            let [rows, columns] = [x.dims[x.rank() - 2], x.dims[x.rank() - 1]];
            let flat: Dims = [elements(own) as u32, rows, columns].into_iter().collect();
            let flat = self.reshaped(x, flat)?;
            let all = match flat.dims[0] {
                1 => vec![self.whole_as(&flat, &[rows, columns])?],
                _ => self.rows(&flat)?.into_iter().map(|value| shaped(value, &[rows, columns])).collect(),
            };
            Made::Ok(all)
        };
        let (all_a, all_b) = (matrices(&a, outer_a)?, matrices(&b, outer_b)?);
        let count = elements(&outer);
        let place = |own: &[u32], number: usize| {
            // The place of a matrix of the result among those of an operand.
            let (mut rest, mut place, mut stride) = (number, 0, 1);
            for at in (0..outer.len()).rev() {
                let index = rest % outer[at] as usize;
                rest /= outer[at] as usize;
                if let Some(at) = (at + own.len()).checked_sub(outer.len()) {
                    place += if own[at] == 1 { 0 } else { index * stride };
                    stride *= own[at] as usize;
                }
            }
            place
        };
        let values = (0..count).map(|number| {
            let value = all_a[place(outer_a, number)].matmul(all_b[place(outer_b, number)]);
            let wanted = [*m, *n];
            let wanted = core(&wanted);
            shaped(value, wanted)
        });
        let mut flat = Dims::from_slice(&[count as u32, *m, *n]);
        let made = self.made_of_rows(values.collect(), flat.clone())?;
        flat = outer;
        if !vector[0] {
            flat.push(*m);
        }
        if !vector[1] {
            flat.push(*n);
        }
        self.reshaped(&made, flat)
    }
}

/// `einsum` of one or two operands, without an ellipsis and repeated letters.
fn einsum(r: &mut Recording<'_, '_>, call: &Call<'_, '_>) -> Made<Outcome> {
    let equation: String = call.word(0, "")?.split_whitespace().collect();
    // Without an arrow, the letters that come once are the axes of the result, in their order in the alphabet.
    let mut once: Vec<char> = equation.chars().filter(|own| own.is_alphabetic()).collect();
    once.retain(|own| equation.matches(*own).count() == 1);
    once.sort_unstable();
    let implied: String = once.into_iter().collect();
    let (from, to) = equation.split_once("->").unwrap_or((&equation, &implied));
    let repeats = |letters: &str| letters.char_indices().any(|(at, letter)| letters[..at].contains(letter));
    let letters: Vec<&str> = from.split(',').collect();
    if equation.contains('.') || letters.iter().any(|own| repeats(own)) || repeats(to) {
        return refuse(format!("the equation {equation:?}: an ellipsis, or a letter twice"));
    }
    let mut operands = Vec::new();
    let given = call.need(1)?;
    let items: Vec<_> = match given.cast::<pyo3::types::PyList>() {
        Ok(list) => pyo3::types::PyListMethods::iter(list).collect(),
        Err(_) => pyo3::types::PyTupleMethods::iter(call.args).skip(1).collect(),
    };
    for item in items {
        operands.push(r.float_tensor(&item)?);
    }
    let fits = operands.iter().zip(&letters).all(|(operand, own)| operand.rank() == own.len());
    if operands.len() != letters.len() || !fits {
        return refuse(format!("the equation {equation:?} of {} operands", operands.len()));
    }
    let order = |from: &str, to: &str| {
        to.chars().filter_map(|letter| from.find(letter)).collect::<SmallVec<[usize; 5]>>()
    };
    match (&operands[..], &letters[..]) {
        ([x], [own]) => {
            let gone: Vec<usize> =
                own.char_indices().filter(|(_, letter)| !to.contains(*letter)).map(|(at, _)| at).collect();
            let left: String = own.chars().filter(|letter| to.contains(*letter)).collect();
            let x = r.summed(x, &gone, false)?;
            one(r.permuted(&x, &order(&left, to))?)
        }
        ([a, b], [of_a, of_b]) => {
            // Axes of one operand that the result lacks are summed first.
            let only = |own: &str, other: &str| -> Vec<usize> {
                let gone = |letter: &char| !to.contains(*letter) && !other.contains(*letter);
                own.char_indices().filter(|(_, letter)| gone(letter)).map(|(at, _)| at).collect()
            };
            let left = |own: &str, other: &str| -> String {
                own.chars().filter(|letter| to.contains(*letter) || other.contains(*letter)).collect()
            };
            let (a, b) = (r.summed(a, &only(of_a, of_b), false)?, r.summed(b, &only(of_b, of_a), false)?);
            let (of_a, of_b) = (left(of_a, of_b), left(of_b, of_a));
            let batch: String = of_a.chars().filter(|own| of_b.contains(*own) && to.contains(*own)).collect();
            let shared: String =
                of_a.chars().filter(|own| of_b.contains(*own) && !to.contains(*own)).collect();
            let own_a: String = of_a.chars().filter(|own| !of_b.contains(*own)).collect();
            let own_b: String = of_b.chars().filter(|own| !of_a.contains(*own)).collect();
            let sizes = |x: &Tensor, own: &str, of: &str| -> Dims {
                of.chars().filter_map(|letter| own.find(letter)).map(|at| x.dims[at]).collect()
            };
            let (d_batch, d_shared) = (sizes(&a, &of_a, &batch), sizes(&a, &of_a, &shared));
            let (d_a, d_b) = (sizes(&a, &of_a, &own_a), sizes(&b, &of_b, &own_b));
            let size = |dims: &[u32]| elements(dims) as u32;
            let flat = |batch: &Dims, m: u32, n: u32| {
                let mut dims: Dims =
                    if batch.is_empty() { Dims::new() } else { [size(batch)].into_iter().collect() };
                dims.extend([m, n]);
                dims
            };
            let a = r.permuted(&a, &order(&of_a, &format!("{batch}{own_a}{shared}")))?;
            let b = r.permuted(&b, &order(&of_b, &format!("{batch}{shared}{own_b}")))?;
            let a = r.reshaped(&a, flat(&d_batch, size(&d_a), size(&d_shared)))?;
            let b = r.reshaped(&b, flat(&d_batch, size(&d_shared), size(&d_b)))?;
            let made = r.product(&a, &b)?;
            let all: Dims = d_batch.iter().chain(&d_a).chain(&d_b).copied().collect();
            let made = r.reshaped(&made, all)?;
            debug_assert_eq!(made.kind, Kind::Float);
            one(r.permuted(&made, &order(&format!("{batch}{own_a}{own_b}"), to))?)
        }
        _ => refuse(format!("the equation {equation:?}: more than two operands")),
    }
}

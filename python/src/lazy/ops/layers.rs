//! Recurrent cells and layers, dropout and attention.

use super::{Op, one, refuse};
use crate::lazy::call::Call;
use crate::lazy::dims::{Dims, core, written};
use crate::lazy::tensor::{Operand, Tensor, shaped};
use crate::lazy::{Fail, Made, Outcome, Recording};
use autobatch::ir::graph::Value;
use pyo3::prelude::*;

const CELL: &[&str] = &["input", "hx", "w_ih", "w_hh", "b_ih", "b_hh"];
const LAYER: &[&str] = &[
    "input",
    "hx",
    "params",
    "has_biases",
    "num_layers",
    "dropout",
    "train",
    "bidirectional",
    "batch_first",
];

pub(super) const OPS: &[Op] = &[
    Op::new(&["lstm_cell"], CELL, |r, call| {
        let x = r.float_tensor(&call.need(0)?)?;
        let state = r.sequence(&call.need(1)?)?;
        let [h, c] = &state[..] else { return refuse("a state that is no pair") };
        let weights = r.cell_weights(call)?;
        r.each_row(&[&x, h, c], |r, rows| r.lstm(&rows[0], &rows[1], &rows[2], &weights).map(Vec::from))
            .map(Outcome::Tuple)
    }),
    Op::new(&["gru_cell"], CELL, |r, call| {
        let (x, h) = (r.float_tensor(&call.need(0)?)?, r.float_tensor(&call.need(1)?)?);
        let weights = r.cell_weights(call)?;
        r.each_row_of_one(&x, &h, |r, x, h| r.gru(x, h, &weights))
    }),
    Op::new(&["rnn_tanh_cell"], CELL, |r, call| {
        let (x, h) = (r.float_tensor(&call.need(0)?)?, r.float_tensor(&call.need(1)?)?);
        let weights = r.cell_weights(call)?;
        r.each_row_of_one(&x, &h, |r, x, h| r.simple(x, h, &weights, |x| x.tanh()))
    }),
    Op::new(&["rnn_relu_cell"], CELL, |r, call| {
        let (x, h) = (r.float_tensor(&call.need(0)?)?, r.float_tensor(&call.need(1)?)?);
        let weights = r.cell_weights(call)?;
        r.each_row_of_one(&x, &h, |r, x, h| r.simple(x, h, &weights, |x| x.relu()))
    }),
    Op::new(&["lstm"], LAYER, |r, call| r.recurrent(call, Cell::Lstm)),
    Op::new(&["gru"], LAYER, |r, call| r.recurrent(call, Cell::Gru)),
    Op::new(&["rnn_tanh"], LAYER, |r, call| r.recurrent(call, Cell::Tanh)),
    Op::new(&["rnn_relu"], LAYER, |r, call| r.recurrent(call, Cell::Relu)),
    Op::new(&["dropout"], &["input", "p", "training", "inplace"], dropout),
    Op::new(
        &["alpha_dropout", "feature_dropout", "dropout1d", "dropout2d"],
        &["input", "p", "training", "inplace"],
        |_, call| match call.flag(2, true)? && call.number(1, 0.5)? > 0.0 {
            true => refuse("its noise; only dropout of single elements is recorded"),
            false => Ok(Outcome::Same),
        },
    ),
];

/// The kinds of recurrent cells.
#[derive(Clone, Copy, PartialEq)]
enum Cell {
    Lstm,
    Gru,
    Tanh,
    Relu,
}

/// The parameters of a cell.
struct Weights {
    input: Tensor,
    hidden: Tensor,
    biases: Option<[Tensor; 2]>,
}

impl<'g> Recording<'_, 'g> {
    /// Reads a sequence of tensors of floats.
    fn sequence(&mut self, any: &Bound<'_, PyAny>) -> Made<Vec<Tensor>> {
        let mut all = Vec::new();
        for item in any.try_iter()? {
            all.push(self.float_tensor(&item?)?);
        }
        Ok(all)
    }

    fn cell_weights(&mut self, call: &Call<'_, '_>) -> Made<Weights> {
        let biases = match (call.get(4)?, call.get(5)?) {
            (Some(of_input), Some(of_hidden)) => {
                Some([self.float_tensor(&of_input)?, self.float_tensor(&of_hidden)?])
            }
            _ => None,
        };
        Ok(Weights {
            input: self.float_tensor(&call.need(2)?)?,
            hidden: self.float_tensor(&call.need(3)?)?,
            biases,
        })
    }

    /// The products of input and state with the weights.
    fn gates(&self, x: &Tensor, h: &Tensor, weights: &Weights) -> Made<[Tensor; 2]> {
        let biases = weights.biases.as_ref();
        Ok([
            self.linear(x, &weights.input, biases.map(|biases| &biases[0]))?,
            self.linear(h, &weights.hidden, biases.map(|biases| &biases[1]))?,
        ])
    }

    /// The value of a tensor whose extents before the last one are one: a row.
    fn row(&self, x: &Tensor) -> Made<Value<'g>> {
        match x.dims.split_last() {
            Some((&width, outer)) if outer.iter().all(|&extent| extent == 1) => self.whole_as(x, &[width]),
            _ => refuse(format!("a cell over {} rows; call it for each instance", written(&x.dims))),
        }
    }

    /// Applies a cell to each row of its operands, and joins what it makes.
    fn each_row(
        &self,
        operands: &[&Tensor],
        cell: impl Fn(&Self, &[Tensor]) -> Made<Vec<Tensor>>,
    ) -> Made<Vec<Tensor>> {
        let count = match operands[0].dims[..] {
            [count, _]
                if operands.iter().all(|operand| operand.dims.len() == 2 && operand.dims[0] == count) =>
            {
                count
            }
            _ => 1,
        };
        if count == 1 {
            let all: Vec<Tensor> = operands.iter().map(|&operand| operand.clone()).collect();
            return cell(self, &all);
        }
        let mut made: Vec<Vec<Tensor>> = Vec::new();
        for row in 0..count {
            let rows =
                operands.iter().map(|operand| self.range(operand, 0, row, 1)).collect::<Made<Vec<_>>>()?;
            for (place, part) in cell(self, &rows)?.into_iter().enumerate() {
                if row == 0 {
                    made.push(Vec::new());
                }
                made[place].push(part);
            }
        }
        made.iter().map(|parts| self.joined(parts, 0)).collect()
    }

    fn each_row_of_one(
        &self,
        x: &Tensor,
        h: &Tensor,
        cell: impl Fn(&Self, &Tensor, &Tensor) -> Made<Tensor>,
    ) -> Made<Outcome> {
        let made = self.each_row(&[x, h], |r, rows| Ok(vec![cell(r, &rows[0], &rows[1])?]))?;
        one(made.into_iter().next().ok_or(Fail::Poison)?)
    }

    fn of_row(&self, value: Value<'g>, like: &Tensor) -> Made<Tensor> {
        let width = value.shape().width() as u32;
        let mut dims = like.dims.clone();
        if let Some(last) = dims.last_mut() {
            *last = width;
        }
        let value = shaped(value, core(&[width]));
        self.made(value, dims)
    }

    fn lstm(&self, x: &Tensor, h: &Tensor, c: &Tensor, weights: &Weights) -> Made<[Tensor; 2]> {
        let [of_input, of_hidden] = self.gates(x, h, weights)?;
        let gates = self.row(&of_input)? + self.row(&of_hidden)?;
        let [i, f, g, o] = gates.split();
        let new = f.sigmoid() * self.row(c)? + i.sigmoid() * g.tanh();
        Ok([self.of_row(o.sigmoid() * new.tanh(), h)?, self.of_row(new, c)?])
    }

    fn gru(&self, x: &Tensor, h: &Tensor, weights: &Weights) -> Made<Tensor> {
        let [of_input, of_hidden] = self.gates(x, h, weights)?;
        let [xr, xz, xn] = self.row(&of_input)?.split();
        let [hr, hz, hn] = self.row(&of_hidden)?.split();
        let (reset, keep) = ((xr + hr).sigmoid(), (xz + hz).sigmoid());
        let new = (xn + reset * hn).tanh();
        self.of_row(new + keep * (self.row(h)? - new), h)
    }

    fn simple(
        &self,
        x: &Tensor,
        h: &Tensor,
        weights: &Weights,
        f: fn(Value<'g>) -> Value<'g>,
    ) -> Made<Tensor> {
        let [of_input, of_hidden] = self.gates(x, h, weights)?;
        self.of_row(f(self.row(&of_input)? + self.row(&of_hidden)?), h)
    }

    /// `nn.LSTM`, `nn.GRU` and `nn.RNN` over one sequence.
    fn recurrent(&mut self, call: &Call<'_, '_>, cell: Cell) -> Made<Outcome> {
        let x = self.float_tensor(&call.need(0)?)?;
        let hx = match cell {
            Cell::Lstm => self.sequence(&call.need(1)?)?,
            _ => vec![self.float_tensor(&call.need(1)?)?],
        };
        if call.get(8)?.is_none() {
            return refuse("packed sequences; pass one sequence, and batch() batches it with the others");
        }
        let params = self.sequence(&call.need(2)?)?;
        let (has_biases, layers) = (call.flag(3, true)?, call.int(4)?.unwrap_or(1).max(1) as usize);
        let (rate, training) = (call.number(5, 0.0)?, call.flag(6, false)?);
        let directions = 1 + usize::from(call.flag(7, false)?);
        let batch_first = call.flag(8, false)?;
        let &[a, b, width] = &x.dims[..] else {
            return refuse(format!("an input of shape {}", written(&x.dims)));
        };
        let (steps, batch) = if batch_first { (b, a) } else { (a, b) };
        if batch != 1 {
            return refuse(format!("a minibatch of {batch} sequences; call it for each instance"));
        }
        let each = if has_biases { 4 } else { 2 };
        if params.len() != each * layers * directions {
            return refuse("projections of a hidden state");
        }
        let flat = self.reshaped(&x, Dims::from_slice(&[steps, width]))?;
        let mut inputs = (0..steps).map(|step| self.range(&flat, 0, step, 1)).collect::<Made<Vec<_>>>()?;
        let mut last = vec![Vec::new(); hx.len()];
        for layer in 0..layers {
            let mut outputs: Vec<Vec<Tensor>> = vec![Vec::new(); inputs.len()];
            for direction in 0..directions {
                let number = layer * directions + direction;
                let own = &params[number * each..(number + 1) * each];
                let biases = has_biases.then(|| [own[2].clone(), own[3].clone()]);
                let weights = Weights { input: own[0].clone(), hidden: own[1].clone(), biases };
                let mut state = hx.iter().map(|state| {
                    let state = self.range(state, 0, number as u32, 1)?;
                    let width = state.dims[state.rank() - 1];
                    self.reshaped(&state, Dims::from_slice(&[1, width]))
                });
                let mut state = state.by_ref().collect::<Made<Vec<_>>>()?;
                let mut order: Vec<usize> = (0..inputs.len()).collect();
                if direction == 1 {
                    order.reverse();
                }
                for step in order {
                    let x = &inputs[step];
                    state = match cell {
                        Cell::Lstm => self.lstm(x, &state[0], &state[1], &weights)?.into(),
                        Cell::Gru => vec![self.gru(x, &state[0], &weights)?],
                        Cell::Tanh => vec![self.simple(x, &state[0], &weights, |x| x.tanh())?],
                        Cell::Relu => vec![self.simple(x, &state[0], &weights, |x| x.relu())?],
                    };
                    outputs[step].push(state[0].clone());
                }
                last.iter_mut().zip(state).for_each(|(last, state)| last.push(state));
            }
            inputs = outputs.iter().map(|own| self.joined(own, 1)).collect::<Made<Vec<_>>>()?;
            if training && rate > 0.0 && layer + 1 < layers {
                for input in &mut inputs {
                    *input = self.dropped(input, rate)?;
                }
            }
        }
        let output = self.joined(&inputs, 0)?;
        let width = output.dims[1];
        let dims = if batch_first { [1, steps, width] } else { [steps, 1, width] };
        let mut made = vec![self.reshaped(&output, Dims::from_slice(&dims))?];
        for states in last {
            let joined = self.joined(&states, 0)?;
            let dims = [joined.dims[0], 1, joined.dims[1]];
            made.push(self.reshaped(&joined, Dims::from_slice(&dims))?);
        }
        Ok(Outcome::Tuple(made))
    }

    /// Dropout with the noise that torch draws for a tensor of these extents.
    pub(super) fn dropped(&mut self, x: &Tensor, rate: f64) -> Made<Tensor> {
        let py = self.py;
        let torch = py.import("torch")?;
        let ones = torch.getattr("ones")?.call1((x.dims.to_vec(),))?;
        let noise = torch.getattr("dropout")?.call1((ones, rate, true))?;
        let noise = self.tensor(&noise)?;
        self.pair(Operand::Tensor(x.clone()), Operand::Tensor(noise), |x, noise| x * noise)
    }
}

fn dropout(r: &mut Recording<'_, '_>, call: &Call<'_, '_>) -> Made<Outcome> {
    let x = r.float_tensor(&call.need(0)?)?;
    let rate = call.number(1, 0.5)?;
    if !call.flag(2, true)? || rate == 0.0 {
        return Ok(Outcome::Same);
    }
    one(r.dropped(&x, rate)?)
}

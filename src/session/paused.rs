//! [`Paused`]: a forward pass that waits for the gradients of its outputs.

use super::{Session, growing, inputs_of};
use crate::error::{Error, Result};
use crate::executor::PausedRows;
use crate::row::Row;
use crate::session::Gradients;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Mode, Plan, Verified};
use autobatch_ir::types::DType;
use autobatch_ir::{Graph, Value, ValueId, ValueKey, Weights};
use autobatch_planner::Request;
use autobatch_runtime_cpu::Inputs;
use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::{Index, Range};
use std::sync::Arc;

/// The outputs of [`Session::forward`], and what [`Session::backward`] needs to differentiate them.
///
/// It owns the rows of the forward pass, so a session may have any number of them on the CPU. A GPU has memory for the rows of
/// one. Dropping it frees the memory.
pub struct Paused {
    plan: Arc<Verified<Plan>>,
    /// The parameters of the forward pass, which the reverse reads.
    weights: Arc<Weights>,
    words: Vec<u32>,
    /// The floats of the graph. [`Session::backward`] appends the arriving gradients.
    floats: Vec<f32>,
    graph: u32,
    /// The elements of all outputs, in order.
    elements: Vec<f32>,
    outputs: Vec<Output>,
    by_value: HashMap<ValueId, usize>,
    inputs: Vec<ValueKey>,
    /// `None` after the reverse.
    rows: Option<PausedRows>,
}

/// An output of a paused plan.
struct Output {
    elements: Range<usize>,
    /// Where its gradient arrives among the floats; `None` for words.
    floats: Option<Range<usize>>,
}

impl fmt::Debug for Paused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (outputs, waits) = (self.outputs.len(), self.rows.is_some());
        f.debug_struct("Paused").field("outputs", &outputs).field("waits", &waits).finish_non_exhaustive()
    }
}

impl Paused {
    /// Returns the elements of an output, or `None` if the forward pass was not asked for it.
    #[track_caller]
    #[must_use]
    pub fn get(&self, value: Value<'_>) -> Option<&Row> {
        value.key().and_then(|key| self.by_key(key))
    }

    /// Returns the elements of the output with this key.
    #[must_use]
    pub fn by_key(&self, key: ValueKey) -> Option<&Row> {
        let number = *self.by_value.get(&key.id()).filter(|_| key.graph() == self.graph)?;
        Some(Row::new(&self.elements[self.outputs[number].elements.clone()]))
    }

    /// Returns the elements of every output, in the order of the request. A value that was requested twice occurs once.
    pub fn outputs(&self) -> impl ExactSizeIterator<Item = &Row> {
        self.outputs.iter().map(|output| Row::new(&self.elements[output.elements.clone()]))
    }

    /// Returns the plan, which pauses.
    #[must_use]
    pub fn plan(&self) -> &Verified<Plan> {
        &self.plan
    }

    /// Writes gradients behind the floats of the graph. Outputs without a gradient get zeros.
    fn bind(&mut self, gradients: &[(ValueKey, &[f32])]) -> Result<()> {
        self.floats.truncate(self.plan.floats as usize);
        self.floats.resize(self.plan.all_floats() as usize, 0.0);
        for &(key, gradient) in gradients {
            let number = self.by_value.get(&key.id()).filter(|_| key.graph() == self.graph);
            let output = number.map(|&number| &self.outputs[number]);
            let Some(floats) = output.and_then(|output| output.floats.clone()) else {
                return Err(Error::NoOutput(key.id()));
            };
            if floats.len() != gradient.len() {
                let (expected, found) = (floats.len(), gradient.len());
                return Err(Error::GradientSize { value: key.id(), expected, found });
            }
            self.floats[floats].iter_mut().zip(gradient).for_each(|(to, from)| *to += from);
        }
        Ok(())
    }
}

impl Index<Value<'_>> for Paused {
    type Output = Row;

    /// # Panics
    /// The value is no output of the forward pass.
    #[track_caller]
    fn index(&self, value: Value<'_>) -> &Row {
        match self.get(value) {
            Some(row) => row,
            None => panic!("{value:?} is no output of this forward pass; ask for it too"),
        }
    }
}

impl Session {
    /// Executes the forward part of a plan and pauses, for losses that are computed outside of the graph. The caller reads the
    /// outputs, computes the gradients of its loss with respect to them, and passes these to [`backward`](Self::backward).
    /// `inputs` are values whose gradients are requested besides those of all parameters. Dropout is the identity.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # fn main() -> autobatch::Result<()> {
    /// # let mut m = ModuleBuilder::new("m");
    /// let w = m.param("w", [2], Init::Constant(3.0));
    /// let mut session = Session::new(m.build()?, Device::Cpu)?;
    /// let g = session.graph();
    /// let x = g.input(&[1.0, -2.0]);
    /// let y = x * g.param(w);
    /// let mut paused = session.forward(&g, [y], [x])?;
    /// assert_eq!(paused.get(y).map(|row| row.to_vec()), Some(vec![3.0, -6.0]));
    /// // The caller's loss is the sum of squares of y, so its gradient is 2 y.
    /// let gradients = session.backward(&mut paused, [(y, [6.0, -12.0])])?;
    /// assert_eq!(gradients.by_name("w"), Ok(&[6.0, 24.0][..]));
    /// assert_eq!(gradients.of(x).map(|row| row.to_vec()), Some(vec![18.0, -36.0]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`run`](Self::run); also if no output is a float value.
    #[track_caller]
    pub fn forward<'g>(
        &mut self,
        graph: &'g Graph,
        outputs: impl IntoIterator<Item = impl Borrow<Value<'g>>>,
        inputs: impl IntoIterator<Item = impl Borrow<Value<'g>>>,
    ) -> Result<Paused> {
        graph.check()?;
        let mut wanted = growing::wanted(graph, outputs)?;
        let mut known = HashSet::with_capacity(wanted.len());
        wanted.retain(|&value| known.insert(value));
        let inputs: Vec<Value<'g>> = inputs.into_iter().map(|value| *value.borrow()).collect();
        let values = growing::wanted(graph, &inputs)?;
        let data = graph.data();
        self.check_module(&data)?;
        let is_float = |&value: &ValueId| {
            let ty = data.type_of(value);
            ty.dtype == DType::F32 && !ty.is_list
        };
        let arriving: Vec<ValueId> = wanted.iter().copied().filter(is_float).collect();
        if arriving.is_empty() {
            return Err(Error::NothingToDifferentiate);
        }
        let request = Request {
            wanted: &wanted,
            mode: Mode::Train,
            rows: self.planning.rows(),
            gradients: Some(autobatch_planner::Gradients { losses: &[], params: None, values: &values }),
            arriving: &arriving,
            shards: &[],
            ..Request::default()
        };
        let plan = self.planning.plan(&data, &request)?;
        let weights = Arc::clone(&self.mirror.host_copy().weights);
        self.executions += 1;
        let started = self.executor.start(&plan, &weights, inputs_of(&data, Noise::Off));
        let started = self.handle_device_loss(started);
        let rows = started.map_err(|error| self.explained(&data, &plan, &wanted, error))?;
        let first = plan.outputs.len() - wanted.len() - values.len();
        let (mut elements, mut floats) = (Vec::new(), plan.floats as usize);
        let mut outputs = Vec::with_capacity(wanted.len());
        for (number, value) in wanted.iter().enumerate() {
            let row = self.executor.paused_output(&rows, &plan, first + number);
            let start = elements.len();
            elements.extend_from_slice(row);
            let place = floats..floats + row.len();
            let place = Some(place).filter(|_| is_float(value));
            floats = place.as_ref().map_or(floats, |place| place.end);
            outputs.push(Output { elements: start..elements.len(), floats: place });
        }
        self.last = Some(Arc::clone(&plan));
        Ok(Paused {
            plan,
            weights,
            words: data.bindings.words.clone(),
            floats: data.bindings.floats.clone(),
            graph: graph.number(),
            elements,
            by_value: wanted.iter().enumerate().map(|(number, &value)| (value, number)).collect(),
            outputs,
            inputs: inputs.iter().filter_map(|value| value.key()).collect(),
            rows: Some(rows),
        })
    }

    /// Executes the reverse of a forward pass and returns the gradients of all parameters and of its inputs.
    /// [`Gradients::loss`] is NaN, because the loss is not in the graph. Outputs without a gradient get zeros, and several
    /// gradients of one output are added. The reverse overwrites the rows of the forward pass, so it is executed once.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # fn main() -> autobatch::Result<()> {
    /// # let mut session = Session::new(ModuleBuilder::new("m").build()?, Device::Cpu)?;
    /// # let g = session.graph();
    /// # let x = g.input(&[1.0]);
    /// # let mut paused = session.forward(&g, [x * x], [x])?;
    /// session.backward(&mut paused, [(x * x, [1.0])]).expect_err("this product is another value");
    /// session.backward(&mut paused, [] as [(Value<'_>, [f32; 1]); 0])?;
    /// let error = session.backward(&mut paused, [] as [(Value<'_>, [f32; 1]); 0]).expect_err("once").to_string();
    /// assert!(error.contains("call forward again"), "{error}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A gradient belongs to no output or has another size, or the reverse was executed already. On a GPU also if another
    /// plan or an update was executed since the forward pass.
    #[track_caller]
    pub fn backward<'g>(
        &mut self,
        paused: &mut Paused,
        gradients: impl IntoIterator<Item = (Value<'g>, impl AsRef<[f32]>)>,
    ) -> Result<Gradients> {
        let gradients: Vec<_> = gradients.into_iter().collect();
        let keyed = gradients.iter().filter_map(|(value, gradient)| Some((value.key()?, gradient.as_ref())));
        self.backward_by_key(paused, &keyed.collect::<Vec<_>>())
    }

    /// [`backward`](Self::backward) with the keys of outputs, for callers that keep no borrowed values.
    ///
    /// # Errors
    /// As [`backward`](Self::backward).
    pub fn backward_by_key(
        &mut self,
        paused: &mut Paused,
        gradients: &[(ValueKey, &[f32])],
    ) -> Result<Gradients> {
        if paused.rows.is_none() {
            return Err(Error::BackwardTwice);
        }
        paused.bind(gradients)?;
        let Some(rows) = paused.rows.take() else { return Err(Error::BackwardTwice) };
        let plan = Arc::clone(&paused.plan);
        let inputs = Inputs { words: &paused.words, floats: &paused.floats, noise: Noise::Off };
        self.executions += 1;
        let proceeded = self.executor.proceed(&plan, rows, &paused.weights, inputs);
        self.handle_device_loss(proceeded)?;
        let first = plan.outputs.len() - paused.inputs.len();
        let read = |number: usize| Row::new(self.executor.output(&plan, first + number)).to_buf();
        let values = paused.inputs.iter().enumerate().map(|(number, &key)| (key, read(number))).collect();
        let params = self.param_gradients(&plan)?;
        Ok(Gradients::new(f32::NAN, params, values))
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use autobatch_nn::{Linear, TreeLstm};

    #[test]
    fn backward_has_the_bits_of_the_gradients_of_a_sum_of_losses() -> Result<()> {
        let mut m = ModuleBuilder::new("m");
        let node = TreeLstm::<2>::new(&mut m, "tree", 3);
        let out = Linear::new(&mut m, "out", 3, 2);
        let mut session = Session::new(m.build()?, Device::Cpu)?;
        let g = session.graph();
        let inputs: Vec<Value<'_>> = (0..4).map(|k| g.input(&[k as f32, 0.5, -1.0])).collect();
        let leaves: Vec<_> = inputs.iter().map(|&x| node.leaf(x)).collect();
        let right = node.node(&g, [leaves[2], leaves[3]]);
        let root = node.node(&g, [leaves[0], node.node(&g, [leaves[1], right])]);
        let losses = [out.on(root[0]).cross_entropy(1), out.on(right[0]).cross_entropy(0)];
        let expected = session.gradients(&g, losses[0] + losses[1], &inputs)?;
        let mut paused = session.forward(&g, losses, &inputs)?;
        let mut other = session.forward(&g, [losses[0]], &inputs)?;
        assert_eq!(paused[losses[0]][0] + paused[losses[1]][0], expected.loss());
        let found = session.backward(&mut paused, losses.map(|loss| (loss, [1.0])))?;
        assert!(found.loss().is_nan());
        assert!(expected.iter().eq(found.iter()), "equal names, equal bits");
        for &x in &inputs {
            assert_eq!(expected.of(x).map(|row| row.to_vec()), found.of(x).map(|row| row.to_vec()));
        }
        let alone = session.gradients(&g, losses[0], &inputs)?;
        let found = session.backward(&mut other, [(losses[0], [1.0])])?;
        assert!(alone.iter().eq(found.iter()), "both pauses had rows of their own");
        Ok(())
    }

    #[test]
    fn a_growth_that_a_reverse_interrupts_starts_again() -> Result<()> {
        let mut m = ModuleBuilder::new("m");
        let w = m.param("w", [200, 200], Init::Uniform(0.1));
        let mut session = Session::new(m.build()?, Device::Cpu)?;
        let (g, other) = (session.graph(), session.graph());
        let x = g.input(&[0.5; 200]).affine(w, None).tanh();
        let mut paused = session.forward(&g, [x], [] as [Value<'_>; 0])?;
        let y = other.input(&[-0.25; 200]).affine(w, None);
        let mut growing = session.growing(&other);
        let expected = growing.run([y])?[y].to_vec();
        let suspended = growing.suspend();
        session.backward(&mut paused, [(x, [1.0; 200])])?;
        let mut growing = session.resume(&other, suspended);
        assert!(growing.computed(y).is_none(), "the reverse took the memory of its rows");
        assert_eq!(growing.run([y])?[y].to_vec(), expected);
        Ok(())
    }

    #[test]
    fn backward_reads_the_weights_of_the_forward_pass() -> Result<()> {
        let mut m = ModuleBuilder::new("m");
        let w = m.param("w", [1], Init::Constant(2.0));
        let mut session = Session::new(m.build()?, Device::Cpu)?;
        let g = session.graph();
        let x = g.input(&[5.0]);
        let y = x * g.param(w);
        let mut paused = session.forward(&g, [y], [x])?;
        let mut weights = session.weights().as_ref().clone();
        weights.set_by_name("w", &[7.0]).expect("it exists");
        session.set_weights(std::sync::Arc::new(weights))?;
        let gradients = session.backward(&mut paused, [(y, [1.0])])?;
        assert_eq!(gradients.of(x).map(|row| row.to_vec()), Some(vec![2.0]));
        Ok(())
    }

    #[test]
    fn wrong_gradients_are_errors_and_the_pause_stays() -> Result<()> {
        let mut session = Session::new(ModuleBuilder::new("m").build()?, Device::Cpu)?;
        let g = session.graph();
        let x = g.input(&[1.0, 2.0]);
        let y = x * x;
        let mut paused = session.forward(&g, [y, y], [x])?;
        assert_eq!(paused.outputs().len(), 1);
        let error = session.backward(&mut paused, [(y, [1.0])]).expect_err("two elements").to_string();
        assert!(error.contains("has 2 elements, its gradient has 1"), "{error}");
        let error = session.backward(&mut paused, [(x, [1.0, 1.0])]).expect_err("no output").to_string();
        assert!(error.contains("pass gradients of the outputs"), "{error}");
        let gradients = session.backward(&mut paused, [(y, [1.0, 1.0]), (y, [0.0, 2.0])])?;
        assert_eq!(gradients.of(x).map(|row| row.to_vec()), Some(vec![2.0, 12.0]));
        let error = session.forward(&g, [] as [Value<'_>; 0], [x]).expect_err("no outputs").to_string();
        assert!(error.contains("no output of the forward pass is a float"), "{error}");
        Ok(())
    }
}

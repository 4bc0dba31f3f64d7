//! [`Gradients`]: the gradients of parameters and values, by name and by value.

use super::{Session, growing};
use crate::error::Result;
use crate::row::{Row, RowBuf};
use crate::train::TrainError;
use autobatch_ir::id::ParamId;
use autobatch_ir::plan::row_ops::Noise;
use autobatch_ir::plan::{Mode, OutputKey, Plan, Verified};
use autobatch_ir::types::{DType, Type};
use autobatch_ir::weights::WeightsError;
use autobatch_ir::{Graph, Value, ValueKey};
use autobatch_planner::Request;
use std::borrow::Borrow;
use std::collections::HashMap;

/// The gradients of a loss: of every parameter by name, and of the requested values.
///
/// They are the sums that an optimiser receives, before clipping, weight decay and learning rates.
#[derive(Clone, Debug)]
pub struct Gradients {
    loss: f32,
    params: Vec<ParamGradient>,
    values: HashMap<ValueKey, RowBuf>,
}

/// The gradient of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamGradient {
    /// The name of the parameter.
    pub name: String,
    /// The elements, row by row.
    pub elements: Vec<f32>,
    /// Whether the loss depends on the parameter. Otherwise the elements are zeros.
    pub reached: bool,
}

impl Gradients {
    pub(super) fn new(loss: f32, params: Vec<ParamGradient>, values: HashMap<ValueKey, RowBuf>) -> Self {
        Self { loss, params, values }
    }

    /// Returns the loss; NaN after [`Session::backward`], whose loss is not in the graph.
    #[must_use]
    pub fn loss(&self) -> f32 {
        self.loss
    }

    /// Returns the gradient of the parameter with this name, row by row. The gradient of a parameter that the
    /// loss does not depend on is zeros.
    ///
    /// # Errors
    /// The module has no parameter with this name.
    pub fn by_name(&self, name: &str) -> Result<&[f32], WeightsError> {
        let found = self.params.iter().find(|gradient| gradient.name == name);
        found.map(|gradient| &*gradient.elements).ok_or_else(|| WeightsError::Unknown(name.to_owned()))
    }

    /// Returns every parameter's name and gradient, in the order of declaration.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &[f32])> {
        self.params.iter().map(|gradient| (&*gradient.name, &*gradient.elements))
    }

    /// Returns every parameter's gradient by value, in the order of declaration.
    #[must_use]
    pub fn into_params(self) -> Vec<ParamGradient> {
        self.params
    }

    /// Returns the gradient of a requested value. `None` for other values.
    #[track_caller]
    #[must_use]
    pub fn of(&self, value: Value<'_>) -> Option<&Row> {
        self.of_key(value.key()?)
    }

    /// Returns the gradient of the requested value with this key. `None` for other values.
    #[must_use]
    pub fn of_key(&self, key: ValueKey) -> Option<&Row> {
        self.values.get(&key).map(|row| &**row)
    }

    /// Returns the Euclidean norm of all parameter gradients together, which `clip_norm` limits.
    #[must_use]
    pub fn norm(&self) -> f64 {
        let elements = self.params.iter().flat_map(|gradient| &gradient.elements);
        elements.map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt()
    }
}

impl Session {
    /// Executes the graph of a scalar loss forward and in reverse, without noise, and returns the gradients of all
    /// parameters and of the given values. The weights stay unchanged.
    /// [`Trainer::gradients`](crate::Trainer::gradients) differentiates a minibatch as a step does.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # fn main() -> autobatch::Result<()> {
    /// # let mut m = ModuleBuilder::new("m");
    /// let w = m.param("w", [2], Init::Constant(3.0));
    /// let mut session = Session::new(m.build()?, Device::Cpu)?;
    /// let g = session.graph();
    /// let x = g.input(&[1.0, -2.0]);
    /// let gradients = session.gradients(&g, x.dot(g.param(w)), [x])?;
    /// assert_eq!(gradients.loss(), -3.0);
    /// assert_eq!(gradients.by_name("w"), Ok(&[1.0, -2.0][..]));
    /// assert_eq!(gradients.of(x).map(|row| row.to_vec()), Some(vec![3.0, 3.0]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`run`](Self::run); also if the loss is not a scalar.
    #[track_caller]
    pub fn gradients<'g>(
        &mut self,
        graph: &'g Graph,
        loss: Value<'g>,
        values: impl IntoIterator<Item = impl Borrow<Value<'g>>>,
    ) -> Result<Gradients> {
        graph.check()?;
        let values: Vec<Value<'g>> = values.into_iter().map(|value| *value.borrow()).collect();
        let differentiated = growing::wanted(graph, &values)?;
        let wanted = growing::wanted(graph, [loss])?;
        let data = graph.data();
        self.check_module(&data)?;
        let losses: Vec<_> = wanted.iter().map(|&id| (id, 1.0)).collect();
        if let Some(&id) = wanted.iter().find(|&&id| data.type_of(id) != Type::scalar(DType::F32)) {
            return Err(TrainError::NoScalar { item: None, found: data.type_of(id) }.into());
        }
        let request = Request {
            wanted: &wanted,
            mode: Mode::Train,
            rows: self.planning.rows(),
            gradients: Some(autobatch_planner::Gradients {
                losses: &losses,
                params: None,
                values: &differentiated,
            }),
            ..Request::default()
        };
        let plan = self.planning.plan(&data, &request)?;
        let executed = self.execute(&plan, &data, Noise::Off);
        executed.map_err(|error| self.explained(&data, &plan, &wanted, error))?;
        let output = |key: &OutputKey| plan.outputs.iter().position(|output| output.key == *key);
        let read = |number: usize| Row::new(self.executor.output(&plan, number)).to_buf();
        let loss = output(&OutputKey::Value(wanted[0])).map_or(f32::NAN, |number| read(number)[0]);
        let gradient = |value: &Value<'g>| {
            let key = value.key()?;
            Some((key, read(output(&OutputKey::Gradient(key.id()))?)))
        };
        let values = values.iter().filter_map(gradient).collect();
        let params = self.param_gradients(&plan)?;
        Ok(Gradients { loss, params, values })
    }

    /// Reads the gradients of all parameters that the last run of the plan made.
    pub(super) fn param_gradients(&mut self, plan: &Verified<Plan>) -> Result<Vec<ParamGradient>> {
        let module = std::sync::Arc::clone(&self.module);
        let read = |(number, decl): (usize, &autobatch_ir::module::ParamDecl)| {
            let param = ParamId::new(number);
            let gradient = self.executor.gradient(plan, param)?;
            let elements = gradient.unwrap_or_else(|| vec![0.0; decl.ty.shape.elements()]);
            Ok(ParamGradient { name: decl.name.clone(), elements, reached: plan.reaches(param) })
        };
        module.params.iter().enumerate().map(read).collect()
    }

    /// Reads the gradient of one parameter that the last runs made.
    pub(crate) fn gradient_of(&mut self, plan: &Verified<Plan>, param: ParamId) -> Result<Option<Vec<f32>>> {
        self.executor.gradient(plan, param)
    }

    /// Returns the gradients of a minibatch that this plan executed, with its loss.
    pub(crate) fn minibatch_gradients(&mut self, plan: &Verified<Plan>, loss: f32) -> Result<Gradients> {
        let params = self.param_gradients(plan)?;
        Ok(Gradients { loss, params, values: HashMap::new() })
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use autobatch_nn::Linear;

    #[test]
    fn gradients_of_a_minibatch_are_those_that_sgd_subtracts() -> Result<()> {
        let mut m = ModuleBuilder::new("m");
        let line = Linear::new(&mut m, "line", 2, 3);
        m.param("unused", [2], Init::Constant(1.0));
        let mut trainer = Trainer::new(m.build()?, Sgd::new(0.5))?;
        let items = [([1.0, -2.0], 0u32), ([0.5, 0.25], 2), ([3.0, 1.0], 1)];
        let before = trainer.weights().by_name("line.w").map(<[f32]>::to_vec).expect("it exists");
        let gradients = trainer
            .gradients(&items, |g, (x, label)| line.on(g.input(x).dropout(0.5)).cross_entropy(*label))?;
        assert_eq!(trainer.steps(), 0);
        let step =
            trainer.step(&items, |g, (x, label)| line.on(g.input(x).dropout(0.5)).cross_entropy(*label))?;
        assert_eq!(gradients.loss(), step.loss);
        let after = trainer.weights().by_name("line.w").expect("it exists");
        let moved: Vec<f32> = before
            .iter()
            .zip(gradients.by_name("line.w").expect("it exists"))
            .map(|(w, g)| w - 0.5 * g)
            .collect();
        assert_eq!(after, moved, "equal noise, equal gradients");
        assert_eq!(gradients.by_name("unused"), Ok(&[0.0; 2][..]));
        assert!(gradients.by_name("line.v").is_err());
        assert_eq!(
            gradients.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            ["line.w", "line.b", "unused"]
        );
        assert!(gradients.norm() > 0.0);
        Ok(())
    }

    #[test]
    fn a_loss_that_is_no_scalar_has_no_gradients() -> Result<()> {
        let mut session = Session::new(ModuleBuilder::new("m").build()?, Device::Cpu)?;
        let g = session.graph();
        let x = g.input(&[1.0, 2.0]);
        let error = session.gradients(&g, x, [x]).expect_err("two elements").to_string();
        assert!(error.contains("a loss is a scalar f32, found f32[2]"), "{error}");
        Ok(())
    }
}

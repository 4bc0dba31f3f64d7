//! [`Experts`]: a mixture of networks, of which an input uses some.

use crate::activation::Activation;
use crate::linear::Linear;
use crate::mlp::Mlp;
use autobatch_ir::{Graph, ModuleBuilder, Value};
use std::panic::Location;

/// A mixture of experts (Jacobs et al. 1991; Shazeer et al. 2017). A gate weighs the experts, each an [`Mlp`]:
/// ```text
/// p = softmax(x · Wg + bg)        y = sum over the used experts e of (p_e / sum of p over the used) * expert_e(x)
/// ```
/// [`dense`](Self::dense) uses all experts. [`sparse`](Self::sparse) uses those that the caller names, usually the best by
/// [`gates`](Self::gates): read them from a run, or suspend a task that reads them. All inputs that use an expert are one batch,
/// whatever other experts they use; nothing is padded, and no expert has a capacity.
///
/// Parameters: the [`Linear`] `name.gate`, and an [`Mlp`] called `name.e` for each expert `e`, from 0.
///
/// ```
/// # use autobatch_ir::{EmitError, Graph, ModuleBuilder};
/// # use autobatch_nn::{Activation, Experts};
/// # fn main() -> Result<(), EmitError> {
/// let mut m = ModuleBuilder::new("m");
/// let layer = Experts::new(&mut m, "experts", &[8, 16, 8], Activation::Relu, 4);
/// let g = Graph::new(&m.build()?);
/// let x = g.input(&[0.5; 8]);
/// let gates = layer.gates(x);
/// g.output("y", layer.sparse(&g, x, gates, &[0, 3]));
/// # g.finish().map(|_| ())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Experts {
    gate: Linear,
    experts: Vec<Mlp>,
}

impl Experts {
    /// A gate and this number of experts, each with layers of these widths, the input width first.
    #[track_caller]
    pub fn new(
        m: &mut ModuleBuilder,
        name: &str,
        sizes: &[usize],
        activation: Activation,
        count: usize,
    ) -> Self {
        if count == 0 {
            let message = "a mixture has at least 1 expert, found 0".to_owned();
            m.fail(&format!("layer {name}"), message, None, Location::caller());
        }
        let gate = Linear::new(m, &format!("{name}.gate"), sizes.first().copied().unwrap_or(1), count.max(1));
        let mut experts = Vec::with_capacity(count);
        for number in 0..count {
            experts.push(Mlp::new(m, &format!("{name}.{number}"), sizes, activation));
        }
        Self { gate, experts }
    }

    /// The probability of each expert.
    #[track_caller]
    #[must_use]
    pub fn gates<'g>(&self, x: Value<'g>) -> Value<'g> {
        self.gate.on(x).softmax()
    }

    /// The mixture of all experts.
    #[track_caller]
    #[must_use]
    pub fn dense<'g>(&self, g: &'g Graph, x: Value<'g>) -> Value<'g> {
        let gates = self.gates(x);
        let all: Vec<u32> = (0..self.experts.len() as u32).collect();
        let [sum, _] = self.mixed(g, x, gates, &all);
        sum
    }

    /// The mixture of the named experts, each at most once. `gates` are those of [`gates`](Self::gates).
    #[track_caller]
    #[must_use]
    pub fn sparse<'g>(&self, g: &'g Graph, x: Value<'g>, gates: Value<'g>, used: &[u32]) -> Value<'g> {
        let is_wrong = |(place, &expert): (usize, &u32)| {
            expert as usize >= self.experts.len() || used[..place].contains(&expert)
        };
        if used.is_empty() || used.iter().enumerate().any(is_wrong) {
            let message =
                format!("expected one or more different experts 0..{}, found {used:?}", self.experts.len());
            return g.refuse(
                "experts",
                &message,
                "name each expert that the input uses once",
                Location::caller(),
            );
        }
        let [sum, total] = self.mixed(g, x, gates, used);
        sum / total
    }

    /// The sum of the named experts, each times its gate, and the sum of these gates.
    #[track_caller]
    fn mixed<'g>(&self, g: &'g Graph, x: Value<'g>, gates: Value<'g>, used: &[u32]) -> [Value<'g>; 2] {
        let mut weights = Vec::with_capacity(used.len());
        let mut values = Vec::with_capacity(used.len());
        for &expert in used {
            weights.push(gates.pick(expert));
            values.push(self.experts[expert as usize].on(x));
        }
        let weights = g.list(weights);
        [g.weighted_sum(weights, g.list(values)), weights.sum()]
    }

    /// The number of experts.
    #[must_use]
    pub fn count(&self) -> usize {
        self.experts.len()
    }
}

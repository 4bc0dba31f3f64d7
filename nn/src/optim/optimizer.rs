//! [`Optimizer`]: a rule with the options of all rules, and the recipe of its update plan.

use super::rule::{Argument, ArgumentRange, Element, Rule, WeightDecay, flushed};
use super::schedule::Schedule;
use autobatch_ir::module::{ParamDecl, ParamKind};
use autobatch_ir::recipe::{AVERAGE, ParamRecipe, SharedNumber, StateInit, StateRecipe, UpdateRecipe};
use autobatch_ir::types::{DType, Type};
use autobatch_ir::{EmitError, Module, ModuleBuilder, ParamId, SigId};
use std::fmt;
use std::sync::Arc;

/// The index of the gradient factor among the bound floats. After it follow, for each learning rate, the factor of values (if
/// decay is decoupled) and the rule's own scalars.
const SCALE: u32 = 0;

/// Selects the parameters to which an option applies.
type Choice = Arc<dyn Fn(&ParamDecl) -> bool + Send + Sync>;

/// A rule with a schedule, clipping, weight decay and moving averages; made by [`Optimize`].
#[derive(Clone)]
pub struct Optimizer {
    rule: Arc<dyn Rule>,
    schedule: Schedule,
    /// Learning-rate factors of some parameters; the last that applies wins.
    rates: Vec<(f64, Choice)>,
    decay: Option<WeightDecay>,
    decays: Option<Choice>,
    clip_norm: Option<f64>,
    clip_value: Option<f64>,
    average: Option<f64>,
    sparse_rows: bool,
}

impl fmt::Debug for Optimizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Optimizer");
        for (name, setting) in self.settings() {
            shown.field(name, &format_args!("{setting}"));
        }
        shown.finish_non_exhaustive()
    }
}

impl Optimizer {
    /// Returns everything that shapes updates, each with its name. A choice of parameters is shown by its factor alone.
    #[must_use]
    pub fn settings(&self) -> [(&'static str, String); 8] {
        let rates: Vec<f64> = self.rates.iter().map(|(factor, _)| *factor).collect();
        [
            ("rule", format!("{:?}", self.rule)),
            ("schedule", format!("{:?}", self.schedule)),
            ("rates", format!("{rates:?}")),
            ("decay", format!("{:?}", self.decay)),
            ("clip_norm", format!("{:?}", self.clip_norm)),
            ("clip_value", format!("{:?}", self.clip_value)),
            ("average", format!("{:?}", self.average)),
            ("sparse_rows", format!("{:?}", self.sparse_rows)),
        ]
    }
}

impl<R: Rule + 'static> From<R> for Optimizer {
    fn from(rule: R) -> Self {
        Self {
            decay: rule.own_decay(),
            rule: Arc::new(rule),
            schedule: Schedule::Constant,
            rates: Vec::new(),
            decays: None,
            clip_norm: None,
            clip_value: None,
            average: None,
            sparse_rows: false,
        }
    }
}

/// Options of every rule: `Adam::new(1e-3).clip_norm(5.0).average(0.999)`.
pub trait Optimize: Into<Optimizer> {
    /// Multiplies the learning rate by the factor of a schedule.
    #[must_use]
    fn schedule(self, schedule: Schedule) -> Optimizer {
        Optimizer { schedule, ..self.into() }
    }

    /// Multiplies the learning rate of some parameters by a factor; if several apply, the last call wins. A factor of 0
    /// leaves a parameter unchanged but still computes its gradient; freezing a parameter saves the gradient. A rate that
    /// applies to no parameter of a module is an error of [`Optimizer::recipe`], as is [`decay_only`](Self::decay_only).
    ///
    /// ```
    /// use autobatch_nn::optim::{Adam, Optimize};
    ///
    /// // Pretrained parameters learn ten times more slowly than new ones.
    /// let optimizer = Adam::new(1e-3).rate(0.1, |param| param.name.starts_with("encoder."));
    /// ```
    #[must_use]
    fn rate(self, factor: f64, applies: impl Fn(&ParamDecl) -> bool + Send + Sync + 'static) -> Optimizer {
        let mut optimizer = self.into();
        optimizer.rates.push((factor, Arc::new(applies)));
        optimizer
    }

    /// Adds weight decay of this strength: decoupled if the rule decouples it by default, coupled
    /// otherwise.
    #[must_use]
    fn weight_decay(self, strength: f64) -> Optimizer {
        let mut optimizer = self.into();
        optimizer.decay = Some(match optimizer.rule.own_decay() {
            Some(WeightDecay::Decoupled(_)) => WeightDecay::Decoupled(strength),
            Some(WeightDecay::Coupled(_)) | None => WeightDecay::Coupled(strength),
        });
        optimizer
    }

    /// Adds decoupled weight decay of this strength to any rule.
    #[must_use]
    fn decoupled_weight_decay(self, strength: f64) -> Optimizer {
        Optimizer { decay: Some(WeightDecay::Decoupled(strength)), ..self.into() }
    }

    /// Limits decay to some parameters. Often biases and gains do not decay:
    ///
    /// ```
    /// use autobatch_nn::optim::{AdamW, Optimize};
    ///
    /// let optimizer = AdamW::new(1e-3).weight_decay(0.01).decay_only(|param| param.ty.shape.rank() > 1);
    /// ```
    #[must_use]
    fn decay_only(self, decays: impl Fn(&ParamDecl) -> bool + Send + Sync + 'static) -> Optimizer {
        Optimizer { decays: Some(Arc::new(decays)), ..self.into() }
    }

    /// Scales down all gradients together such that their norm is at most this.
    #[must_use]
    fn clip_norm(self, norm: f64) -> Optimizer {
        Optimizer { clip_norm: Some(norm), ..self.into() }
    }

    /// Clamps every element of a gradient to this magnitude.
    #[must_use]
    fn clip_value(self, value: f64) -> Optimizer {
        Optimizer { clip_value: Some(value.abs()), ..self.into() }
    }

    /// Maintains a moving average of every parameter with this decay factor. The average starts as a
    /// copy of the parameter, so it needs no bias correction.
    #[must_use]
    fn average(self, decay: f64) -> Optimizer {
        Optimizer { average: Some(decay), ..self.into() }
    }

    /// Updates only the sparse rows of tables: the rows that lookups of the minibatch name.
    #[must_use]
    fn sparse_rows(self) -> Optimizer {
        Optimizer { sparse_rows: true, ..self.into() }
    }
}

impl<T: Into<Optimizer>> Optimize for T {}

impl Optimizer {
    /// Whether updates change only the sparse rows of tables; see [`Optimize::sparse_rows`].
    #[must_use]
    pub const fn has_sparse_rows(&self) -> bool {
        self.sparse_rows
    }

    /// The ids of all parameters of a module.
    #[must_use]
    pub fn all(&self, module: &Module) -> Vec<ParamId> {
        (0..module.params.len()).map(ParamId::new).collect()
    }

    /// The rule.
    #[must_use]
    pub fn rule(&self) -> &dyn Rule {
        &*self.rule
    }

    /// The learning rate of update `number`, from 1.
    #[must_use]
    pub fn learning_rate(&self, number: u64) -> f64 {
        self.rule.learning_rate() * self.schedule.factor(number.saturating_sub(1))
    }

    /// The floats that update `number` (from 1) binds. Gradients are multiplied by `scale` first.
    #[must_use]
    pub fn floats(&self, number: u64, scale: f64) -> Vec<f32> {
        let number = number.max(1);
        let mut floats = vec![scale as f32];
        for factor in std::iter::once(1.0).chain(self.rates.iter().map(|&(factor, _)| factor)) {
            let learning_rate = self.learning_rate(number) * factor;
            if let Some(WeightDecay::Decoupled(strength)) = self.decay {
                floats.push((1.0 - learning_rate * strength) as f32);
            }
            floats.extend(self.rule.numbers(number, learning_rate).iter().map(|&number| number as f32));
        }
        floats
    }

    /// The index of the learning rate of a parameter; 0 is the optimiser's own.
    fn rate_of(&self, decl: &ParamDecl) -> usize {
        self.rates.iter().rposition(|(_, applies)| applies(decl)).map_or(0, |place| place + 1)
    }

    /// The recipe that updates the trained parameters of a module. Each is updated once, even if it is listed
    /// several times; other parameters stay unchanged.
    ///
    /// # Errors
    /// If the rule emits an invalid cell; if the module lacks a trained parameter; if [`rate`](Optimize::rate) or
    /// [`decay_only`](Optimize::decay_only) selects no parameter; if a clipping bound is negative, an argument is not finite,
    /// or the decay of averages is outside `0..=1`.
    #[track_caller]
    pub fn recipe(&self, module: &Module, trained: &[ParamId]) -> Result<UpdateRecipe, EmitError> {
        let mut m = ModuleBuilder::new(self.rule.name());
        let mut trained = trained.to_vec();
        trained.sort_unstable();
        trained.dedup();
        let floats = self.floats(1, 1.0).len() as u32;
        let shared = self.clip_norm.and_then(|norm| clip_factor(&mut m, floats, norm));
        if let Some((option, help)) = self.invalid_option() {
            let message = format!("{option} is not a valid argument");
            m.fail("optimiser", message, Some(help.to_owned()), std::panic::Location::caller());
        }
        if let Some(message) = self.unused_option(module) {
            let help = "select parameters by their names in the module, or remove this option".to_owned();
            m.fail("optimiser", message, Some(help), std::panic::Location::caller());
        }
        let mut params = Vec::with_capacity(trained.len());
        for &param in &trained {
            let Some(decl) = module.params.get(param.index()) else {
                let message = format!("the module {} has no parameter {param}", module.name);
                let help = Some("train parameters of the optimiser's module".to_owned());
                m.fail("optimiser", message, help, std::panic::Location::caller());
                continue;
            };
            let decays = self.decays.as_ref().is_none_or(|decays| decays(decl));
            let Some(cell) = self.cell(&mut m, self.decay.filter(|_| decays)) else { continue };
            params.push(ParamRecipe {
                param,
                cell,
                states: self.states(),
                numbers: self.numbers(self.rate_of(decl), self.decay.filter(|_| decays)),
                sparse_rows: self.sparse_rows && decl.kind == ParamKind::Table,
            });
        }
        Ok(UpdateRecipe { cells: m.build()?, floats, norm: shared.is_some(), shared, params })
    }

    /// The first option with an invalid argument, and how to correct it.
    fn invalid_option(&self) -> Option<(String, &'static str)> {
        let rate = Argument::new("learning rate", self.rule.learning_rate(), ArgumentRange::Any);
        let own = std::iter::once(rate).chain(self.rule.arguments());
        if let Some(wrong) = own.into_iter().find(|argument| !argument.is_valid()) {
            let option = format!("{} {:?} of {}", wrong.name, wrong.number, self.rule.name());
            return Some((option, wrong.range.help()));
        }
        let is_bound = |number: f64| number.is_finite() && number >= 0.0;
        for (name, number) in [("clip_norm", self.clip_norm), ("clip_value", self.clip_value)] {
            if let Some(number) = number.filter(|&number| !is_bound(number)) {
                return Some((format!("{name}({number:?})"), "give a finite number that is not negative"));
            }
        }
        let decay =
            self.decay.map(|(WeightDecay::Coupled(strength) | WeightDecay::Decoupled(strength))| strength);
        if let Some(strength) = decay.filter(|strength| !strength.is_finite()) {
            return Some((format!("weight_decay({strength:?})"), "give a finite number"));
        }
        if let Some((factor, _)) = self.rates.iter().find(|(factor, _)| !factor.is_finite()) {
            return Some((format!("rate({factor:?}, ..)"), "give a finite number"));
        }
        let decay = self.average.filter(|decay| !(0.0..=1.0).contains(decay))?;
        Some((format!("average({decay:?})"), "give a decay factor from 0 to 1, such as 0.999"))
    }

    /// An error message for an option that selects no parameter of the module.
    fn unused_option(&self, module: &Module) -> Option<String> {
        let applies =
            |choice: &Choice| module.params.is_empty() || module.params.iter().any(|decl| choice(decl));
        let option = match self.rates.iter().find(|(_, choice)| !applies(choice)) {
            Some((factor, _)) => format!("rate({factor})"),
            None if self.decays.as_ref().is_some_and(|choice| !applies(choice)) => "decay_only".to_owned(),
            None => return None,
        };
        const SHOWN: usize = 12;
        let mut names: Vec<String> =
            module.params.iter().take(SHOWN).map(|decl| format!("@{}", decl.name)).collect();
        if module.params.len() > SHOWN {
            names.push(format!("and {} more", module.params.len() - SHOWN));
        }
        Some(format!(
            "{option} applies to no parameter of the module {}, which has {}",
            module.name,
            names.join(", ")
        ))
    }

    fn states(&self) -> Vec<StateRecipe> {
        let average = StateRecipe { role: AVERAGE.to_owned(), init: StateInit::Param };
        let mut states = self.rule.states();
        states.extend(self.average.map(|_| average));
        states
    }

    /// The last operands of the cell: the factor of gradients, the factor of values if decay is
    /// decoupled, and the rule's scalars.
    fn numbers(&self, rate: usize, decay: Option<WeightDecay>) -> Vec<SharedNumber> {
        let factor = match self.clip_norm {
            Some(_) => SharedNumber::Shared(0),
            None => SharedNumber::Float(SCALE),
        };
        let decoupled = |decay| matches!(decay, Some(WeightDecay::Decoupled(_)));
        let each = (self.floats(1, 1.0).len() - 1) / (1 + self.rates.len());
        let first = (1 + rate * each) as u32;
        let mut numbers = vec![factor];
        numbers.extend(decoupled(decay).then_some(SharedNumber::Float(first)));
        let own = first + u32::from(decoupled(self.decay));
        numbers.extend((own..first + each as u32).map(SharedNumber::Float));
        numbers
    }

    /// Traces the cell that updates one element.
    #[track_caller]
    fn cell(&self, m: &mut ModuleBuilder, decay: Option<WeightDecay>) -> Option<SigId> {
        let states = self.rule.states().len();
        let ports = 2 + self.states().len() + self.numbers(0, decay).len();
        m.cell_of_any(self.rule.name(), &vec![Type::scalar(DType::F32); ports], |_, ports| {
            let (old, numbers) = ports[2..].split_at(self.states().len());
            let (mut value, mut gradient) = (ports[0], ports[1] * numbers[0]);
            let mut numbers = &numbers[1..];
            if let Some(bound) = self.clip_value {
                gradient = gradient.clamp(-bound as f32, bound as f32);
            }
            match decay {
                Some(WeightDecay::Coupled(strength)) => gradient = gradient + value * strength as f32,
                Some(WeightDecay::Decoupled(_)) => {
                    value = value * numbers[0];
                    numbers = &numbers[1..];
                }
                None => {}
            }
            let element = Element { value, gradient, states: &old[..states], numbers };
            let (value, states) = self.rule.step(element);
            let mut results = vec![value];
            results.extend(states);
            results.extend(self.average.map(|keep| {
                let average = old[old.len() - 1];
                flushed(average * keep as f32 + value * (1.0 - keep) as f32)
            }));
            results
        })
        .sig()
    }
}

/// The cell of the gradient factor with clipping: `scale * min(1, norm / (scale * sqrt(sumsq) + 1e-6))`.
#[track_caller]
fn clip_factor(m: &mut ModuleBuilder, floats: u32, norm: f64) -> Option<SigId> {
    let ports = vec![Type::scalar(DType::F32); 1 + floats as usize];
    m.cell_of_any("clip", &ports, |_, ports| {
        let (sum, scale) = (ports[0], ports[1]);
        let factor = norm as f32 / (sum.sqrt() * scale + 1e-6);
        vec![factor.minimum(1.0) * scale]
    })
    .sig()
}

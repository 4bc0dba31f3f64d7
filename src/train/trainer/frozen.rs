//! Freezing: which parameters the optimiser trains.

use super::Trainer;
use crate::error::Result;
use crate::mirror::Trained;
use crate::train::error::TrainError;
use autobatch_ir::id::ParamId;
use autobatch_ir::module::ParamDecl;
use std::sync::Arc;

impl Trainer {
    /// Freezes a parameter, or all parameters of a layer, by name. They keep their values and cost no
    /// gradient. The optimiser starts anew.
    ///
    /// # Errors
    /// The module has no such parameter or layer, or nothing is left to train.
    #[track_caller]
    pub fn freeze(&mut self, name: &str) -> Result<()> {
        self.set_frozen(name, true)
    }

    /// Trains a [frozen](Self::freeze) parameter or layer again. The optimiser starts anew.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # fn main() -> autobatch::Result<()> {
    /// # let mut m = ModuleBuilder::new("m");
    /// # let [w, head] = ["words", "head"].map(|name| m.param(name, [1], Init::Constant(1.0)));
    /// let mut trainer = Trainer::new(m.build()?, Sgd::new(0.5))?;
    /// trainer.freeze("words")?;
    /// trainer.step([()], |g, ()| (g.param(w) + g.param(head)).sum())?;
    /// trainer.unfreeze("words")?;
    /// trainer.step([()], |g, ()| (g.param(w) + g.param(head)).sum())?;
    /// assert_eq!(trainer.weights().by_name("words"), Ok(&[0.5][..]));
    /// assert_eq!(trainer.weights().by_name("head"), Ok(&[0.0][..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The module has no such parameter or layer.
    #[track_caller]
    pub fn unfreeze(&mut self, name: &str) -> Result<()> {
        self.set_frozen(name, false)
    }

    #[track_caller]
    fn set_frozen(&mut self, name: &str, to: bool) -> Result<()> {
        let module = Arc::clone(self.session.module());
        let belongs =
            |param: &str| param == name || param.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        let mut frozen = self.frozen.clone();
        let chosen: Vec<usize> =
            (0..frozen.len()).filter(|&number| belongs(&module.params[number].name)).collect();
        if chosen.is_empty() {
            return Err(TrainError::NoParam(name.to_owned()).into());
        }
        chosen.into_iter().for_each(|number| frozen[number] = to);
        self.replace_frozen(frozen)
    }

    /// Trains the chosen parameters and freezes all others. The optimiser starts anew.
    ///
    /// ```
    /// # use autobatch::prelude::*;
    /// # use autobatch::nn::{Embedding, Lstm};
    /// # fn main() -> autobatch::Result<()> {
    /// # let mut m = ModuleBuilder::new("m");
    /// # let words = Embedding::new(&mut m, "words", 9, 2);
    /// # let lstm = Lstm::new(&mut m, "lstm", 2, 2);
    /// let mut trainer = Trainer::new(m.build()?, Sgd::new(0.5))?;
    /// let before = trainer.weights().by_name("lstm.w").map(<[f32]>::to_vec);
    /// trainer.train_only(|param| param.name.ends_with(".b"))?; // biases
    /// trainer.step([()], |g, ()| lstm.last(g, [words.lookup(g, 3)]).sum())?;
    /// assert_eq!(trainer.weights().by_name("lstm.w").map(<[f32]>::to_vec), before);
    /// assert_ne!(trainer.weights().by_name("lstm.b"), Ok(&[0.0; 8][..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `chosen` selects no parameter.
    #[track_caller]
    pub fn train_only(&mut self, chosen: impl Fn(&ParamDecl) -> bool) -> Result<()> {
        let frozen = self.session.module().params.iter().map(|param| !chosen(param)).collect();
        self.replace_frozen(frozen)
    }

    #[track_caller]
    fn replace_frozen(&mut self, frozen: Vec<bool>) -> Result<()> {
        if frozen.iter().all(|&frozen| frozen) {
            return Err(TrainError::NothingToTrain { frozen: frozen.len() }.into());
        }
        let optimizer = self.updater.optimizer().clone();
        let weights = self.session.trained().map(|trained| Arc::clone(&trained.weights));
        let weights = self.handle_device_loss(weights)?;
        let before = std::mem::replace(&mut self.frozen, frozen);
        let states = self.renew_updater(optimizer, &weights).inspect_err(|_| self.frozen = before)?;
        self.session.replace(Trained { weights, states });
        self.mirrored = self.progress;
        Ok(())
    }
}

impl Trainer {
    /// Returns the names of the frozen parameters.
    pub(in crate::train) fn frozen(&self) -> Vec<String> {
        let names = self.session.module().params.iter().map(|decl| &decl.name);
        names.zip(&self.frozen).filter(|(_, frozen)| **frozen).map(|(name, _)| name.clone()).collect()
    }
}

/// Returns the parameters that are not frozen.
pub(super) fn trained(frozen: &[bool]) -> Vec<ParamId> {
    (0..frozen.len()).filter(|&number| !frozen[number]).map(ParamId::new).collect()
}

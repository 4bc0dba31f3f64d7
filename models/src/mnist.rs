//! Workload a: a perceptron with two hidden layers on images of 28 × 28.

use crate::Model;
use crate::data::peers::Images;
use crate::scores::Scores;
use autobatch::prelude::*;
use autobatch_nn::{Activation, Mlp};

/// The layers `pixels -> hidden -> hidden / 2 -> classes` with ReLU.
#[derive(Clone, Copy, Debug)]
pub struct Mnist {
    layers: Mlp,
}

impl Mnist {
    /// Declares the model. The widths of the comparative benchmark are 784, 200, 100 and 10.
    pub fn new(m: &mut ModuleBuilder, hidden: usize) -> Self {
        let widths = [Images::PIXELS, hidden, hidden / 2, Images::CLASSES as usize];
        Mnist { layers: Mlp::new(m, "mnist", &widths, Activation::Relu) }
    }

    /// Emits the score of every class.
    pub fn logits<'g>(&self, g: &'g Graph, pixels: &[f32]) -> Value<'g> {
        self.layers.on(g.input(pixels))
    }
}

impl Model for Mnist {
    type Instance = (Vec<f32>, u32);

    fn emit<'g>(&self, g: &'g Graph, (pixels, _): &Self::Instance, outputs: &mut Vec<Value<'g>>) {
        outputs.push(self.logits(g, pixels));
    }

    fn loss<'g>(&self, g: &'g Graph, (pixels, class): &Self::Instance) -> Value<'g> {
        self.logits(g, pixels).cross_entropy(*class)
    }

    fn score(&self, (_, class): &Self::Instance, outputs: &[&Row], scores: &mut Scores) {
        outputs.iter().for_each(|output| scores.hit("accuracy", output.argmax() == *class as usize));
    }
}

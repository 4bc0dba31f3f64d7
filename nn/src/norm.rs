//! [`LayerNorm`], [`GroupNorm`] and [`RmsNorm`]: normalisation of rows or groups, with a learned gain.

use autobatch_ir::{Init, ModuleBuilder, Param, Value};
use std::panic::Location;

/// The default constant that layers of this crate add to a variance before the square root.
pub(crate) const EPS: f32 = 1e-5;

/// `y = (x - mean x) / sqrt(var x + eps) * gain + bias`, with `name.gain` and `name.bias` of the
/// row's width. A matrix is normalised row by row. `eps` is 1e-5 by default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerNorm {
    gain: Param,
    bias: Option<Param>,
    eps: f32,
}

impl LayerNorm {
    /// A layer with a gain of ones and a bias of zeros.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, width: usize) -> Self {
        Self::with_options(m, name, width, EPS, true)
    }

    /// A layer with the given `eps`, with or without a bias.
    #[track_caller]
    pub fn with_options(m: &mut ModuleBuilder, name: &str, width: usize, eps: f32, bias: bool) -> Self {
        let gain = m.param(&format!("{name}.gain"), [width], Init::Constant(1.0));
        let mut layer = Self { gain, bias: None, eps };
        if bias {
            layer.bias = Some(m.param(&format!("{name}.bias"), [width], Init::ZEROS));
        }
        layer
    }

    /// The normalised rows.
    #[track_caller]
    #[must_use]
    pub fn on<'g>(&self, x: Value<'g>) -> Value<'g> {
        let g = x.graph();
        let scaled = x.layer_norm(self.eps) * g.param(self.gain);
        match self.bias {
            Some(bias) => scaled + g.param(bias),
            None => scaled,
        }
    }
}

/// `y = x / sqrt(mean x² + eps) * gain` (Zhang & Sennrich 2019), with `name.gain` of the row's width. A matrix is
/// normalised row by row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RmsNorm {
    gain: Param,
    eps: f32,
}

impl RmsNorm {
    /// A layer with a gain of ones. PyTorch's default `eps` is the machine epsilon, 1.1920929e-7.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, width: usize, eps: f32) -> Self {
        Self { gain: m.param(&format!("{name}.gain"), [width], Init::Constant(1.0)), eps }
    }

    /// The normalised rows.
    #[track_caller]
    #[must_use]
    pub fn on<'g>(&self, x: Value<'g>) -> Value<'g> {
        let size = (x.square().mean_rows() + self.eps).rsqrt();
        let column = if x.shape().rank() < 2 {
            size
        } else {
            let mut dims: Vec<usize> = x.shape().dims().iter().map(|&extent| extent as usize).collect();
            if let Some(last) = dims.last_mut() {
                *last = 1;
            }
            size.reshape(&dims[..])
        };
        x * column * x.graph().param(self.gain)
    }
}

/// Group normalisation (Wu & He 2018). It normalises each group of neighbouring channels, over all their elements, and then
/// applies `* gain + bias` per channel, with `name.gain` and `name.bias: [channels]`. With one group per channel it is
/// instance normalisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupNorm {
    gain: Param,
    bias: Param,
    groups: usize,
    channels: usize,
}

impl GroupNorm {
    /// A layer with a gain of ones and a bias of zeros; `groups` must divide `channels`.
    #[track_caller]
    pub fn new(m: &mut ModuleBuilder, name: &str, groups: usize, channels: usize) -> Self {
        if groups == 0 || !channels.is_multiple_of(groups) {
            let message = format!("{groups} groups cannot divide {channels} channels");
            let help = Some("use a number of groups that divides the channels".to_owned());
            m.fail(&format!("norm {name}"), message, help, Location::caller());
        }
        let gain = m.param(&format!("{name}.gain"), [channels], Init::Constant(1.0));
        let bias = m.param(&format!("{name}.bias"), [channels], Init::ZEROS);
        Self { gain, bias, groups: groups.max(1), channels }
    }

    /// The normalised channels; the outermost axis of `x` is the channel axis.
    #[track_caller]
    #[must_use]
    pub fn on<'g>(&self, x: Value<'g>) -> Value<'g> {
        let (g, shape) = (x.graph(), x.shape());
        let normed = x.reshape([self.groups, shape.elements() / self.groups]).layer_norm(EPS);
        let mut column = vec![1; shape.rank().max(1)];
        column[0] = self.channels;
        let (gain, bias) = (g.param(self.gain), g.param(self.bias));
        normed.reshape(shape) * gain.reshape(&column[..]) + bias.reshape(&column[..])
    }
}

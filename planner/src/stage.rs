//! Stages of planning. The product of a stage says its name and its task, and prints itself.
//!
//! The products form a chain: each names the product before it. The pipeline hands every product to a [`Chain`], which
//! takes only the next one. So a pipeline in another order, or without a stage, does not compile.

use autobatch_ir::graph::GraphData;
use std::fmt::{self, Display, Write};
use std::marker::PhantomData;

/// A stage of planning. No decision of a stage changes bits of values or gradients.
#[derive(Clone, Copy, Debug)]
pub struct Stage {
    /// Its name, which is that of its folder. The head of the folder says what the stage needs and ensures.
    pub name: &'static str,
    /// Its input and its product.
    pub turns: &'static str,
    /// Its task in one sentence.
    pub what: &'static str,
}

/// The product of a stage as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageDump {
    /// The name of the stage.
    pub name: &'static str,
    /// The product as text.
    pub text: String,
}

/// The product of a stage.
pub(crate) trait Product {
    /// The product of the stage before, or [`Start`].
    type After: Products;
    /// The stage that makes it.
    const STAGE: Stage;

    /// Appends its text form.
    fn print(&self, graph: &GraphData, out: &mut String) -> fmt::Result;
}

/// All products up to one of them.
pub(crate) trait Products {
    /// Their stages, in the order of the pipeline.
    fn stages() -> Vec<Stage>;
}

/// No product yet.
pub(crate) struct Start;

impl Products for Start {
    fn stages() -> Vec<Stage> {
        Vec::new()
    }
}

impl<P: Product> Products for P {
    fn stages() -> Vec<Stage> {
        let mut stages = P::After::stages();
        stages.push(P::STAGE);
        stages
    }
}

/// Gets the text of every product, if anybody wants it.
pub(crate) type Watch<'a> = Option<&'a mut Vec<StageDump>>;

/// The products made so far, of which `P` is the last.
pub(crate) struct Chain<'a, P> {
    graph: &'a GraphData,
    watch: Watch<'a>,
    last: PhantomData<P>,
}

impl<'a> Chain<'a, Start> {
    pub(crate) fn new(graph: &'a GraphData, watch: Watch<'a>) -> Self {
        Self { graph, watch, last: PhantomData }
    }
}

impl<'a, P> Chain<'a, P> {
    /// Adds the product of the next stage.
    pub(crate) fn then<Next: Product<After = P>>(self, product: &Next) -> Chain<'a, Next> {
        let Self { graph, mut watch, .. } = self;
        if let Some(dumps) = &mut watch {
            let mut text = String::new();
            product.print(graph, &mut text).expect("a string takes any text");
            dumps.push(StageDump { name: Next::STAGE.name, text });
        }
        Chain { graph, watch, last: PhantomData }
    }
}

/// Prints items behind a word, separated by commas; nothing without items.
pub(crate) fn print_list(
    out: &mut String,
    word: &str,
    items: impl Iterator<Item = impl Display>,
) -> fmt::Result {
    items.enumerate().try_for_each(|(index, item)| {
        let before = if index == 0 { word } else { ", " };
        write!(out, "{before}{item}")
    })
}

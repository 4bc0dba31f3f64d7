//! Update plans to text: stores, kernels, then a line for each update.
//!
//! ```text
//! sumsq -> c0 <- @w.grad @b.grad
//! scalars k0 -> c1 <- c0 x[0] x[1]
//! update k1 -> @w @w.m <- @w @w.grad @w.m c1
//! update k2 sparse -> @embed <- @embed @embed.grad c1
//! ```

use super::UPDATE_HEADER;
use super::print::{COLUMNS, push_kernels, push_stores, store_name};
use crate::graph::text::write::{push_text, put};
use crate::plan::{Update, UpdatePlan, UpdateSource};

/// The text of an update plan.
pub(super) fn plan(plan: &UpdatePlan) -> String {
    let UpdatePlan { module, stores, floats, kernels, updates } = plan;
    let mut out = format!("{UPDATE_HEADER}\nmodule ");
    push_text(&mut out, module);
    out.push('\n');
    push_stores(&mut out, stores);
    put(&mut out, format_args!("\nbind floats {floats}\n"));
    push_kernels(&mut out, kernels);
    out.push_str(if updates.is_empty() { "" } else { "\n" });
    let mut scalars = 0;
    for own in updates {
        let made = own.scalars(kernels);
        update(&mut out, plan, own, scalars..scalars + made);
        scalars += made;
    }
    out
}

/// The line of an update that makes the given scalars, broken between words where it grows long.
fn update(out: &mut String, plan: &UpdatePlan, update: &Update, made: std::ops::Range<usize>) {
    let start = out.len();
    match update {
        Update::Sumsq { .. } => out.push_str("sumsq"),
        Update::Scalars { kernel, .. } => put(out, format_args!("scalars {kernel}")),
        Update::Apply { kernel, sparse, .. } => {
            put(out, format_args!("update {kernel}{}", if *sparse { " sparse" } else { "" }));
        }
    }
    let mut column = out.len() - start;
    let mut word = |out: &mut String, word: &str| {
        if column + 1 + word.len() > COLUMNS {
            out.push_str("\n   ");
            column = 3;
        }
        out.push(' ');
        out.push_str(word);
        column += 1 + word.len();
    };
    let name = |store| format!("@{}", store_name(&plan.stores, store));
    word(out, "->");
    made.for_each(|scalar| word(out, &format!("c{scalar}")));
    update.targets().iter().for_each(|&store| word(out, &name(store)));
    word(out, "<-");
    for source in update.sources() {
        word(
            out,
            &match source {
                UpdateSource::Store(store) => name(store),
                UpdateSource::Scalar(scalar) => format!("c{scalar}"),
                UpdateSource::Float(float) => format!("x[{float}]"),
            },
        );
    }
    out.push('\n');
}

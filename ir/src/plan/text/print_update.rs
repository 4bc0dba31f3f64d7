//! Updates to text.
//!
//! ```text
//! sumsq -> c0 <- @w.grad @b.grad
//! scalars k0 -> c1 <- c0 x[0] x[1]
//! update k1 -> @w @w.m <- @w @w.grad @w.m c1
//! update k2 touched -> @embed <- @embed @embed.grad c1
//! ```

use super::print::{COLUMNS, put, store_name};
use crate::plan::{Plan, Update, UpdateSource};

/// Writes all updates.
pub(super) fn updates(out: &mut String, plan: &Plan) {
    out.push_str(if plan.updates.is_empty() { "" } else { "\n" });
    let mut scalars = 0;
    for update in &plan.updates {
        let made = match update {
            Update::Sumsq { .. } => {
                out.push_str("sumsq");
                1
            }
            Update::Scalars { kernel, .. } => {
                put(out, format_args!("scalars {kernel}"));
                plan.kernel_results(*kernel)
            }
            Update::Apply { kernel, touched, .. } => {
                put(out, format_args!("update {kernel}{}", if *touched { " touched" } else { "" }));
                0
            }
        };
        let mut column = out.len() - out.rfind('\n').map_or(0, |newline| newline + 1);
        let mut word = |out: &mut String, word: &str| {
            if column + 1 + word.len() > COLUMNS {
                out.push_str("\n   ");
                column = 3;
            }
            out.push(' ');
            out.push_str(word);
            column += 1 + word.len();
        };
        word(out, "->");
        (0..made).for_each(|number| word(out, &format!("c{}", scalars + number)));
        update.targets().iter().for_each(|&store| word(out, &format!("@{}", store_name(plan, store))));
        word(out, "<-");
        for source in update.sources() {
            match source {
                UpdateSource::Store(store) => word(out, &format!("@{}", store_name(plan, store))),
                UpdateSource::Scalar(scalar) => word(out, &format!("c{scalar}")),
                UpdateSource::Float(float) => word(out, &format!("x[{float}]")),
            }
        }
        out.push('\n');
        scalars += made;
    }
}

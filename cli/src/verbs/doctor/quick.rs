//! The quick test: one plan with every template.

use super::Found;
use crate::failure::Failure;
use crate::progress::Waiting;
use autobatch::runtime_wgpu::{Options, Selector, SelfTest, self_test};

/// Executes the plan of the self-test on a GPU.
pub(super) fn examine(device: &str) -> Result<Found, Failure> {
    let selector: Selector = device.parse().map_err(|error| Failure::usage(format!("{error}")))?;
    let waiting = Waiting::new("testing the GPU");
    let tested = self_test(Options { selector, ..Options::default() });
    drop(waiting);
    Ok(match tested {
        Ok(found) => Found { healthy: Some(found.is_healthy()), lines: findings(&found) },
        Err(error) => Found { healthy: None, lines: vec![format!("self-test: not executed; {error}")] },
    })
}

fn findings(found: &SelfTest) -> Vec<String> {
    let SelfTest {
        adapter,
        compared,
        same_bits,
        max_error,
        worst,
        same_when_repeated,
        first_run,
        second_run,
    } = found;
    let (first, again) = (first_run.as_millis(), second_run.as_micros());
    let result = match (found.is_healthy(), same_when_repeated) {
        (true, _) if same_bits == compared => {
            format!("  correct: {compared} results with the bits of the cpu")
        }
        (true, _) => format!(
            "  correct: {compared} results, {same_bits} with the bits of the cpu; maximum error {max_error:.1e} of the largest element: the device fuses or divides differently from the cpu"
        ),
        (false, true) => format!("  WRONG: {worst} has an error of {max_error:.1e} of its largest element"),
        (false, false) => "  WRONG: the second run had other results than the first".to_owned(),
    };
    let advice = match (found.is_healthy(), adapter.kind) {
        (false, _) => "advice: update the driver, select another adapter, or execute on the cpu".to_owned(),
        (true, "software") => {
            "advice: use software adapters only to check small models; they reject plans with long loops"
                .to_owned()
        }
        (true, _) => {
            format!("advice: execute with `gpu:{}`; models with many rows per step gain most", adapter.number)
        }
    };
    vec![
        format!("self-test: {}, driver {}", adapter.name, adapter.driver),
        format!("  first run {first} ms including setup and compilation, second run {again} µs"),
        result,
        advice,
    ]
}

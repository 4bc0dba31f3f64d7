//! `calibrate`: measures the costs of steps and planning on this machine.

use crate::args::CalibrateArgs;
use crate::console::Console;
use crate::failure::{Answer, Failure};
use crate::files::write;
use crate::output_paths::check_writable;
use crate::progress::Waiting;
use autobatch::calibrate::{Calibration, calibrate as measure};
use std::io::Write;
use std::time::Duration;

/// Measures a cost table and writes it.
pub fn calibrate(args: &CalibrateArgs, console: &mut Console<'_>) -> Result<Answer, Failure> {
    check_writable(&args.output)?;
    let options = Calibration { duration: Duration::from_millis(args.turn), ..Calibration::default() };
    let waiting = Waiting::new("measuring the costs of steps");
    let table = measure(&options)?;
    drop(waiting);
    write(&args.output, format!("{}\n", table.to_json()).as_bytes(), console)?;
    if args.output != "-" {
        writeln!(
            console,
            "{}: {:.0} ns per step, {:.4} ns per multiply-add, {:.0} ns to plan a node",
            table.machine, table.step_ns, table.classes.product.unit_ns, table.planning.node_ns
        )?;
        writeln!(console, "wrote {0}.  Next: AUTOBATCH_COSTS={0} autobatch plan trees.abg", args.output)?;
    }
    Ok(Answer::Yes)
}

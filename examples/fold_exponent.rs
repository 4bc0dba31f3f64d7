//! Computes 2^n by doubling integers.
//!
//! The graph is a chain, so no two nodes can share a batch. The lower bound of the plan shows this. Each
//! power is computed once, because both operands of a sum are the same value.
//!
//! ```text
//! cargo run --example fold_exponent -- 10
//! ```

#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

use autobatch::prelude::*;

/// 2^n, as the sum of 2^(n-1) and itself.
fn power<'g>(g: &'g Graph, n: u32) -> Value<'g> {
    if n == 0 {
        return g.index(1);
    }
    let half = power(g, n - 1);
    half + half
}

fn main() -> autobatch::Result<()> {
    let n: u32 = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(10).min(31);
    let mut session = Session::new(&ModuleBuilder::new("exponent").build()?, Device::Cpu)?;
    let graph = session.graph();
    let wanted = power(&graph, n);
    let run = session.run(&graph, [wanted])?;
    println!("2^{n} = {}", run[wanted].words()[0]);
    let certificate = run.plan().certificate;
    println!(
        "batches {}, bound {}: no two nodes of a chain share a batch",
        certificate.batches, certificate.bound
    );
    Ok(())
}

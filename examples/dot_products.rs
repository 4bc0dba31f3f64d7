//! Dot products of 100 vectors with 15 embeddings, which are stacked into a matrix.
//!
//! The plan has one product over 100 rows. All rows read the matrix directly, without a copy.
//!
//! ```text
//! cargo run --example dot_products
//! ```

#![allow(clippy::print_stdout, reason = "an example reports to the terminal")]

use autobatch::prelude::*;

const WIDTH: usize = 8;

fn main() -> autobatch::Result<()> {
    let mut m = ModuleBuilder::new("dots");
    let words = m.table("words", [1000, WIDTH], Init::Uniform(1.0));
    let mut session = Session::new(&m.build()?, Device::Cpu)?;

    let graph = session.graph();
    let columns: Vec<Value<'_>> = (0..15).map(|word| words.lookup(&graph, word * 7)).collect();
    let matrix = graph.stack(&columns);
    let dots: Vec<Value<'_>> =
        (0..100).map(|number| matrix.matmul(words.lookup(&graph, 900 - number))).collect();
    let run = session.run(&graph, &dots)?;

    let (_, shape) = run.stack(&dots)?;
    println!("{} x {} dot products, the first {:.4}", shape[0], shape[1], run[dots[0]][0]);
    let plan = run.plan();
    for step in &plan.steps {
        println!("{:5} rows of {}", step.rows, plan.kernel(step).name);
    }
    let certificate = plan.certificate;
    println!(
        "batches {}, bound {}; rows copied {}",
        certificate.batches, certificate.bound, certificate.copied
    );
    Ok(())
}

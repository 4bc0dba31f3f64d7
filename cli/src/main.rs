//! The command `autobatch`.

fn main() {}

#[allow(unused)] mod x {}

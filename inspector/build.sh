#!/usr/bin/env bash
# Builds the planner of the inspector's page: page/inspector.wasm. Needs `rustup target add wasm32-unknown-unknown`.
set -euo pipefail
cd "$(dirname "$0")"
cargo build --release --locked --manifest-path wasm/Cargo.toml --target wasm32-unknown-unknown --target-dir ../target/wasm
cp ../target/wasm/wasm32-unknown-unknown/release/autobatch_inspector_wasm.wasm page/inspector.wasm
ls -l page/inspector.wasm

//! Plays plans on the CPU.

//! Automatic dynamic batching: write a model for one instance, play thousands at once.

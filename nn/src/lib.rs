//! Layers, losses, initialisers and optimisers.

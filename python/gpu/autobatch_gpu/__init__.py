"""The native half of autobatch with GPUs. `import autobatch` takes it; programs need not import it."""

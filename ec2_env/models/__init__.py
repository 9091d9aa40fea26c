"""Who thinks: simulated, local, remote, scripted and recorded models behind one protocol."""

"""The trajectory viewer: reads a run folder, rebuilds what its episodes did, and shows it as a page."""

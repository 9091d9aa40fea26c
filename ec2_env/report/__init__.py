"""One page about a run: tables, plots and what leaked where, from nothing but the run's folder."""

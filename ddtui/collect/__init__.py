"""One collector a source. Collectors turn what a host says into samples and touch nothing else."""

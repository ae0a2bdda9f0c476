"""What the simulated engine knows of coding: an answer to each task, which it gives as its text."""

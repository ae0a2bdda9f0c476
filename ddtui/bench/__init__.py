"""Measuring a configuration: prompts, load generator, figures, coding tasks and their sandbox."""

"""What verbs and screens work with: a watched host, who changes it, its queue and its results."""

"""One module a panel. Each draws rows from a frozen snapshot and knows no host."""

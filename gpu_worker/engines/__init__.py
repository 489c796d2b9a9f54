"""Where agents come from. Each engine starts agents and keeps them alive; the broker does not know which one did."""

"""The control plane's rules: typed messages, what follows from them, who may send them. Pure like all of the core."""

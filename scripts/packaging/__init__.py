"""The packages as a user gets them: run with ``scripts/package``.

Belongs here: ``archives`` builds wheel and sdist and looks into them; ``installs`` installs the wheel and runs the demo
with what came of it; ``steps`` runs such steps, and tells a failure from something that cannot be done offline.
"""

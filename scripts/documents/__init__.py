"""The pages of docs/ that follow from the program, and the site: run with ``scripts/docs``.

Belongs here: ``commands`` and ``configuration`` say what the program says of itself; ``pages`` puts that behind the
hand-written part of a page; ``site`` has Sphinx build all pages.
"""

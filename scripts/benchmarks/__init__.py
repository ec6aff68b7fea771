"""The benchmarks behind ``docs/internals/benchmarks.md``: run them with ``scripts/bench``.

One module a question: ``world`` builds mailboxes, ``launch`` says how the programs are called, ``timing`` runs whole
processes against a bare interpreter, ``measures`` is what is measured, ``worker`` what runs inside children, ``plain``
the scheme written plainly, ``report`` and ``plot`` what is made of the figures.
"""

from tests.door import switches

switches.switch_now()  # in each process of this package: its records are the run's own

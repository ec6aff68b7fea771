"""The stress run: start it with ``scripts/stress``.

One module a question: ``cast`` says who takes part, ``actors`` what the long-lived processes do, ``foreign`` what
programs that are not ours do to the logs, ``commands`` how real commands and hooks are started, ``chaos`` what happens
to all of them, ``director`` when. What is true afterwards: ``journal`` is what each process was told, ``evidence`` what
stands in the logs (read without our codec), ``rules`` what must hold between the two (of requests: ``decisions``),
``report`` the result.
"""

from tests.door import switches

switches.switch_now()  # in each process of this package: its records are the run's own

"""How every test runs: the same examples each time, and no verdict that depends on how busy the machine is."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "mailbox",
    derandomize=True,
    deadline=None,
    print_blob=True,
    report_multiple_bugs=False,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],  # a clock's verdict as well
)
settings.load_profile("mailbox")

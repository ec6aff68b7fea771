"""The names that sessions get by themselves: the list, and the next that is free.

Belongs here: the choice. No name is given twice: a session of that name would continue the old one, and get its mail.
So a name that any agent had, or a word by which mail was sent, is passed over. A test holds that no two names of the
list look alike, so a misspelt one is noticed.
"""

from __future__ import annotations

from itertools import chain, count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .roster import Roster

# fmt: off
NAMES = (
    "Otter", "Heron", "Lynx", "Badger", "Falcon", "Marten", "Osprey", "Puffin", "Raven", "Sparrow", "Wren",
    "Robin", "Magpie", "Plover", "Curlew", "Kestrel", "Condor", "Egret", "Toucan", "Pelican", "Walrus",
    "Beaver", "Bison", "Camel", "Cheetah", "Coyote", "Dingo", "Dolphin", "Ferret", "Gazelle", "Gecko", "Gibbon",
    "Giraffe", "Gopher", "Hamster", "Ibex", "Iguana", "Impala", "Jaguar", "Kiwi", "Koala", "Lemur", "Leopard",
    "Lizard", "Llama", "Macaw", "Mammoth", "Manatee", "Meerkat", "Moose", "Narwhal", "Newt", "Ocelot",
    "Octopus", "Okapi", "Opossum", "Orca", "Oriole", "Panther", "Parrot", "Penguin", "Pigeon", "Puma", "Quail",
    "Rabbit", "Raccoon", "Rhino", "Salmon", "Stoat", "Swan", "Tapir", "Tern", "Tiger", "Trout", "Turtle",
    "Vole", "Wallaby", "Whale", "Wolf", "Wombat", "Yak", "Zebra", "Alder", "Aspen", "Birch", "Cedar", "Fennel",
    "Hazel", "Holly", "Ivy", "Juniper", "Laurel", "Lilac", "Linden", "Maple", "Myrtle", "Oak", "Olive",
    "Poplar", "Rowan", "Spruce", "Sumac", "Thistle", "Willow", "Yarrow", "Amber", "Basalt", "Cobalt", "Copper",
    "Flint", "Garnet", "Granite", "Jasper", "Marble", "Onyx", "Opal", "Pebble", "Quartz", "Slate", "Topaz",
    "Zircon", "Comet", "Glacier", "Lagoon", "Meadow",
)
# fmt: on
_PRIME = (1 << 31) - 1


def free_name(session_id: str, roster: Roster, is_unused: Callable[[str], bool]) -> str:
    """Return a name for the session that nobody ever had. Sessions begin at different names of the list; where all are
    used, a number follows the first: ``Otter-2``. ``is_unused`` asks what the roster does not know."""
    roles = {role.removeprefix("role:").casefold() for role in roster.roles_ever}
    return next(
        name
        for name in _candidates(session_id)
        if name.casefold() not in roles and not _is_known(name.casefold(), roster) and is_unused(name)
    )


def _candidates(session_id: str) -> Iterator[str]:
    first = int.from_bytes(session_id.encode("utf-8", "surrogatepass"), "little") % _PRIME % len(NAMES)
    yield from chain(NAMES[first:], NAMES[:first])
    for number in count(2):
        yield f"{NAMES[first]}-{number}"


def _is_known(spelt: str, roster: Roster) -> bool:
    """Return whether an agent, dead or not, has that name or id; in any case of letters."""
    return any(
        spelt in (agent.session_id.casefold(), (agent.name or "").casefold()) for agent in roster.mentioning(spelt)
    )

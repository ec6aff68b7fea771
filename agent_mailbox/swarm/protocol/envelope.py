"""The message envelope: every field of the founding text, read strictly, written canonically.

Belongs here: its shape. The founding text signs six fields only (``signing``); all others are hints of any relay,
unless the message is sealed, too. Unknown members are ignored (semver: a minor version may add some).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from . import wire
from .refusal import Refusal

Action = Literal["claimed", "completed", "blocked", "unblocked", "assigned", "mention", "review_requested"]
ACTIONS = get_args(Action)
REQUIRED = {
    "github_repo": ("repo",),
    "github_issue": ("repo", "number"),
    "github_pr": ("repo", "number"),
    "github_commit": ("repo", "sha"),
    "url": ("url",),
}
"""The reference types, and the members each must have."""
MAX_ITEMS = 200
"""Most references, attachments or metadata keys of one message: "hundreds of issues" take several."""


def _form_validator(test: Any, need: str) -> Any:
    def check_form(text: str) -> str:
        if not test(text):
            raise ValueError(f"must be {need}")
        return text

    return AfterValidator(check_form)


def _check_key(text: str) -> str:
    return wire.base64_of(wire.raw_key(text))


def _known_references(value: Any) -> Any:
    """Drop references of later versions: their types or actions are unknown here."""
    if not isinstance(value, list):
        return value
    return [one for one in value if not isinstance(one, dict) or _is_known(one)]


def _is_known(reference: dict[str, Any]) -> bool:
    kind, action = reference.get("type"), reference.get("action")
    return (not isinstance(kind, str) or kind in REQUIRED) and (not isinstance(action, str) or action in ACTIONS)


def _suffix_of(value: Any) -> str | None:
    """Return the end of a text, where a name has its suffix; None for anything else."""
    return value[-255:] if isinstance(value, str) else None


_TEXT = BeforeValidator(_suffix_of)
Uuid = Annotated[str, _form_validator(wire.is_uuid, "a UUID in lower case")]
Instant = Annotated[str, _form_validator(wire.is_instant, "an instant YYYY-MM-DDTHH:MM:SS.mmmZ")]
AgentId = Annotated[str, _form_validator(wire.is_agent_id, "an agent's id")]
Endpoint = Annotated[str, AfterValidator(wire.check_endpoint)]
PublicKey = Annotated[str, AfterValidator(_check_key)]
Repo = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}/[A-Za-z0-9._-]{1,100}$")]


class Model(BaseModel):
    """A value of the wire: frozen, strictly typed; unknown members are ignored."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", hide_input_in_errors=True)


M = TypeVar("M", bound=Model)


class Sender(Model):
    """The sender as the message claims it. The endpoint is a hint: never acted upon."""

    agent_id: AgentId
    endpoint: Endpoint


class EnvelopeReference(Model):
    """A link to something outside, and the action on it."""

    type: Literal["github_repo", "github_issue", "github_pr", "github_commit", "url"]
    repo: Repo | None = None
    number: Annotated[int, Field(ge=1, le=1 << 53)] | None = None
    sha: Annotated[str, StringConstraints(pattern=r"^[0-9a-fA-F]{4,64}$")] | None = None
    url: Annotated[str, StringConstraints(min_length=1, max_length=2048)] | None = None
    action: Action | None = None

    @model_validator(mode="after")
    def _check_complete(self) -> EnvelopeReference:
        for name in REQUIRED[self.type]:
            if getattr(self, name) is None:
                raise ValueError(f"a {self.type} needs {name}")
        return self


class Attachment(Model):
    """Something beside the text: by its URL, or in base64. Nothing is ever fetched.

    ``name`` and ``sha256`` are ours; a peer without them ignores them, and theirs of another shape are ignored here.
    """

    type: Literal["url", "inline"]
    mime_type: Annotated[str, StringConstraints(min_length=1, max_length=255)]
    content: Annotated[str, StringConstraints(min_length=1)]
    name: Annotated[str | None, _TEXT] = None
    sha256: Annotated[str | None, _TEXT] = None


class Envelope(Model):
    """A message as it is on the wire."""

    protocol_version: Annotated[str, StringConstraints(max_length=100)]
    message_id: Uuid
    timestamp: Instant
    sender: Sender
    recipient: AgentId
    swarm_id: Uuid
    type: Literal["message", "system", "notification"]
    content: str
    signature: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    in_reply_to: Uuid | None = None
    thread_id: Uuid | None = None
    priority: Literal["low", "normal", "high"] | None = None
    expires_at: Annotated[str, StringConstraints(max_length=40)] | None = None
    references: Annotated[
        Annotated[list[EnvelopeReference], Field(max_length=MAX_ITEMS)] | None, BeforeValidator(_known_references)
    ] = None
    attachments: Annotated[list[Attachment], Field(max_length=MAX_ITEMS)] | None = None
    metadata: Annotated[dict[str, Any], Field(max_length=MAX_ITEMS)] | None = None
    seal: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None


def read_model(model: type[M], value: Any, what: str) -> M:
    """Return the value as a model; raise ``Refusal`` (400) naming the first wrong member."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"][:4]) or what
        raise Refusal("INVALID_FORMAT", f"{where}: {first['msg'][:200]}") from None


def parse_envelope(value: dict[str, Any]) -> Envelope:
    """Return the envelope that a request's object is; raise ``Refusal`` (400)."""
    found = read_model(Envelope, value, "the message")
    wire.check_version(found.protocol_version)
    if "\0" in found.content:
        raise Refusal("INVALID_FORMAT", "content holds a NUL character")
    return found


def object_of(envelope: Envelope) -> dict[str, Any]:
    """Return the object to send, without unset members (founding text: optional; the reference's way)."""
    value = envelope.model_dump(exclude_none=True)
    if value.get("priority") == "normal":
        del value["priority"]
    return value


def encode_envelope(envelope: Envelope) -> bytes:
    """Return the body of a request, compact."""
    return wire.dump_json(object_of(envelope)).encode("utf-8")

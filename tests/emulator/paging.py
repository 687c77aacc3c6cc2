"""A page is a slice of a list with an opaque token for the next one; moto pages few calls, and not by item."""

import base64
import zlib
from typing import Any

from moto.core.exceptions import ServiceException
from moto.ec2.exceptions import EC2ClientError

from .settings import SETTINGS


def fingerprint(question: Any) -> str:
    return f"{zlib.crc32(repr(question).encode()):08x}"


Refusal = type[ServiceException]
"""The service's own error class: moto can't put another one on the wire."""


def page(
    items: list[Any],
    token: str | None,
    size: int | None,
    question: Any,
    refusal: Refusal = EC2ClientError,
) -> tuple[list[Any], str | None]:
    """The page that the token asks for. A token is good only for the question it was given for."""
    start = start_of(token, question, refusal)
    if SETTINGS.empty_pages and token is None and items:
        return [], token_for(0, question)
    wanted = min(size or len(items), SETTINGS.page_size or size or len(items))
    end = start + wanted
    return items[start:end], token_for(end, question) if end < len(items) else None


def token_for(start: int, question: Any) -> str:
    return base64.urlsafe_b64encode(f"{start}/{fingerprint(question)}".encode()).decode()


def start_of(token: str | None, question: Any, refusal: Refusal) -> int:
    if not token:  # an empty one means none, as on AWS
        return 0
    try:
        start, asked = base64.urlsafe_b64decode(token.encode()).decode().split("/")
        if asked == fingerprint(question):
            return int(start)
    except ValueError:
        pass
    raise refusal("InvalidNextToken", "The token is not valid for this request")


def checked_size(
    text: str | None, least: int, most: int, refusal: Refusal = EC2ClientError
) -> int | None:
    """MaxResults as a number, refused when AWS would refuse it."""
    if text is None:
        return None
    size = int(text)
    if not least <= size <= most:
        raise refusal(
            "InvalidParameterValue",
            f"Value ( {size} ) for parameter maxResults is invalid. Expecting {least} to {most}.",
        )
    return size

"""A filter keeps the resources whose field matches one of its values, as EC2's Describe calls do it.

`*` and `?` are wildcards, a backslash takes their meaning away, and an unknown filter is an error:
a filter that were ignored would make the caller see, and perhaps delete, everything.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from moto.ec2.exceptions import EC2ClientError

Fields = Mapping[str, Callable[[Any], Any]]


def pattern(value: str) -> re.Pattern:
    out = ""
    characters = iter(value)
    for character in characters:
        if character == "\\":
            out += re.escape(next(characters, "\\"))
        else:
            out += {"*": ".*", "?": "."}.get(character, re.escape(character))
    return re.compile(out, re.DOTALL)


def matcher(values: list[str]) -> Callable[[Any], bool]:
    """True for a field, or a list of fields, of which one matches one of the values."""
    exact = {value for value in values if not re.search(r"[*?\\]", value)}
    patterns = [pattern(value) for value in values if value not in exact]

    def matches(field: Any) -> bool:
        texts = field if isinstance(field, list) else [field]
        return any(
            text in exact or any(p.fullmatch(str(text)) for p in patterns)
            for text in texts
            if text is not None
        )

    return matches


def tags_of(resource: Any) -> dict[str, str]:
    return resource.ec2_backend.tags.get(resource.id) or {}


def field_reader(name: str, fields: Fields) -> Callable[[Any], Any]:
    if name.startswith("tag:"):
        return lambda resource: tags_of(resource).get(name[len("tag:") :])
    if name == "tag-key":
        return lambda resource: list(tags_of(resource))
    if name in fields:
        return fields[name]
    raise EC2ClientError("InvalidParameterValue", f"The filter '{name}' is invalid")


def keep(
    resources: Iterable[Any], filters: dict[str, list[str]] | None, fields: Fields
) -> list[Any]:
    tests = []
    for name, values in (filters or {}).items():
        if len(values) > 200:
            raise EC2ClientError(
                "FilterLimitExceeded",
                "The maximum number of filter values specified on a single call is 200",
            )
        tests.append((field_reader(name, fields), matcher(values)))
    return [
        resource
        for resource in resources
        if all(matches(read(resource)) for read, matches in tests)
    ]

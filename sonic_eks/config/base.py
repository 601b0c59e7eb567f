"""What every section of the configuration shares."""

from __future__ import annotations

from typing import Annotated

from pydantic import (
    AllowInfNan,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Strict,
    StringConstraints,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticKnownError

# Strict scalars: YAML turns 1.30, 012 or yes into other things than the author wrote, and a
# silent conversion back would hide it.
Int = Annotated[int, Strict()]
Bool = Annotated[bool, Strict()]
Str = Annotated[str, Strict(), StringConstraints(min_length=1, max_length=2048)]
Fraction = Annotated[float, Strict(), AllowInfNan(False)]


def _whole(value: object) -> object:
    # To Python, true is 1 and 90.0 is 90.
    if type(value) is not int:
        raise PydanticKnownError("int_type")
    return value


WholeChoice = BeforeValidator(_whole)
"""Makes a `Literal` of integers strict."""


class Section(BaseModel):
    """A frozen mapping with camelCase keys that refuses keys it does not know."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        # Python code may build a configuration too, by either name.
        validate_by_name=True,
        validate_by_alias=True,
        validate_default=True,
        use_attribute_docstrings=True,
        hide_input_in_errors=True,
    )


class Refusal(ValueError):  # noqa: N818 (a rule refuses; ConfigurationError is what is raised)
    """A value that a rule refuses.

    Parameters
    ----------
    given : object
        The value as it stands in the file.
    allowed : str
        What may stand there.
    nearest : str, optional
        The nearest valid value or values.
    field : str, optional
        The dotted camelCase path below the section that raises, where a rule spans fields.
    """

    def __init__(
        self, given: object, allowed: str, *, nearest: str | None = None, field: str | None = None
    ) -> None:
        super().__init__(allowed)
        self.given = given
        self.allowed = allowed
        self.nearest = nearest
        self.field = field

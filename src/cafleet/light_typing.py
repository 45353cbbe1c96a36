"""What hot commands need of `typing`, without loading it (SPEC 13).

`typing` alone takes a sixth of a hot command, and its `NamedTuple` compiles code for each class. To a type
checker the names here are those of `typing`; what runs is a tuple with properties, the same to use.
"""

TYPE_CHECKING = False
"""Type checkers know this name and take it for true, also where it is imported from here."""

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
    from typing import cast as cast
else:
    from operator import itemgetter

    def cast(_kind, value):
        """`value` itself."""
        return value

    def _annotations(namespace):
        if "__annotations__" in namespace:
            return namespace["__annotations__"]
        # Python 3.14 and later keep a function that makes them; 1 asks for plain values.
        annotate = namespace.get("__annotate_func__") or namespace.get("__annotate__")
        return annotate(1) if annotate else {}

    class _Meta(type):
        """Makes the annotated names of a class statement the places of a tuple, in their order."""

        def __new__(meta, name, bases, namespace):
            fields = tuple(_annotations(namespace))
            namespace["__slots__"] = ()
            namespace["_fields"] = namespace["__match_args__"] = fields
            namespace["_field_defaults"] = {field: namespace[field] for field in fields if field in namespace}
            for place, field in enumerate(fields):
                namespace[field] = property(itemgetter(place))
            return super().__new__(meta, name, bases, namespace)

    class NamedTuple(tuple, metaclass=_Meta):
        """A tuple whose places have names and types. What derives from it is not to be derived from again."""

        def __new__(cls, *values, **named):
            if named or len(values) != len(cls._fields):
                in_order = not values and (*named,) == cls._fields  # Nearly always, where names are given.
                values = named.values() if in_order else cls._arranged(values, named)
            return tuple.__new__(cls, values)

        @classmethod
        def _arranged(cls, values, named):
            """All values in order, from those given by place, those given by name, and the defaults."""
            rest, known = cls._fields[len(values) :], cls._field_defaults | named
            if len(values) > len(cls._fields) or not named.keys() <= {*rest} <= known.keys():
                raise TypeError(
                    f"{cls.__name__} takes {', '.join(cls._fields)};"
                    f" it got {len(values)} values by place and {', '.join(named) or 'none'} by name"
                )
            return [*values, *map(known.__getitem__, rest)]

        @classmethod
        def _make(cls, values):
            """A record of all the values, in order."""
            made = tuple.__new__(cls, values)
            if len(made) != len(cls._fields):
                raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
            return made

        def _replace(self, **changes):
            """The same with other values in the places named."""
            made = self._make(map(changes.pop, self._fields, self))
            if changes:
                raise TypeError(f"Got unexpected field names: {[*changes]}")
            return made

        def _asdict(self):
            """Names to values, in order."""
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self):
            named = ", ".join(f"{field}={value!r}" for field, value in self._asdict().items())
            return f"{type(self).__name__}({named})"

        def __getnewargs__(self):
            return tuple(self)

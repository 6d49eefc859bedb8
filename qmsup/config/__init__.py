"""The configuration: YAML in, a `qmsup.spec.Spec` out, or every problem with its key, its line and what to do."""

from qmsup.config.conversion import import_file
from qmsup.config.listing import Key, listed_keys
from qmsup.config.loading import Configuration, load, parse, parse_and_remark, read_file
from qmsup.config.oversize import Oversize, oversize
from qmsup.config.schema import json_schema

__all__ = [
    "Configuration",
    "Key",
    "Oversize",
    "import_file",
    "json_schema",
    "listed_keys",
    "load",
    "oversize",
    "parse",
    "parse_and_remark",
    "read_file",
]

"""The configuration: YAML in, a `qmsup.spec.Spec` out, or every problem with its key, its line and what to do."""

from qmsup.config.loading import Configuration, load, parse, parse_and_remark, read_file
from qmsup.config.schema import json_schema

__all__ = ["Configuration", "json_schema", "load", "parse", "parse_and_remark", "read_file"]

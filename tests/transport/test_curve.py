import stat
from pathlib import Path

import pytest

from qmsup.errors import ConfigError
from qmsup.transport import curve


def test_a_pair_is_made_that_can_be_read_and_is_its_owners_alone(tmp_path: Path) -> None:
    public, secret = curve.make_keys(tmp_path / "keys", "server")

    keys = curve.read_keys(secret)

    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert stat.S_IMODE(secret.parent.stat().st_mode) == 0o700
    assert curve.read_public(public) == curve.read_public(secret) == keys.public
    assert keys.secret not in public.read_bytes()


def test_no_key_takes_the_place_of_another(tmp_path: Path) -> None:
    curve.make_keys(tmp_path, "server")
    with pytest.raises(ConfigError, match="already"):
        curve.make_keys(tmp_path, "server")


@pytest.mark.parametrize("name", ["", "a/b", "a b"])
def test_a_name_that_is_none_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no name"):
        curve.make_keys(tmp_path, name)


def test_what_cannot_be_read_is_told_by_its_path(tmp_path: Path) -> None:
    public, _ = curve.make_keys(tmp_path, "a")
    (tmp_path / "b").write_text("nonsense")

    with pytest.raises(ConfigError, match="public key only"):
        curve.read_keys(public)
    for path in (tmp_path / "none", tmp_path / "b"):
        with pytest.raises(ConfigError, match=str(path)):
            curve.read_keys(path)
        with pytest.raises(ConfigError, match=str(path)):
            curve.read_public(path)


def test_a_public_key_is_put_where_clients_are_known(tmp_path: Path) -> None:
    public, _ = curve.make_keys(tmp_path, "ann")
    assert curve.allow(public, tmp_path / "clients").read_bytes() == public.read_bytes()


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    public, _ = curve.make_keys(tmp_path, "ann")
    with pytest.raises(ConfigError, match="cannot write"):
        curve.make_keys(tmp_path / "file", "bob")
    with pytest.raises(ConfigError, match="cannot write"):
        curve.allow(public, tmp_path / "file")

"""Invitations in a store: used once, by one of many who try at once; expired, used and revoked ones open nothing."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from coterie.campaign import CampaignError, Campaigns
from coterie.campaign.errors import BadValue, Conflict, NotFound
from coterie.campaign.tokens import hash_of
from coterie.web.access import INVITED_SECONDS, Access, prepare_tokens


class Clock:
    """A time that a test sets."""

    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[Campaigns]:
    with Campaigns(tmp_path / "lab.db", clock) as campaigns:
        yield campaigns


def test_an_invitation_becomes_a_token_of_its_name_once(store: Campaigns, clock: Clock) -> None:
    id = store.create("beans", 3, 2, 1)["id"]
    access = Access.of_store(store, clock)
    made = store.invitations.make("ann", "worker", id, hours=2)
    assert (made["state"], made["campaign"]) == ("open", id)
    assert store.tokens() == [], "it is no token before it is used"
    secret = access.accept(made["secret"])
    caller = access.by_session(secret)
    assert caller is not None
    assert (caller.role, caller.campaign) == ("worker", id)
    (token,) = store.tokens()
    assert (token["label"], token["role"], token["hash"]) == ("ann", "worker", caller.token)
    again = Access.of_store(store, clock).by_session(secret)
    assert again == caller, "another process knows it too"
    with pytest.raises(Conflict, match="has been used") as refused:
        access.accept(made["secret"])
    assert refused.value.code == "invitation_used"
    (listed,) = store.invitations.listed(id)
    assert (listed["state"], listed["token"]) == ("used", token["id"])
    clock.now += INVITED_SECONDS + 1
    assert access.by_session(secret) is None


def test_the_store_has_no_secret_and_the_secret_is_no_token(store: Campaigns, clock: Clock, tmp_path: Path) -> None:
    made = store.invitations.make("ann", "reader")
    secret = made["secret"]
    session = Access.of_store(store, clock).accept(secret)
    store.invitations.make("bob")
    store.backup(tmp_path / "copy.db")
    content = (tmp_path / "copy.db").read_bytes()
    assert secret.encode() not in content
    assert session.encode() not in content
    other = store.invitations.make("cleo")["secret"]
    access = Access.of_store(store, clock)
    for given in (other, secret, f"invitation {other}"):
        assert access.by_token(given) is None
        assert hash_of(given).encode() not in content, "a release without invitations would take it for a token"


def test_expired_revoked_and_unknown_invitations_open_nothing(store: Campaigns, clock: Clock) -> None:
    access = Access.of_store(store, clock)
    late, revoked = store.invitations.make("late", hours=1), store.invitations.make("gone", hours=99)
    store.invitations.revoke(revoked["id"])
    clock.now += 3600.0
    for secret, code in ((late["secret"], "expired"), (revoked["secret"], "revoked")):
        with pytest.raises(Conflict) as refused:
            access.accept(secret)
        assert refused.value.code == f"invitation_{code}"
        assert refused.value.message.endswith("ask for another one.")
    with pytest.raises(NotFound, match="not known here"):
        access.accept("invite-of-nobody")
    assert store.tokens() == store.sessions() == []
    assert sorted(row["state"] for row in store.invitations.listed()) == ["expired", "revoked"]
    store.invitations.make("late")  # an expired one holds its name no more


def test_of_many_who_use_an_invitation_at_once_one_gets_in(store: Campaigns, clock: Clock) -> None:
    access = Access.of_store(store, clock)
    secret = store.invitations.make("ann")["secret"]

    def attempt(_: int) -> bool:
        try:
            return access.by_session(access.accept(secret)) is not None
        except CampaignError:
            return False

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(attempt, range(12))) == 1
    assert len(store.tokens()) == len(store.sessions()) == 1


def test_who_is_invited_by_whom_and_for_what_is_checked(store: Campaigns) -> None:
    with pytest.raises(BadValue, match="worker or reader, got 'owner'"):
        store.invitations.make("ann", "owner")
    for hours in (0, -1, float("nan"), float("inf"), 721, "x"):
        with pytest.raises(BadValue) as refused:
            store.invitations.make("ann", hours=hours)  # type: ignore[arg-type]
        assert refused.value.field == "hours"
    with pytest.raises(NotFound):
        store.invitations.make("ann", campaign="0" * 24)
    store.invitations.make("ann")
    for taken in (lambda: store.invitations.make("ann"), lambda: store.new_token("ann")):
        with pytest.raises(Conflict, match="'ann' already"):
            taken()
    with pytest.raises(NotFound, match="no invitation"):
        store.invitations.revoke("ffff")


def test_a_new_token_for_the_server_ends_invitations_and_a_deleted_campaign_its_own(store: Campaigns) -> None:
    id = store.create("beans", 3, 2, 1)["id"]
    own = store.invitations.make("ann", campaign=id)
    store.invitations.make("bob")
    store.delete(id, "beans")
    assert [row["name"] for row in store.invitations.listed()] == ["bob"]
    with pytest.raises(NotFound):
        store.invitations.accept(own["secret"], "0", 0.0)
    prepare_tokens(store, renew=True)
    assert store.invitations.listed() == []


def test_revoking_a_used_invitation_names_the_token_it_became(store: Campaigns, clock: Clock) -> None:
    access = Access.of_store(store, clock)
    made = store.invitations.make("ann")
    session = access.accept(made["secret"])
    ended = store.invitations.revoke(made["id"])
    store.revoke_token(ended["token"])
    access.read()
    assert access.by_session(session) is None
    assert [row["state"] for row in store.invitations.listed()] == ["revoked"]

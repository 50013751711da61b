"""The list of what the quick tier leaves out follows the tree."""

from tests.architecture.source import ROOT
from tests.support.tiers import PLACES
from tests.support.xdist_groups import GROUPS


def test_every_place_that_is_named_exists():
    assert [place for place in (*PLACES, *GROUPS) if not list(ROOT.glob(f"{place}*"))] == []

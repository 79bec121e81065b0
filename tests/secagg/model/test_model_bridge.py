"""The model and the real client agree: on what is refused, on honest sums, and on the attacks that mutants permit."""

from itertools import islice

import numpy as np
import pytest
from adversary import deliveries, profiles, subsets
from decisions import agrees, masks, members_of
from formal import honest
from mutants import PAIRS, SINGLE, STAGED, applied
from replayed import recovered, replay
from search import judged, search, world
from small_rounds import answers, asked, content, federation, plain_sum, until

from foltr.errors import SecureAggregationError
from foltr.secagg.client import answer
from foltr.secagg.messages import Deliveries, Survivors
from foltr.secagg.terms import to_set

SHARES = {"dropouts": 0.2, "corrupt": 0.1}


def accepts(state, request):
    try:
        return answer(state, request)[0]
    except SecureAggregationError:
        return None


def test_the_model_signs_what_the_client_signs():
    """Five clients: everything that can be delivered to one of them, and every set of survivors."""
    formal, fed = world(5, **SHARES), federation(5, length=1, **SHARES)
    ids, me = sorted(fed.identities), 0
    _, states, requests = until(fed, "mask")
    sealed = content(requests[ids[me]], Deliveries).sealed
    threshold, around, everybody = formal.shapes[5].threshold, 0b11110, 0b11111
    signed = 0
    for held in subsets(around):
        delivered = Deliveries([one if held >> 1 + place & 1 else b"" for place, one in enumerate(sealed)])
        after = accepts(states[ids[me]], asked(fed, "mask", ids[me], delivered))
        assert (after is not None) == masks(held, threshold)
        for survivors in range(32) if after is not None else ():
            request = Survivors(to_set([ids[client] for client in members_of(survivors)], fed.registry))
            expected = agrees(me, everybody, around, held, survivors, formal.sizes, threshold)
            assert (accepts(after, asked(fed, "agree", ids[me], request)) is not None) == expected
            signed += expected
    assert signed > 5


def test_views_of_the_model_are_views_of_the_code():
    """Every seventh view: what the model says is determined can be computed from real messages, and nothing else."""
    formal, sums = world(5, **SHARES, roots=2), 0
    views = (paths for profile in profiles(formal) for paths in deliveries(formal, profile))
    views = (paths for paths in views if all(path.members & formal.colluders or not path.root for path in paths))
    for paths in islice(views, 0, 300, 7):
        found = replay(formal, paths, **SHARES)
        opens, leak = judged(formal, paths)
        assert leak is None
        groups = [members_of(some) for some in subsets(sum(1 << client for client in honest(formal))) if some]
        assert sum(_right(found, formal, group) for group in groups) == opens
        sums += opens
    assert sums > 5


@pytest.mark.parametrize("name", ["held", "survivors", "signatures", "samples", "wrong share", "outsiders", "proofs"])
def test_the_attack_of_a_mutant_works_on_the_code_without_the_check_and_not_with_it(name):
    mutant = (SINGLE | PAIRS)[name]
    shares = {"dropouts": 1 - mutant.world.sizes.min_clients / mutant.world.clients, "corrupt": 0.1}
    with applied(mutant) as weakened:
        leak = search(weakened).leak
        victims = min(leak.clients, key=len)
        found = replay(weakened, leak.paths, **shares)
        assert _right(found, weakened, victims)
    found = replay(mutant.world, leak.paths, **shares)
    assert not _right(found, mutant.world, victims)


def test_two_memberships_show_a_vector_of_the_code_that_counts_members_and_not_of_the_code_that_counts_the_cohort():
    mutant, paths = STAGED["cohort"]
    with applied(mutant) as weakened:
        found = replay(weakened, paths(), dropouts=0.36, corrupt=0.05)
        assert _right(found, weakened, [5])
    found = replay(mutant.world, paths(), dropouts=0.36, corrupt=0.05)
    assert not _right(found, mutant.world, [5])
    assert found.refused.keys() == set(honest(mutant.world))


def _right(found, formal, clients):
    computed = recovered(found, formal, clients)
    return computed is not None and np.array_equal(computed, _sum(found, clients))


def _sum(found, clients):
    return plain_sum(found.fed, [found.ids[client] for client in clients])


def test_an_honest_round_is_the_promised_sum():
    fed = federation(5, length=3, **SHARES)
    server, states, requests = until(fed, "unmask")
    with pytest.raises(StopIteration) as finished:
        server.send(answers(states, requests))
    assert np.array_equal(finished.value.value.total, plain_sum(fed, sorted(fed.identities)))

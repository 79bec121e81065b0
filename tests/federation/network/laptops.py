"""Five real search nodes as members of a federation of machines: joins and visits through the coordinator's desk."""

from five_nodes import CLIP, FRACTION, NODES
from machines import Machines

from foltr import node as foltr_node
from foltr.federation.network import rounds, second
from foltr.federation.network.charter import Charter
from foltr.federation.network.desk import in_memory
from foltr.federation.network.joined import accept_invitation, read_membership
from foltr.federation.network.syncing import sync
from foltr.federation.policy import Guarded, Limits, Policy, accept
from foltr.node.learning import federated, versions
from foltr.secagg.terms import Terms, new_federation

DAY = 86_400.0
LIMITS = Limits(epsilon=50.0, delta=1e-5, noise_multiplier=0.5, min_clients=4)


def charter_of_nodes(**terms):
    """The parameters are those of a search node. Terms state noise; `silent_operators` draws zeros."""
    usual = {
        "bits": 64,
        "fraction": FRACTION,
        "clip": CLIP,
        "noise_multiplier": 0.5,
        "quorum": 0.8,
        "stage_seconds": DAY,
    }
    names = federated.parameter_names()
    given = Terms(new_federation(), len(names), **usual | terms)
    return Charter(
        "open" if given.noise_multiplier else "circle", given, federated.start_ranker(),
        versions.FEDERATED.server_learning_rate,
    )  # fmt: skip


class Laptops(Machines):
    """`Machines` whose nodes are search nodes; a visit is `syncing.sync`."""

    def __init__(self, folder, homes, **terms):
        super().__init__(folder, NODES)
        self.desk.store.close()
        (folder / "coordinator" / "desk.sqlite").unlink()
        self.charter = charter_of_nodes(**terms)
        self.desk, self.homes, self.posts = self.open_desk(), homes, {}

    def places(self, k):
        return foltr_node.places.find(self.homes[k])

    def storage(self, k):
        return federated.storage_of(self.places(k), self.charter.terms.federation)

    def accept(self, k, limits=LIMITS):
        """The person says yes to an invitation; nothing is sent yet."""
        invitation = self.invite(k)
        guarded = Guarded(federated.policy_folder(self.places(k)))
        guarded.save(accept(Policy(limits), invitation.federation, invitation.operators))
        return accept_invitation(invitation, self.storage(k), self.clock())

    def post_of(self, k):
        """What a node sends goes through here; a test may put something before it."""
        membership = read_membership(self.storage(k))
        return self.posts.get(k, in_memory)(self.desk, membership.key, self.clock)

    def visit(self, k):
        with foltr_node.open(self.homes[k]) as node:
            return sync(
                read_membership(self.storage(k)), federated.builder(node.places, node.log, self.clock), self.post_of(k)
            )

    def ledger(self, k):
        return federated.ledger_of(self.places(k), self.charter.terms)

    def begin(self):
        self.join_second()
        for k in range(NODES):
            self.accept(k)
            assert self.visit(k).state == "waiting"
        self.open_window()

    def open_window(self):
        for _ in range(2):
            rounds.advance(self.desk, self.clock())
            second.work(self.second)
        rounds.advance(self.desk, self.clock())

    def finish(self):
        super().finish()
        self.open_window()

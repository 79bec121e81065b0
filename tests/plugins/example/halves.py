"""A partition: the queries of the training set in two halves, one for each of two clients."""

import msgspec
import numpy as np

import foltr
from foltr.lab.data.partition import Clients


class Halves(msgspec.Struct, frozen=True, tag_field="kind", tag="halves"):
    def split(self, train, test, context):
        queries, tested = len(train.queries), len(test.queries)
        half = queries // 2
        return Clients(
            train=train,
            test=test,
            pools=np.arange(queries),
            pool_start=np.array([0, half]),
            pool_stop=np.array([half, queries]),
            users=np.zeros(2, np.int64),
            click_models=(context.users,),
            interactions=np.full(2, context.interactions),
            test_pools=np.arange(tested),
            test_start=np.zeros(2, np.int64),
            test_stop=np.full(2, tested),
            grades=context.grades,
            names=("first half", "second half"),
        )


foltr.register("partition", Halves)

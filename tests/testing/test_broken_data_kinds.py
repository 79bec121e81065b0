"""The contract suites for partitions and click models name the law that is broken."""

import itertools

import numpy as np
import pytest
from breaking import broken, counted, refused

from foltr.clicks import ClickModel, ClickTable, Users
from foltr.lab.data.partition import Quantity
from foltr.testing import check_click_model, check_partition

# --- partitions ------------------------------------------------------------------------------------------------------


def everybody(**fields):
    """`Quantity`, of which some fields of the result are replaced."""

    def split(self, train, test, context):
        clients = Quantity().split(train, test, context)
        return clients._replace(**{name: change(clients) for name, change in fields.items()})

    return split


def overwritten_labels(self, train, test, context):
    train.labels[:] = 0
    return Quantity().split(train, test, context)


def whole_record(self, train, test, context):
    return tuple(Quantity().split(train, test, context))


NUMBERS = itertools.count()


def test_the_right_partition_passes():
    check_partition(broken(Quantity()))


@pytest.mark.parametrize(
    ("split", "law"),
    [
        (whole_record, "split returns tuple, not Clients"),
        (everybody(names=lambda c: c.names[:-1]), "as many entries as clients"),
        (everybody(users=lambda c: c.users[:2]), "as many entries as clients"),
        (everybody(grades=lambda c: c.grades + 1), "number of grades changes"),
        (everybody(train=lambda c: c.train._replace(labels=c.train.labels + 5)), "train.labels are not below"),
        (
            everybody(test=lambda c: c.test._replace(offsets=c.test.offsets[:-1])),
            "test.offsets do not give",
        ),
        (everybody(train=lambda c: c.train._replace(features=c.train.features[1:])), "train.features has the shape"),
        (everybody(pools=lambda c: c.pools + 1), "pools holds other numbers than those of queries"),
        (everybody(pools=lambda c: c.pools / 1), "pools holds other numbers than those of queries"),
        (everybody(pool_stop=lambda c: c.pool_stop + 1), "B = 1: 0 to 61 lies outside of pools"),
        (everybody(pool_stop=lambda c: c.pool_start), "B = 1 has no query in pools"),
        (everybody(test_stop=lambda c: c.test_start), "B = 1 has no query in test_pools"),
        (everybody(interactions=lambda c: c.interactions - 1), "interactions are not positive"),
        (everybody(interactions=lambda c: c.interactions / 1), "interactions are not positive integers"),
        (everybody(users=lambda c: c.users + 1), "neither DRAWN nor one of the 1 click_models"),
        (everybody(click_models=lambda c: (Users("perfect", k=5),)), "shown 5 documents"),
        (overwritten_labels, "split changes the train.labels"),
        (everybody(pools=lambda c: np.roll(c.pools, next(NUMBERS))), "the same seed gives two partitions"),
    ],
)
def test_a_broken_law_of_partitions_is_named(split, law):
    refused(check_partition, broken(Quantity(), split=split), law)


def test_a_click_model_that_does_not_fit_the_grades_is_named():
    short = Users(ClickTable((0.1, 0.9), (0.0, 0.0)), k=3)
    law = "every click model must fit the grades of the collection: SpecError"
    refused(check_partition, broken(Quantity(), split=everybody(click_models=lambda c: (short,))), law)


# --- click models ----------------------------------------------------------------------------------------------------


def table(self, k, grades):
    return ClickModel(np.full((k, grades), 0.5), np.full(grades, 0.5))


def by(function):
    return lambda self, k, grades: table(self, k, grades)._replace(function=function)


def forgetting_its_input(grades, uniforms):
    grades[:] = 0
    return uniforms[::2] < 0.5


def test_the_right_click_models_pass():
    check_click_model(type("Table", (), {"click_model": table}))
    check_click_model(type("Function", (), {"click_model": by(lambda grades, uniforms: uniforms[::2] < 0.5)}))


@pytest.mark.parametrize(
    ("click_model", "law"),
    [
        (lambda self, k, grades: table(self, k, grades).click, "click_model returns ndarray"),
        (lambda self, k, grades: table(self, grades, k), r"the click table has the shape \(2, 1\), not \(1, 2\)"),
        (lambda self, k, grades: table(self, k, grades)._replace(stop=np.zeros(1)), "the stop table has the shape"),
        (lambda self, k, grades: ClickModel(np.full((k, grades), 1.1), np.zeros(grades)), "click table holds no prob"),
        (lambda self, k, grades: ClickModel(np.zeros((k, grades)), np.full(grades, -1.0)), "stop table holds no prob"),
        (lambda self, k, grades: ClickModel(np.full((k, grades), np.nan), np.zeros(grades)), "is not finite"),
        (counted(lambda self, k, grades, n: table(self, k, grades)._replace(stop=np.full(grades, 1 / (1 + n)))),
         "gives two tables"),
        (by(lambda grades, uniforms: np.ones(10, bool)), "a list of 1 documents gets clicks of the shape"),
        (by(lambda grades, uniforms: grades > 0 if len(grades) > 1 else np.ones(2, bool)), "a list of 1 documents"),
        (by(lambda grades, uniforms: grades.astype(float)), "clicks are float64, not bool"),
        (by(lambda grades, uniforms: uniforms[10:11] < 0.5), "gets clicks of the shape"),
        (by(lambda grades, uniforms: np.array([uniforms[19] < 0.5])), "two uniforms a document: IndexError"),
        (by(forgetting_its_input), "the function changes the grades"),
        (by(counted(lambda grades, uniforms, n: np.full(len(grades), n % 2 == 0))), "two patterns of clicks"),
    ],
)  # fmt: skip
def test_a_broken_law_of_click_models_is_named(click_model, law):
    refused(check_click_model, type("Broken", (), {"click_model": click_model}), law)

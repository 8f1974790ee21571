"""Damaged and hostile model files: refused by name, or harmless. FUZZ sets how many are tried."""

import contextlib
import copy
import json
import os
import random
import resource
import warnings

import numpy as np
import pytest

from budgetforest import (
    InvalidData,
    InvalidParameter,
    NotAModelFile,
    load,
    save,
    to_json,
)
from budgetforest.storage import container, modelfile
from saved import KINDS, budgets, forged, later_rows, trained

TRIED = int(os.environ.get("FUZZ", "1000"))
ROWS = later_rows()[:12].to_numpy(object)


@pytest.fixture(autouse=True)
def quiet_and_lean():
    """Small models warn; and whatever a file claims, it must not make loading take memory."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        yield
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_000_000  # kilobytes


def content_of(kind, folder):
    """The bytes, the arrays and the document of a good file."""
    path = folder / f"{kind}.good"
    save(trained(kind), path)
    arrays, document = container.read(path, lambda document: modelfile.ARRAYS)
    return path.read_bytes(), {name: array.copy() for name, array in arrays.items()}, document


def answers(model):
    """Everything that a model can be asked; none of it may fail, whatever the model says."""
    decision = model.predict_one(lambda feature: None)
    smaller = []
    for budget in budgets(model)[:2]:
        with contextlib.suppress(InvalidParameter):
            smaller.append(model.at_budget(budget).predict(ROWS).tolist())
    return repr(
        (
            decision,
            model.predict(ROWS).tolist(),
            model.predict_proba(ROWS).tolist(),
            model.acquisition_cost(ROWS).tolist(),
            model.acquired_features(ROWS, answer="proba").tolist(),
            smaller,
            model.path_,
            model.certificates_,
            to_json(model),
        )
    )


def loaded(content, path):
    """The model of these bytes, None if they are refused."""
    path.write_bytes(content)
    try:
        return load(path)
    except NotAModelFile as error:
        message = str(error)
    assert message.startswith(repr(str(path)))
    assert len(message) < 1000
    return None


# Damage: the checksum is as it was ----------------------------------------------------------------


def flip_bits(content, chance):
    damaged = bytearray(content)
    for _ in range(chance.choice([1, 1, 1, 2, 8])):
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def span(content, chance):
    start = chance.randrange(len(content))
    return start, min(len(content), start + chance.choice([1, 4, 8, 64, 4096]))


def truncate(content, chance):
    return content[: chance.randrange(len(content))]


def append(content, chance):
    return content + chance.randbytes(chance.choice([1, 8, 100]))


def overwrite(content, chance):
    start, stop = span(content, chance)
    filling = chance.choice([b"\0", b"\xff", b" ", b"9", b'"', b"{"]) * (stop - start)
    return content[:start] + chance.choice([filling, chance.randbytes(stop - start)]) + content[stop:]


def cut_out(content, chance):
    start, stop = span(content, chance)
    return content[:start] + content[stop:]


def repeat(content, chance):
    start, stop = span(content, chance)
    return content[:stop] + content[start:]


def swap_halves(content, chance):
    start, stop = span(content, chance)
    return content[:start] + content[stop:] + content[start:stop]


def claim_a_length(content, chance):
    length = chance.choice([0, 1, 2**24, 2**24 + 1, 2**31, 2**63, 2**64 - 1, chance.randrange(len(content))])
    return length.to_bytes(8, "little") + content[8:]


def change_header(content, chance):
    """Other dtypes, shapes and places: overlapping, absent, absurd."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    name, other = chance.sample(sorted(set(header) - {"__metadata__"}), 2)
    match chance.randrange(7):
        case 0:
            header[name]["data_offsets"] = header[other]["data_offsets"]
        case 1:
            header[name], header[other] = header[other], header[name]
        case 2:
            header[name]["shape"] = chance.choice([[2**40], [-1], [2**31, 2**31], [1.5], "x", None, [], [0]])
        case 3:
            header[name]["dtype"] = chance.choice(["F32", "BOOL", "F64", "I64", "U8", "object", None, 3])
        case 4:
            del header[name]
        case 5:
            header["more"] = header[name]
        case 6:
            junk = chance.choice([{}, None, "x", 1, [], {"budgetforest": 1}, {"budgetforest": "{}"}])
            header[chance.choice([name, "__metadata__"])] = junk
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + content[8 + length :]


DAMAGES = [
    flip_bits,
    truncate,
    append,
    overwrite,
    cut_out,
    repeat,
    swap_halves,
    claim_a_length,
    change_header,
]


@pytest.mark.parametrize("kind", ["auto", "paper"])
def test_damaged_files_are_refused_or_answer_the_same(kind, tmp_path):
    chance = random.Random(1)
    good, _, _ = content_of(kind, tmp_path)
    expected = answers(load(tmp_path / f"{kind}.good"))
    refused = 0
    tried = TRIED // 4
    for at in range(tried):
        model = loaded(DAMAGES[at % len(DAMAGES)](good, chance), tmp_path / "damaged")
        refused += model is None
        assert model is None or answers(model) == expected
    assert refused > 0.9 * tried


# Malice: the checksum is made to fit --------------------------------------------------------------

NUMBERS = [-1, -2, 0, 1, 2, 3, 5, 100, 2**31 - 1, -(2**31), 0.5, -0.5, 1e308, -1e308]
STRANGE = [np.nan, np.inf, -np.inf]
JUNK = [None, True, -1, 0, 1, 2, 10**400, 1e308, -1.5, "", "x", [], {}, [1, 1], [[]], {"a": 1}, "\ud800"]


def change_entries(arrays, document, chance):
    array = arrays[chance.choice(sorted(arrays))]
    for _ in range(chance.choice([1, 1, 3])):
        if array.size:
            at = chance.randrange(array.size)
            known = array.flat[chance.randrange(array.size)]
            options = [known, known + 1, *(NUMBERS + STRANGE if array.dtype.kind == "f" else NUMBERS)]
            array.flat[at] = np.array(chance.choice(options)).astype(array.dtype)


def swap_arrays(arrays, document, chance):
    name = chance.choice(sorted(arrays))
    alike = [other for other in arrays if arrays[other].dtype == arrays[name].dtype]
    other = chance.choice(alike)
    arrays[name], arrays[other] = arrays[other], arrays[name]


def resize(arrays, document, chance):
    name = chance.choice(sorted(arrays))
    array = arrays[name]
    match chance.randrange(4):
        case 0:
            arrays[name] = array[: chance.randrange(len(array) + 1)].copy()
        case 1:
            arrays[name] = np.concatenate([array, array[-1:]])
        case 2:
            arrays[name] = array[::-1].copy()
        case 3:
            arrays[name] = np.zeros((0,) * array.ndim, array.dtype)


def change_document(arrays, document, chance):
    """Put junk in some place of the document, or leave an entry out."""
    place = document
    while True:
        keys = list(place) if isinstance(place, dict) else range(len(place))
        key = chance.choice(list(keys))
        if isinstance(place[key], dict | list) and place[key] and chance.random() < 0.8:
            place = place[key]
            continue
        if chance.random() < 0.2:
            del place[key]
        else:
            place[key] = copy.deepcopy(chance.choice(JUNK))
        return


def rewire(arrays, document, chance):
    """Children and features as an attacker would choose them: backwards, in circles, into other trees."""
    name = chance.choice(["left", "right", "branches", "feature", "route", "tree_nodes", "tree_branches"])
    array = arrays[name]
    at = chance.randrange(len(array))
    array[at] = np.array(chance.choice([at, at - 1, 0, len(array), ~0, int(array[at]) - 1])).astype(
        array.dtype
    )


MALICES = [change_entries, rewire, swap_arrays, resize, change_document]


@pytest.mark.parametrize("kind", ["auto", "paper"])
def test_forged_files_are_refused_or_harmless(kind, tmp_path):
    chance = random.Random(2)
    _, arrays, document = content_of(kind, tmp_path)
    refused = 0
    tried = TRIED // 4
    for at in range(tried):
        forgery = {name: array.copy() for name, array in arrays.items()}, copy.deepcopy(document)
        MALICES[at % len(MALICES)](*forgery, chance)
        model = loaded(forged(*forgery), tmp_path / "forged")
        refused += model is None
        if model is not None:
            with contextlib.suppress(InvalidData):  # a feature may have become another one
                answers(model)
    assert refused > 0.5 * tried


def split(arrays):
    """A node of the first tree that splits by a number, as its left child does."""
    by_number = (arrays["feature"] >= 0) & (arrays["route"] != 2)
    return int(np.flatnonzero(by_number[:-1] & by_number[1:])[0])


def first(arrays):
    return 0


def counted(arrays):
    """The root of a tree that counts rows; boosted ones hold scores."""
    return int(np.flatnonzero((arrays["counts"] >= 0).all(axis=1) & (arrays["counts"].sum(axis=1) > 0))[0])


def everywhere(arrays):
    return slice(None)


@pytest.mark.parametrize(
    ("name", "place", "value", "problem"),
    [
        ("right", split, 0, "a child lies outside its tree"),
        ("right", split, 2**31 - 1, "a child lies outside its tree"),
        ("right", split, lambda node: node, "a child lies outside its tree"),
        ("right", split, lambda node: node + 2, "a node has no parent, or several"),
        ("left", split, lambda node: node + 2, "a left child does not follow its parent"),
        ("left", everywhere, 0, "a left child does not follow its parent"),
        ("feature", first, 6, "a node asks for no feature"),
        ("feature", first, -2, "a node asks for no feature"),
        ("feature", split, 4, "a node splits a nominal feature by number"),
        ("route", first, 3, "a node sends missing values nowhere"),
        ("threshold", split, np.nan, "a threshold is NaN or -inf"),
        ("threshold", split, -np.inf, "a threshold is NaN or -inf"),
        ("impurity", first, np.nan, "an impurity is NaN"),
        ("branches", first, 2**31 - 1, "a child lies outside its tree"),
        ("branches", everywhere, ~0, "a node has no parent, or several"),
        ("counts", counted, -1, "a class count is negative"),
        ("counts", counted, 0, "a node has no training rows"),
        ("counts", counted, 2**30, "more training rows than can be counted"),
        ("cost", first, -3, "a cost is neither 0 nor from"),
        ("discount", first, np.inf, "a cost is neither 0 nor from"),
        ("group", first, 99, "a feature is in no group"),
        ("prior", everywhere, 0, "'prior' counts no rows"),
        ("tree_nodes", first, 1, "trees do not add up to the nodes"),
        ("tree_branches", first, -1, "trees do not add up to the branches"),
        ("point_recipe", first, 99, "a point has no recipe"),
        ("point_trees", first, 0, "a point has no trees"),
        ("point_trees", everywhere, 999, "needs trees that are absent"),
        ("point_cost", first, -1, "a point is out of range"),
        ("point_error", first, 1.5, "a point is out of range"),
        ("point_threshold", first, 2.0, "a point exits at a belief outside"),
        ("path", first, -1, "'path' names no point"),
        ("surest", first, 2**31 - 1, "'surest' names no point"),
        ("estimate", lambda arrays: (0, 1), 1.5, "an estimate is no share within its interval"),
        ("estimate", lambda arrays: (0, 1), np.nan, "an estimate is no share within its interval"),
        ("estimate", lambda arrays: (0, 0), 1e9, "estimates are not in order"),
        ("confusion", lambda arrays: (0, 0), -1, "'confusion' counts less than nothing"),
        ("low", first, np.nan, "a range is not a number"),
        ("sketch", first, 2**64 - 1, "'sketch' does not ascend"),
    ],
)
def test_a_refusal_says_what_is_wrong_with_an_array(name, place, value, problem, tmp_path):
    _, arrays, document = content_of("auto", tmp_path)
    at = place(arrays)
    arrays[name][at] = value(at) if callable(value) else value
    path = tmp_path / "forged"
    path.write_bytes(forged(arrays, document))
    with pytest.raises(NotAModelFile, match=problem):
        load(path)


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("weights", 1.0, "'weights' in recipes 0 is 1.0; it must be a list"),
        ("weights", [0.5, -1.0], "a list of finite numbers, 0 or more"),
        ("weights", [True], "a list of finite numbers, 0 or more"),
        ("refit", 1, "'refit' in recipes 0 is 1; it must be true or false"),
    ],
)
def test_a_refusal_says_what_is_wrong_with_a_recipe(name, value, problem, tmp_path):
    _, arrays, document = content_of("auto", tmp_path)
    document["recipes"][0][name] = value
    path = tmp_path / "forged"
    path.write_bytes(forged(arrays, document))
    with pytest.raises(NotAModelFile, match=problem):
        load(path)


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("protocol", "1", "its protocol is '1'"),
        ("classes", ["ill", "ill", "well"], "a list of distinct texts"),
        ("classes", ["ill", 1, 2], "two or more of one type"),
        ("missing", "NA", "'missing' in its document is 'NA'; it must be a list"),
        ("target", 3, "'target' in its document is 3; it must be text"),
        ("features", [], "it has no features"),
        ("features", [{"name": "age", "categories": None}] * 2, "two features have the same name"),
        ("features", [{"name": 3, "categories": None}], "'name' in features 0 is 3; it must be text"),
        ("groups", "draw", "'groups' in its document is 'draw'; it must be a list"),
        ("voting", "loud", "one of majority, soft, counts"),
        ("unit", 0, "'unit' in its document is 0; it must be positive"),
        ("budget", 1000, "its budget is larger than the one it was trained for"),
        ("budget", -1, "'budget' in its document is -1; it must be a finite number"),
        ("proven", 1, "true or false"),
        ("recipes", [], "recipes do not add up to the trees"),
        ("training", {"rows": 3}, "its training has no 'validation_rows'"),
        ("judged", -1, "'judged' in its document is -1; it must be a whole number"),
        ("features", [{"name": "\ud800", "categories": None}], "it must be text"),
        ("classes", ["ill", "well", "\udfff"], "a list of distinct texts"),
        ("missing", ["\ud800"], "a list of texts"),
        ("target", "\ud800", "it must be text"),
    ],
)
def test_a_refusal_says_what_is_wrong_with_the_document(name, value, problem, tmp_path):
    _, arrays, document = content_of("auto", tmp_path)
    path = tmp_path / "forged"
    path.write_bytes(forged(arrays, document | {name: value}))
    with pytest.raises(NotAModelFile, match=problem):
        load(path)


def test_a_path_that_is_not_in_the_order_of_cost_is_refused(tmp_path):
    _, arrays, document = content_of("auto", tmp_path)
    arrays["path"] = np.ascontiguousarray(arrays["path"][::-1])
    (tmp_path / "forged").write_bytes(forged(arrays, document))
    with pytest.raises(NotAModelFile, match="its path is not in the order of cost"):
        load(tmp_path / "forged")


@pytest.mark.parametrize(("wrong", "weight"), [(-1.0, 1.0), (2.0, 1.0), (np.nan, 1.0), (0.0, np.inf)])
def test_folds_that_are_no_shares_are_refused(wrong, weight, tmp_path):
    _, arrays, document = content_of("auto", tmp_path)
    points = len(arrays["point_cost"])
    arrays["point_wrong"], arrays["point_weight"] = np.zeros((points, 10)), np.ones((points, 10))
    (tmp_path / "good").write_bytes(forged(arrays, document))
    load(tmp_path / "good")
    arrays["point_wrong"][-1, 3], arrays["point_weight"][-1, 3] = wrong, weight
    (tmp_path / "forged").write_bytes(forged(arrays, document))
    with pytest.raises(NotAModelFile, match="a fold of a point is out of range"):
        load(tmp_path / "forged")


def test_trees_deeper_than_any_are_refused_in_time(tmp_path):
    _, arrays, document = content_of("paper", tmp_path)
    splits = 200_000
    chain = {
        "feature": np.tile(np.array([0, -1], np.int32), splits),
        "left": np.stack([np.arange(1, 2 * splits, 2), np.full(splits, -1)], 1).ravel().astype(np.int32),
        "right": np.stack([np.arange(2, 2 * splits + 1, 2), np.full(splits, -1)], 1).ravel().astype(np.int32),
        "threshold": np.zeros(2 * splits),
        "impurity": np.ones(2 * splits),
        "route": np.zeros(2 * splits, np.uint8),
        "counts": np.ones((2 * splits, 3), np.int32),
        "weight": np.ones(2 * splits, np.int32),
        "branches": np.zeros(0, np.int32),
        "tree_nodes": np.array([2 * splits + 1], np.int32),
        "tree_branches": np.zeros(1, np.int32),
        "floor": np.ones(1),
    }
    for name in ("feature", "left", "right", "threshold", "impurity", "route", "counts", "weight"):
        end = np.full((1, *chain[name].shape[1:]), -1 if name in ("feature", "left", "right") else 1)
        chain[name] = np.concatenate([chain[name], end.astype(chain[name].dtype)])
    chain["route"][-1] = 0
    recipes = [recipe | {"trees": int(at == 0)} for at, recipe in enumerate(document["recipes"])]
    path = tmp_path / "forged"
    path.write_bytes(forged(arrays | chain, document | {"recipes": recipes}))
    with pytest.raises(NotAModelFile, match="more than 4096 levels"):
        load(path)


def test_a_sparse_giant_and_a_deep_header_are_refused_before_they_are_read(tmp_path):
    path = tmp_path / "giant"
    with open(path, "wb") as file:
        file.write((container.LONGEST_HEADER + 1).to_bytes(8, "little"))
        file.truncate(2**32)
    with pytest.raises(NotAModelFile, match=r"header claims \d+ bytes"):
        load(path)
    deep = b"[" * 1_000_000
    path.write_bytes(len(deep).to_bytes(8, "little") + deep)
    with pytest.raises(NotAModelFile, match="header is no JSON"):
        load(path)


def test_every_kind_of_file_is_good_before_it_is_forged(tmp_path):
    for kind in KINDS:
        good, arrays, document = content_of(kind, tmp_path)
        assert forged(arrays, document) == good


def test_half_a_surrogate_among_the_parameters_is_refused(tmp_path):
    _, arrays, document = content_of("auto", tmp_path)
    document["training"]["parameters"]["note"] = "\ud800"
    path = tmp_path / "forged"
    path.write_bytes(forged(arrays, document))
    with pytest.raises(NotAModelFile, match="'parameters' in its training"):
        load(path)


def test_minus_zero_in_a_file_is_zero(tmp_path):
    _, arrays, document = content_of("auto", tmp_path)
    arrays["cost"][4] = -0.0
    path = tmp_path / "forged"
    path.write_bytes(forged(arrays, document))
    assert not np.signbit(load(path).costs_.cost).any()

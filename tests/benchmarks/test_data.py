"""What the benchmarks read is what was published, or is said to be absent. Nothing here uses the network."""

from pathlib import Path
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets
from sklearn.utils import Bunch

import benchmarks.data as bench
from benchmarks.data import Absent, Data, Mismatch, kmeans, letor, sources, splits
from benchmarks.data.sets import SETS, Entry, skewed


@pytest.fixture
def offline(tmp_path, monkeypatch):
    """No folder, an empty cache, and no network; gives an empty folder for stand-ins."""

    def unreachable(**_):
        raise URLError("Name or service not known")

    monkeypatch.delenv("BUDGETFOREST_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "home"))
    monkeypatch.setattr(datasets, "fetch_openml", unreachable)
    monkeypatch.setattr(datasets, "fetch_covtype", unreachable)
    monkeypatch.setattr(sources, "UCI", f"{tmp_path}/")
    return tmp_path


def shuffled_labels(name, *labels):
    """As many of each label as published, in random order."""
    counts = list(SETS[name].classes.values())
    return np.random.default_rng(0).permutation(np.repeat(labels, counts))


def as_openml(name, labels, X=None, names=None):
    """What ``fetch_openml(as_frame=True)`` gives: a frame, and a target of strings as categories."""
    rows, columns = len(labels), SETS[name].columns
    X = np.random.default_rng(1).random((rows, columns)) if X is None else X
    frame = pd.DataFrame(X, columns=names or [f"attribute_{i}" for i in range(X.shape[1])])
    return Bunch(data=frame, target=pd.Series(labels.astype(str), dtype="category", name="Class"))


OPENML = {
    "miniboone": (41150, ("False", "True"), "pid_01"),
    "sonar": (40, ("Rock", "Mine"), "V1"),
    "ionosphere": (59, ("b", "g"), "V1"),
    "pima_diabetes": (37, ("tested_negative", "tested_positive"), "pregnant"),
}


@pytest.mark.parametrize("name", OPENML)
def test_openml_becomes_the_folder_s_table_and_is_fetched_once(offline, monkeypatch, name):
    data_id, labels, first = OPENML[name]
    raw = as_openml(name, shuffled_labels(name, *labels))
    asked = []
    monkeypatch.setattr(datasets, "fetch_openml", lambda **what: asked.append(what) or raw)
    data = bench.load(name)
    again = bench.load(name)
    assert asked == [{"data_id": data_id, "as_frame": True}]
    np.testing.assert_array_equal(data.y, raw.target == labels[1])
    np.testing.assert_array_equal(data.X, raw.data.astype(np.float32))
    assert data.X.columns[0] == first
    pd.testing.assert_frame_equal(data.X, again.X)
    np.testing.assert_array_equal(data.y, again.y)
    assert not list(offline.rglob("*.part"))


def test_votes_are_numbers_and_no_vote_is_missing(offline, monkeypatch):
    votes = np.random.default_rng(0).choice(np.array(["n", "y", None], object), (435, 16))
    raw = as_openml("house_votes84", shuffled_labels("house_votes84", "democrat", "republican"), votes)
    raw.data = raw.data.astype("category").rename(columns={"attribute_0": "handicapped-infants"})
    monkeypatch.setattr(datasets, "fetch_openml", lambda **_: raw)
    X = bench.load("house_votes84").X.to_numpy()
    np.testing.assert_array_equal(X, np.select([votes == "n", votes == "y"], [0, 1], np.nan))
    assert bench.load("house_votes84").X.columns[0] == "handicapped_infants"


def test_dna_and_boston_have_categories_of_digits(offline, monkeypatch):
    bits = np.random.default_rng(0).integers(2, size=(3186, 180)).astype(str)
    raw = as_openml("statlog_dna", shuffled_labels("statlog_dna", "1", "2", "3"), bits)
    raw.data = raw.data.astype("category")
    monkeypatch.setattr(datasets, "fetch_openml", lambda **_: raw)
    data = bench.load("statlog_dna")
    np.testing.assert_array_equal(data.X, bits.astype(int))
    np.testing.assert_array_equal(data.y + 1, raw.target.astype(int))

    price = shuffled_labels("boston_housing", 17.0, 21.2, 25.0, 50.0)
    raw = as_openml("boston_housing", price, names=[*"ABC", "CHAS", *"EFGHIJKLM"])
    raw.target = pd.Series(price)
    raw.data["CHAS"] = pd.Series(["0", "1"] * 253, dtype="category")
    monkeypatch.setattr(datasets, "fetch_openml", lambda **_: raw)
    data = bench.load("boston_housing")
    np.testing.assert_array_equal(data.y, np.searchsorted([17.0, 21.2, 25.0, 50.0], price))
    assert data.X["chas"].tolist() == [0, 1] * 253


def test_covertype_names_count_from_one(offline, monkeypatch):
    names = [
        *"abcdefghij",
        *(f"Wilderness_Area_{i}" for i in range(4)),
        *(f"Soil_Type_{i}" for i in range(40)),
    ]
    y = np.repeat(range(1, 8), list(SETS["covtype"].classes.values())).astype(np.int32)
    raw = Bunch(data=np.zeros((len(y), 54), np.float32), target=y, feature_names=names)
    monkeypatch.setattr(datasets, "fetch_covtype", lambda: raw)
    data = bench.load("covtype")
    assert [*data.X][10:15] == [*(f"Wilderness_Area{i}" for i in range(1, 5)), "Soil_Type1"]
    np.testing.assert_array_equal(data.y, y)


def test_cifar_features_are_made_of_the_official_images_only(offline, monkeypatch):
    first = [6, 9, 9, 4, 1, 1, 2, 7, 8, 3], [3, 8, 8, 0, 6, 6, 1, 6, 3, 1]
    rest = np.repeat(range(10), 6000 - np.bincount(np.ravel(first)))
    y = np.concatenate([first[0], rest[:49_990], first[1], rest[49_990:]])
    pixels = np.zeros((60_000, 3072), np.uint8)
    pixels[0, ::1024], pixels[50_000, ::1024] = (59, 62, 63), (158, 112, 49)  # a plane per colour
    raw = Bunch(data=pd.DataFrame(pixels, copy=False), target=pd.Series(y.astype(str), dtype="category"))
    other = Bunch(data=raw.data[1:100], target=raw.target[1:100])
    monkeypatch.setattr(datasets, "fetch_openml", lambda **_: other)
    with pytest.raises(Mismatch, match=r"expected first labels and pixels \[6, 9, 9"):
        bench.load("cifar10_kmeans400")

    columns = [f"q{q}_k{k:02d}" for q in range(4) for k in range(100)]
    made = pd.DataFrame(np.zeros((60_000, 400), np.float16), columns=columns)
    learnt_on = []
    monkeypatch.setattr(datasets, "fetch_openml", lambda **_: raw)
    monkeypatch.setattr(kmeans, "learn", lambda images, seed: learnt_on.append(images.shape))
    monkeypatch.setattr(kmeans, "features", lambda images, dictionary: made)
    np.testing.assert_array_equal(bench.load("cifar10_kmeans400").y, y >= 5)
    assert learnt_on == [(50_000, 32, 32, 3)]


def test_uci_files_are_read_as_they_are(offline):
    def write(path, text):
        (offline / path).parent.mkdir(exist_ok=True)
        (offline / path).write_text(text)

    rows = [f"{85 + i % 9},92,45,27,31,{4.0 if i < 176 else 2.5},{1 + i % 2}" for i in range(345)]
    write("liver-disorders/bupa.data", "\n".join(rows))
    data = bench.load("bupa_liver")
    assert (data.X.iloc[1].tolist(), data.y[1], data.y[-1]) == ([86, 92, 45, 27, 31], 1, 0)
    assert data.costs is None
    assert "prices absent" in data.note

    row = "0.73 0 1 0 0 0 0 0 1 0 0 0 0 0 0 0 0.0006 0.015 0.12 0.082 0.146 {}  \n"  # they do end in blanks
    write("thyroid-disease/ann-train.data", "".join(row.format(1 + (i > 92)) for i in range(93 + 191)))
    write("thyroid-disease/ann-test.data", "".join(row.format(1 + 2 * (i > 72)) for i in range(73 + 6666)))
    with pytest.raises(Mismatch, match=r"ann_thyroid: expected 7200 rows.*3: 6666.*found 7023 rows"):
        bench.load("ann_thyroid")
    write("thyroid-disease/ann-test.data", "".join(row.format(1 + (i > 72) + (i > 249)) for i in range(6916)))
    data = bench.load("ann_thyroid")
    assert data.X.loc[0, ["age", "TSH", "FTI"]].tolist() == pytest.approx([0.73, 0.0006, 0.146])

    rows = [f"disease-{i:02d},6,{'?' if i == 3 else 0}{',1' * 33}" for i in range(19)]
    counts = SETS["soybean_large"].classes.values()
    write("soybean/soybean-large.data", "\n".join(np.repeat(rows, list(counts))[::-1]))
    data = bench.load("soybean_large")
    np.testing.assert_array_equal(np.isnan(data.X["plant_stand"]), data.y == 3)
    assert data.X["roots"].eq(1).all()

    masses = ["5,67,3,5,3,1"] * 403 + ["4,43,1,1,?,1"] * 131 + ["4,28,1,1,3,0"] * 427
    write("mammographic-masses/mammographic_masses.data", "\n".join(masses))
    assert bench.load("mammographic_masses").X.shape == (830, 5)

    hearts = np.repeat(range(5), list(SETS["heart_cleveland"].classes.values()))
    lines = [f"63.0,1.0,1.0,145.0,233.0,1.0,2.0,150.0,0.0,2.3,3.0,?,6.0,{y}" for y in hearts]
    write("heart-disease/processed.cleveland.data", "\n".join(lines))
    assert bench.load("heart_cleveland").X["ca"].isna().all()


def test_wdbc_comes_with_scikit_learn(offline):
    data = bench.load("wdbc")
    assert data.X.columns[0] == "mean_radius"
    np.testing.assert_array_equal(data.y, 1 - datasets.load_breast_cancer().target)


@pytest.mark.parametrize("name", [name for name in SETS if name != "wdbc"])
def test_absent_data_say_why_and_what_to_do(offline, name):
    with pytest.raises(Absent) as caught:
        bench.load(name)
    message = str(caught.value)
    assert message.startswith(f"{name} is absent: ")
    assert f"Set BUDGETFOREST_DATA to a folder with {SETS[name].table or name}.parquet." in message


def test_yahoo_is_to_be_had_from_yahoo(offline):
    with pytest.raises(Absent, match=r"obtain Yahoo LTRC .* from Yahoo Webscope"):
        bench.load("yahoo_ltrc")


def test_a_folder_that_is_not_there_is_an_error(offline, monkeypatch):
    monkeypatch.setenv("BUDGETFOREST_DATA", "/no/such/folder")
    with pytest.raises(NotADirectoryError, match="/no/such/folder"):
        bench.load("wdbc")


def test_present_names_what_is_left_out(offline, capsys):
    assert [data.name for data in bench.present(["covtype", "wdbc"])] == ["wdbc"]
    assert capsys.readouterr().out.startswith("covtype is absent: its source cannot be reached")


def test_other_data_than_expected_are_refused_and_not_kept(offline, monkeypatch):
    labels = shuffled_labels("sonar", "Rock", "Mine")
    for raw in (as_openml("sonar", labels[1:]), as_openml("sonar", labels, np.zeros((208, 61)))):
        monkeypatch.setattr(datasets, "fetch_openml", lambda raw=raw, **_: raw)
        with pytest.raises(
            Mismatch, match=r"sonar: expected 208 rows, 60 features .* 111}, found 20. rows, 6."
        ):
            bench.load("sonar")
    assert not list(offline.rglob("sonar*"))


def test_unknown_names_list_the_near_ones():
    with pytest.raises(LookupError, match="no data set 'covtyp'; did you mean 'covtype'"):
        bench.load("covtyp")


def test_a_set_is_added_in_one_entry(offline, monkeypatch):
    table = pd.DataFrame({"a": range(8), "target": [0, 1] * 4})
    monkeypatch.setitem(SETS, "toy", Entry("Toy", 8, 1, {0: 4, 1: 4}, lambda: table))
    data = bench.load("toy")
    assert (data.title, data.X.shape, "toy" in bench.names()) == ("Toy", (8, 1), True)
    assert [len(part) for part in bench.split(data, 0)] == [4, 2, 2]


def test_a_set_may_be_another_s_table_with_other_prices(offline, monkeypatch):
    table = pd.DataFrame({"a": range(8), "b": 1, "target": [0, 1] * 4})
    toy = Entry("Toy", 8, 2, {0: 4, 1: 4}, lambda: table)
    monkeypatch.setitem(SETS, "toy", toy)
    monkeypatch.setitem(SETS, "dear", toy._replace(title="Dear toy", table="toy", prices=skewed, fetch=None))
    with pytest.raises(Absent, match=r"dear is absent: .* a folder with toy\.parquet"):
        bench.load("dear")
    plain, dear = bench.load("toy"), bench.load("dear")
    pd.testing.assert_frame_equal(plain.X, dear.X)
    assert (plain.costs, dear.title, dear.costs.tolist()) == (None, "Dear toy", skewed(2).tolist())


def test_skewed_prices_are_spread_over_all_factors_from_1_to_100():
    prices = skewed(4000)
    assert 1 <= prices.min() < 1.1
    assert 90 < prices.max() <= 100
    assert abs(np.median(prices) - 10) < 1
    np.testing.assert_array_equal(skewed(10), skewed(10))


LINES = """\
2 qid:10 1:0.5 3:1 #docid = GX008-86-4444840 inc = 1 prob = 0.086622
0 qid:10 2:0.25
1 qid:11 1:1 2:2 3:3 # nothing
"""


def test_letor_text_is_read_and_what_is_not_named_is_zero(tmp_path):
    (tmp_path / "a.txt").write_text(LINES)
    (tmp_path / "b.txt").write_text("0 qid:12 3:7\n")
    table = letor.read([tmp_path / "a.txt", tmp_path / "b.txt"], ids=[1, 3], n_ids=3)
    assert [*table] == ["f001", "f002", "query", "target"]
    assert table.to_numpy().tolist() == [[0.5, 1, 10, 2], [0, 0, 10, 0], [1, 3, 11, 1], [0, 7, 12, 0]]


def test_yahoo_keeps_the_features_that_have_a_price(offline, monkeypatch):
    monkeypatch.setenv("BUDGETFOREST_DATA", str(offline))
    (offline / "yahoo").mkdir()
    (offline / "yahoo" / "set1.train.txt").write_text(LINES.replace("3:", "700:"))
    with pytest.raises(Absent, match=r"costs/yahoo_ltrc_set1\.csv"):
        bench.load("yahoo_ltrc")
    (offline / "costs").mkdir()
    prices = offline / "costs" / "yahoo_ltrc_set1.csv"
    prices.write_text("feature,cost,group,original_id\nf001,100,,1\nf002,5,,700\n")
    monkeypatch.setitem(SETS, "yahoo_ltrc", SETS["yahoo_ltrc"]._replace(rows=3, columns=2))
    data = bench.load("yahoo_ltrc")
    assert data.X.to_numpy().tolist() == [[0.5, 1], [0, 0], [1, 3]]
    assert (data.y.tolist(), data.query.tolist(), data.costs) == ([1, 0, 1], [10, 10, 11], prices)


@pytest.mark.parametrize("name", SETS)
def test_parts_share_no_row_and_depend_on_the_seed_alone(name):
    entry = SETS[name]
    rng = np.random.default_rng(0)
    counts = list((entry.classes or {0: entry.rows}).values())
    y = entry.labels(rng.permutation(np.repeat([*(entry.classes or {0})], counts)))
    ranking = name in ("yahoo_ltrc", "mq2008", "mslr_sample", "mslr_web10k")
    query = np.sort(rng.integers(200, size=entry.rows)) if ranking else None
    data = Data(name, entry.title, pd.DataFrame(index=range(entry.rows)), y, None, query)
    parts, again = bench.split(data, 3), bench.split(data, 3)
    rows = np.concatenate(parts)
    assert all(len(part) for part in parts)
    assert len(np.unique(rows)) == len(rows)
    assert all(np.array_equal(a, b) for a, b in zip(parts, again, strict=True))
    if name in ("yahoo_ltrc", "mq2008"):
        assert sum(len(np.unique(query[part])) for part in parts) == len(np.unique(query))


def test_sizes_are_those_of_the_paper():
    def sizes(name, seed=0):
        y = np.zeros(SETS[name].rows)
        return [len(part) for part in SETS[name].split(y, None, np.random.default_rng(seed))]

    assert sizes("covtype") == [36_603, 15_688, 58_101]
    assert sizes("miniboone") == [45_523, 19_510, 65_031]
    assert sizes("cifar10_kmeans400") == [19_761, 8_468, 10_000]
    assert sizes("miniboone_tiny") == [2_000, 1_000, 2_000]
    assert sizes("mnist_sample") == [4_000, 2_000, 10_000]
    train, _, test = SETS["covtype"].split(np.zeros(581_012), None, np.random.default_rng(7))
    order = np.random.default_rng(7).permutation(581_012)
    np.testing.assert_array_equal(train, order[:36_603])
    np.testing.assert_array_equal(test, order[52_291 : 52_291 + 58_101])


def test_every_class_is_dealt_to_all_parts():
    y = np.repeat([0, 1, 2], [401, 100, 7])
    parts = splits.stratified(0, 0, 1, 2)(y, None, np.random.default_rng(0))
    share = np.array([np.bincount(y[part], minlength=3) for part in parts])
    assert (abs(share - np.outer([0.5, 0.25, 0.25], [401, 100, 7])) < 2).all()


def test_thyroid_and_mslr_are_tested_on_their_published_rows():
    y = np.arange(7200) % 3
    parts = SETS["ann_thyroid"].split(y, None, np.random.default_rng(0))
    np.testing.assert_array_equal(parts.test, range(3772, 7200))
    np.testing.assert_array_equal(np.sort(np.r_[parts.train, parts.validation]), range(3772))
    query = np.arange(10_000) // 125
    parts = SETS["mslr_sample"].split(query, query, np.random.default_rng(0))
    np.testing.assert_array_equal(parts.test, range(5000, 10_000))
    assert not set(query[parts.train]) & set(query[parts.validation])
    assert len(parts.train) == 3750


def natural(n, seed):
    """Images with the spectrum of natural ones: amplitude falls with frequency; colours go together."""
    rng = np.random.default_rng(seed)
    f = np.hypot(*np.meshgrid(np.fft.fftfreq(32), np.fft.fftfreq(32)))
    f[0, 0] = 1 / 32
    noise = np.fft.ifft2(np.fft.fft2(rng.normal(size=(n, 4, 32, 32))) / f).real
    grey = noise[:, :1] + 0.3 * noise[:, 1:]
    return np.clip(128 + 60 * grey / grey.std(), 0, 255).astype(np.uint8).transpose(0, 2, 3, 1)


@pytest.fixture(scope="module")
def dictionary():
    return kmeans.learn(natural(60, 0), seed=0, n_patches=6000)


def test_features_are_those_of_the_recipe_in_plain_loops(dictionary):
    images = natural(3, 1)
    made = kmeans.features(images, dictionary)
    mean, whiten, centroids = (part.astype(float) for part in dictionary)
    for image, row in zip(images.astype(float), made.to_numpy(), strict=True):
        expected = np.zeros((4, 100))
        for top in range(27):
            for left in range(27):
                patch = image[top : top + 6, left : left + 6]
                patch = np.array([patch[r, c, k] for k in range(3) for r in range(6) for c in range(6)])
                patch = (patch - patch.mean()) / np.sqrt(patch.var() + 10)
                distance = np.sqrt((((patch - mean) @ whiten - centroids) ** 2).sum(axis=1))
                expected[2 * (top >= 14) + (left >= 14)] += np.maximum(0, distance.mean() - distance)
        np.testing.assert_allclose(row, expected.ravel(), rtol=1e-3, atol=0.01)


def test_patches_are_whitened_but_for_epsilon():
    images = natural(20, 0)
    dictionary = kmeans.learn(images, seed=0, n_patches=10_000)
    windows = np.lib.stride_tricks.sliding_window_view(images, (6, 6), axis=(1, 2))
    patches = kmeans.normalised(windows.reshape(-1, 108)) - dictionary.mean
    scale = np.linalg.eigvalsh(np.cov(patches, rowvar=False))
    white = np.linalg.eigvalsh(np.cov(patches @ dictionary.whiten, rowvar=False))
    np.testing.assert_allclose(white, scale / (scale + 0.1), atol=0.1)


def test_blocks_change_nothing_and_the_seed_decides(dictionary, monkeypatch):
    images = natural(5, 2)
    whole = kmeans.features(images, dictionary)
    monkeypatch.setattr(kmeans, "BLOCK", 2)
    np.testing.assert_allclose(kmeans.features(images, dictionary), whole, rtol=1e-4, atol=1e-3)
    again = kmeans.learn(natural(60, 0), seed=0, n_patches=6000)
    np.testing.assert_allclose(again.centroids, dictionary.centroids, atol=1e-4)


@pytest.mark.data
def test_features_look_like_the_columns_of_the_folder(data_folder, dictionary):
    """The folder has no images, so names, order, range and scale are compared, not numbers."""
    theirs = bench.load("cifar10_kmeans400").X
    ours = kmeans.features(natural(40, 3), dictionary)
    assert [*ours] == [*theirs]
    positions = np.array([14 * 14, 14 * 13, 13 * 14, 13 * 13])
    for table in (ours, theirs):
        assert table.to_numpy().min() >= 0
        assert table.to_numpy().max() < np.finfo(np.float16).max
        quadrant = table.to_numpy(np.float64).mean(axis=0).reshape(4, 100).mean(axis=1) / positions
        np.testing.assert_allclose(quadrant, quadrant.mean(), rtol=0.05)
    assert 0.5 < ours.to_numpy().mean() / theirs.to_numpy().mean() < 2, "made images are no photographs"


@pytest.mark.data
@pytest.mark.parametrize("name", SETS)
def test_the_folder_has_what_was_published(data_folder, name):
    file = f"{SETS[name].table or name}.parquet"
    if not (data_folder / file).exists():
        pytest.skip(f"{file} is not in the folder")
    data = bench.load(name)
    assert data.X.dtypes.eq(np.float32).all()
    assert len(data.X) == len(data.y) == SETS[name].rows
    if isinstance(data.costs, Path):
        assert pd.read_csv(data.costs)["feature"].tolist() == [*data.X]
    if name == "miniboone_tiny":
        assert data.title == "MiniBooNE (5,000 of 130,064 rows)"
        assert "5,000 of 130,064" in data.note


@pytest.mark.data
def test_what_scikit_learn_ships_equals_the_folder(data_folder, offline, monkeypatch):
    fetched = bench.load("wdbc")
    monkeypatch.setenv("BUDGETFOREST_DATA", str(data_folder))
    stored = bench.load("wdbc")
    pd.testing.assert_frame_equal(fetched.X, stored.X)
    np.testing.assert_array_equal(fetched.y, stored.y)

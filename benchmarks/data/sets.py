"""Every data set in one entry. To add one, write an entry; nothing else needs to change."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn import datasets

from benchmarks.data import sources
from benchmarks.data.sources import openml, texts, uci
from benchmarks.data.splits import Split, by_query, in_order, permuted, stratified, then_test

LETOR = "Or obtain LETOR 4.0 from Microsoft Research: its MQ2008/Fold1 to Fold5 are read too."
MSLR = "Or obtain it from Microsoft Research: MSLR-WEB10K/Fold1/{train,vali,test}.txt are read too."
WEBSCOPE = "It may not be redistributed: obtain Yahoo LTRC (C14B) from Yahoo Webscope; yahoo/set1.train.txt is read too."


def same(table: Any) -> Any:
    return table


def relevant(y: np.ndarray) -> np.ndarray:
    """Ranking as the paper has it: any relevance above 0 is relevant."""
    return (y > 0).astype(np.int8)


class Entry(NamedTuple):
    title: str
    """For plots and tables; says so if rows are a part of the published ones."""
    rows: int
    columns: int
    classes: dict[int, int] | None
    """Rows of each label before ``labels``; None if these are published nowhere."""
    fetch: Callable[[], Any] | None = None
    """Without it the set is absent unless the data folder has its parquet file."""
    prepare: Callable[[Any], pd.DataFrame] = same
    """From what was fetched to a table of the folder."""
    split: Split = stratified(0, 0, 1, 2)
    """By default half of every class for training, a quarter each for validation and test."""
    labels: Callable[[np.ndarray], np.ndarray] = same
    """From the published labels to those that are learnt."""
    prices: str | Callable[[int], np.ndarray] | None = None
    """The price list in the folder's costs, or prices of so many features; None is a cost of 1 each, as in the paper."""
    note: str = ""
    """What a reader of a table must know."""
    obtain: str = ""
    """How to come by data that cannot be fetched."""
    table: str | None = None
    """The set whose table this is, if it is not its own."""


def skewed(n_features: int) -> np.ndarray:
    """Prices from 1 to 100 of which every factor is as likely, always the same."""
    return 100 ** np.random.default_rng(0).random(n_features)


SETS = {
    # The paper's four main experiments
    "covtype": Entry(
        "Forest Covertype",
        581_012,
        54,
        {1: 211_840, 2: 283_301, 3: 35_754, 4: 2_747, 5: 9_493, 6: 17_367, 7: 20_510},
        lambda: datasets.fetch_covtype(),
        sources.covtype,
        permuted(36_603, 15_688, 58_101),
    ),
    "miniboone": Entry(
        "MiniBooNE",
        130_064,
        50,
        {0: 93_565, 1: 36_499},
        openml(41150),
        sources.miniboone,
        permuted(45_523, 19_510, 65_031),
    ),
    "miniboone_tiny": Entry(
        "MiniBooNE (5,000 of 130,064 rows)",
        5_000,
        50,
        {0: 2_500, 1: 2_500},
        split=in_order(2_000, 1_000, 2_000),
        note="the authors' sample of 5,000 of 130,064 rows, half signal; of all rows 28 % are",
        obtain="It is mbne_tiny_tr, _tv and _te of github.com/fnan/FeatureBudgetedRandomForest.",
    ),
    "miniboone_unique": Entry(
        "MiniBooNE (110,618 of 130,064 rows)",
        110_618,
        50,
        {0: 79_202, 1: 31_416},
        split=permuted(38_717, 16_593, 55_308),
        note="the distinct rows that can be had; the paper's sizes times .85",
        obtain="It is put together from parts of the set that others have published.",
    ),
    "cifar10_kmeans400": Entry(
        "CIFAR-10",
        60_000,
        400,
        dict.fromkeys(range(10), 6_000),
        openml(40927),
        sources.cifar10,
        permuted(19_761, 8_468, 10_000),
        labels=lambda y: (y >= 5).astype(np.int8),
        note="classes 0-4 against 5-9; k-means features made here, the paper's own are not public",
    ),
    "yahoo_ltrc": Entry(
        "Yahoo! LTRC",
        473_134,
        519,
        None,
        sources.yahoo,
        split=by_query(141_397, 146_769, 184_968),
        labels=relevant,
        prices="yahoo_ltrc_set1",
        obtain=WEBSCOPE,
    ),
    # The nine UCI sets of the appendix
    "house_votes84": Entry("House votes", 435, 16, {0: 267, 1: 168}, openml(56), sources.house_votes84),
    "sonar": Entry("Sonar", 208, 60, {0: 97, 1: 111}, openml(40), sources.sonar),
    "ionosphere": Entry("Ionosphere", 351, 34, {0: 126, 1: 225}, openml(59), sources.ionosphere),
    "statlog_dna": Entry(
        "Statlog DNA", 3_186, 180, {0: 767, 1: 765, 2: 1_654}, openml(40670), sources.statlog_dna
    ),
    "boston_housing": Entry(
        "Boston housing",
        506,
        13,
        {0: 127, 1: 129, 2: 126, 3: 124},
        openml(531),
        sources.boston_housing,
        note="quartiles of the price; column b encodes race",
    ),
    "soybean_large": Entry(
        "Soybean",
        307,
        35,
        dict(enumerate((1, 40, 20, 10, 10, 40, 20, 10, 6, 6, 10, 10, 40, 4, 10, 40, 10, 10, 10))),
        uci("soybean/soybean-large.data"),
        sources.soybean_large,
    ),
    "pima_diabetes": Entry(
        "Pima diabetes",
        768,
        8,
        {0: 500, 1: 268},
        openml(37),
        sources.pima_diabetes,
        prices="pima_diabetes",
    ),
    "wdbc": Entry(
        "Breast cancer (WDBC)", 569, 30, {0: 357, 1: 212}, lambda: datasets.load_breast_cancer(), sources.wdbc
    ),
    "mammographic_masses": Entry(
        "Mammographic masses",
        830,
        5,
        {0: 427, 1: 403},
        uci("mammographic-masses/mammographic_masses.data"),
        sources.mammographic_masses,
    ),
    # Published prices
    "heart_cleveland": Entry(
        "Heart disease (Cleveland)",
        303,
        13,
        {0: 164, 1: 55, 2: 36, 3: 35, 4: 13},
        uci("heart-disease/processed.cleveland.data"),
        sources.heart_cleveland,
        prices="heart_cleveland",
    ),
    "ann_thyroid": Entry(
        "Thyroid",
        7_200,
        21,
        {1: 166, 2: 368, 3: 6_666},
        uci("thyroid-disease/ann-train.data", "thyroid-disease/ann-test.data", sep=r"\s+"),
        sources.ann_thyroid,
        then_test(3_772, stratified(0, 0, 1)),
        prices="ann_thyroid",
        note="FTI has no published price; its price is derived from TT4 and T4U",
    ),
    "bupa_liver": Entry(
        "BUPA liver",
        345,
        5,
        {0: 169, 1: 176},
        uci("liver-disorders/bupa.data"),
        sources.bupa_liver,
        prices="bupa_liver",
    ),
    "chronic_kidney_disease": Entry(
        "Chronic kidney disease",
        400,
        24,
        {0: 150, 1: 250},
        prices="chronic_kidney_disease",
        note="prices of one manuscript, fee schedule not named",
        obtain="UCI has it as an archive of malformed ARFF, which is not read here.",
    ),
    # Ranking
    "mq2008": Entry(
        "MQ2008",
        15_211,
        46,
        {0: 12_279, 1: 2_001, 2: 931},
        texts(*(f"MQ2008/Fold{fold}/test.txt" for fold in (2, 3, 4, 5, 1)), n_ids=46),
        split=by_query(3, 1, 1),
        labels=relevant,
        obtain=LETOR,
    ),
    "mslr_sample": Entry(
        "MSLR (10,000 of 1,200,192 rows)",
        10_000,
        136,
        {0: 5_639, 1: 2_900, 2: 1_244, 3: 153, 4: 64},
        split=then_test(5_000, by_query(3, 1)),
        labels=relevant,
        prices="mslr_sample",
        note="10,000 of 1,200,192 rows; prices assigned per family of features, not measured",
        obtain="It is msn1.fold1.{train,test}.5k.txt of the package rankeval 0.7.3.",
    ),
    "mslr_web10k": Entry(
        "MSLR-WEB10K",
        1_200_192,
        136,
        {0: 624_263, 1: 386_280, 2: 159_451, 3: 21_317, 4: 8_881},
        texts(*(f"MSLR-WEB10K/Fold1/{part}.txt" for part in ("train", "vali", "test")), n_ids=136),
        split=in_order(723_412, 235_259, 241_521),
        labels=relevant,
        prices="mslr_sample",
        note="prices assigned per family of features, not measured",
        obtain=MSLR,
    ),
    # Larger sets for scale, of the folder only
    "mnist": Entry(
        "MNIST",
        70_000,
        784,
        dict(enumerate((6_903, 7_877, 6_990, 7_141, 6_824, 6_313, 6_876, 7_293, 6_825, 6_958))),
        split=then_test(60_000, stratified(0, 0, 1)),
    ),
    "shuttle": Entry("Shuttle", 58_000, 9, dict(enumerate((10, 13, 3_267, 50, 171, 8_903, 45_586)))),
    "adult": Entry("Adult", 48_842, 14, {0: 37_155, 1: 11_687}, split=then_test(32_561, stratified(0, 0, 1))),
}

# The same tables with other prices or fewer rows
SETS |= {
    "covtype_skewed": SETS["covtype"]._replace(
        title="Forest Covertype, skewed prices",
        prices=skewed,
        note="prices drawn from 1 to 100",
        table="covtype",
    ),
    "miniboone_tiny_skewed": SETS["miniboone_tiny"]._replace(
        title="MiniBooNE (5,000 of 130,064 rows), skewed prices",
        prices=skewed,
        note="the authors' sample of 5,000 of 130,064 rows; prices drawn from 1 to 100",
        table="miniboone_tiny",
    ),
    "mnist_sample": SETS["mnist"]._replace(
        title="MNIST (16,000 of 70,000 rows)",
        split=then_test(60_000, permuted(4_000, 2_000, 0)),
        note="6,000 of the 60,000 training rows, all test rows",
        table="mnist",
    ),
}

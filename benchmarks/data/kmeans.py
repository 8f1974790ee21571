"""The 400 k-means features of CIFAR-10, after Coates and Ng, "An analysis of single-layer networks" (2011).

Patches of 6x6 pixels are normalised and whitened; 100 centroids are their dictionary. An image is described, in
each quadrant, by how near its patches come to each centroid.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.lib.stride_tricks import sliding_window_view
from rich.progress import track
from sklearn.cluster import KMeans

SIDE = 6
CENTROIDS = 100
ITERATIONS = 50
PATCHES = 400_000
FLAT = 10
"""Added to the variance of a patch: noise in a flat patch is not blown up."""
EPSILON = 0.1
BLOCK = 100
"""Images at a time: 100 of them make 32 MB of patches."""


class Dictionary(NamedTuple):
    mean: np.ndarray
    whiten: np.ndarray
    """The ZCA matrix: patches minus ``mean``, times this, have unit covariance but for ``EPSILON``."""
    centroids: np.ndarray


def learn(images: np.ndarray, seed: int, n_patches: int = PATCHES) -> Dictionary:
    """Whitening and centroids from random patches of ``images`` (n, height, width, 3) in 0..255."""
    rng = np.random.default_rng(seed)
    windows = _windows(images)
    at = [rng.integers(size, size=n_patches) for size in windows.shape[:3]]
    patches = normalised(windows[tuple(at)].reshape(n_patches, -1))
    mean = patches.mean(axis=0)
    scale, axes = np.linalg.eigh(np.cov(patches, rowvar=False))
    whiten = ((axes / np.sqrt(scale + EPSILON)) @ axes.T).astype(np.float32)
    # centroids start near zero, as in the code of Coates and Ng; started at patches, far ones stay alone
    start = 0.1 * rng.standard_normal((CENTROIDS, len(mean)), dtype=np.float32)
    found = KMeans(CENTROIDS, init=start, n_init=1, max_iter=ITERATIONS, tol=0, random_state=seed)
    return Dictionary(mean, whiten, found.fit((patches - mean) @ whiten).cluster_centers_)


def features(images: np.ndarray, dictionary: Dictionary) -> pd.DataFrame:
    """Columns q0_k00 .. q3_k99: quadrant (top left, top right, bottom left, bottom right) and centroid."""
    starts = track(range(0, len(images), BLOCK), "k-means features")
    blocks = [_pooled(_triangle(images[s : s + BLOCK], dictionary)) for s in starts]
    names = [f"q{q}_k{k:02d}" for q in range(4) for k in range(len(dictionary.centroids))]
    return pd.DataFrame(np.concatenate(blocks), columns=names)


def normalised(patches: np.ndarray) -> np.ndarray:
    """Brightness and contrast taken away, patch by patch."""
    patches = patches.astype(np.float32)
    centred = patches - patches.mean(axis=-1, keepdims=True)
    return centred / np.sqrt(patches.var(axis=-1, keepdims=True) + FLAT)


def _triangle(images: np.ndarray, dictionary: Dictionary) -> np.ndarray:
    """max(0, mean distance - distance) to every centroid, at every position."""
    windows = _windows(images)
    patches = normalised(windows.reshape(*windows.shape[:3], -1))
    white = (patches - dictionary.mean) @ dictionary.whiten
    c = dictionary.centroids
    square = (white**2).sum(axis=-1, keepdims=True) - 2 * white @ c.T + (c**2).sum(axis=1)
    distance = np.sqrt(np.maximum(square, 0))
    return np.maximum(distance.mean(axis=-1, keepdims=True) - distance, 0)


def _pooled(codes: np.ndarray) -> np.ndarray:
    """Sums over quadrants; of 27 positions the first half has 14."""
    half = (codes.shape[1] + 1) // 2
    halves = slice(half), slice(half, None)
    return np.concatenate([codes[:, r, c].sum(axis=(1, 2)) for r in halves for c in halves], axis=1)


def _windows(images: np.ndarray) -> np.ndarray:
    """All patches as a view, (n, rows, columns, 3, 6, 6)."""
    return sliding_window_view(images, (SIDE, SIDE), axis=(1, 2))

"""SparsePCA on handwritten digits: components made of few pixels, and what sparsity costs."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

from ksparse.estimators import SparsePCA

OUT = Path("sparse_pca.png")


def main() -> None:
    """Four components of 12 pixels beside four of all pixels."""
    X = load_digits().data
    sparse = SparsePCA(4, k=12, scale=False).fit(X)
    dense = SparsePCA(4, k=64, scale=False).fit(X)
    print(f"variance explained by four components: all pixels {dense.explained_variance_ratio_.sum():.3f}, ", end="")
    print(f"12 pixels each {sparse.explained_variance_ratio_.sum():.3f}")

    figure = Figure(figsize=(9, 5), layout="constrained", facecolor="white")
    axes = figure.subplots(2, 4)
    for row, (model, title) in enumerate(((dense, "all 64 pixels"), (sparse, "12 pixels"))):
        for ax, component, share in zip(axes[row], model.components_, model.explained_variance_ratio_, strict=True):
            top = np.abs(component).max()
            image = ax.imshow(component.reshape(8, 8), cmap="PuOr", vmin=-top, vmax=top)
            ax.set_title(f"{title}: {100 * share:.1f} %", fontsize="small")
            ax.set_xticks([])
            ax.set_yticks([])
    figure.colorbar(image, ax=axes, label="loading, from negative to positive", ticks=[], shrink=0.6)
    figure.savefig(OUT, dpi=150)
    print(f"Picture: {OUT}")


if __name__ == "__main__":
    main()

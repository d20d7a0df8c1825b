"""Data larger than memory, and workers that die: time may be lost, the answer stays."""

import json
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import ksparse as ks

ROWS, COLUMNS = 30_000, 2_000  # 480 MB in double precision
BEYOND = ROWS * COLUMNS * 8 // 4  # bytes that a process may take beyond what the imports took

LIMITED = """
import json, resource, sys
import numpy as np
import ksparse as ks

small = np.random.default_rng(0).standard_normal((60, 8))
ks.minimize(ks.LeastSquares(ks.blocks(small, 20), small[:, 0]), 2)
ks.SparseRegressor(2).fit(small, small[:, 0])
used = int(open("/proc/self/statm").read().split()[5]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_DATA, (used + int(sys.argv[2]), used + int(sys.argv[2])))
path, y = sys.argv[1], np.load(sys.argv[1] + "/y.npy")
try:
    np.load(path + "/X.npy").sum()
    sys.exit("the limit does not hold: all of the data could be loaded")
except MemoryError:
    pass
found = ks.minimize(ks.LeastSquares(ks.blocks(path + "/X.npy"), y), 5)
model = ks.SparseRegressor(5).fit(ks.blocks(path + "/X.npy"), y)
print(json.dumps([found.support.tolist(), np.flatnonzero(model.coef_).tolist(), found.passes, model.result_.passes]))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits on the data of a process are Linux's")
def test_a_file_larger_than_the_memory_of_the_process(tmp_path, rng):
    support = [3, 400, 801, 1200, 1999]
    X = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float64, (ROWS, COLUMNS))
    y = np.empty(ROWS)
    for rows in np.array_split(np.arange(ROWS), 8):
        X[rows] = rng.standard_normal((rows.size, COLUMNS))
        y[rows] = X[rows][:, support].sum(axis=1) + 0.1 * rng.standard_normal(rows.size)
    del X
    np.save(tmp_path / "y.npy", y)
    environment = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [sys.executable, "-c", LIMITED, str(tmp_path), str(BEYOND)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    found, fitted, passes, passes_fitted = json.loads(done.stdout)
    assert found == fitted == support
    assert max(passes, passes_fitted) <= 10


@pytest.mark.slow
def test_a_worker_that_dies_costs_no_answer(rng):
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    import dask.array as da

    A = rng.standard_normal((400, 40))
    b = A[:, [3, 17, 30]] @ np.array([1.0, -2.0, 1.5]) + 0.1 * rng.standard_normal(400)
    whole = ks.minimize(ks.LeastSquares(A, b), 3)
    killed = []

    with (
        warnings.catch_warnings(),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        warnings.simplefilter("ignore")

        def kill(intermediate_result):
            """Kill the process of one worker during the search."""
            if not killed:
                worker = next(iter(cluster.workers.values()))
                killed.append(loss.passes)
                os.kill(worker.pid, 9)

        loss = ks.LeastSquares(da.from_array(A, chunks=(50, 40)).persist(), b)
        found = ks.minimize(loss, 3, callback=kill)
        assert 0 < killed[0] < loss.passes  # some before, some after
    np.testing.assert_array_equal(found.support, whole.support)
    assert found.fun == pytest.approx(whole.fun, rel=1e-12)
    assert found.status is whole.status

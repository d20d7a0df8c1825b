"""A .npz file is not read whole: its array is mapped, or decompressed in parts."""

import io
import pickle
import zipfile

import numpy as np
import pytest

import ksparse as ks


@pytest.fixture
def table(rng):
    return rng.standard_normal((90, 7)).astype(np.float32)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_the_rows_of_the_table(save, table, tmp_path):
    path = tmp_path / "data.npz"
    save(path, names=np.array(["a", "b"]), X=table, y=table[:, 0])
    A = ks.blocks(path, 13)
    assert A.shape == (90, 7)
    x, r = np.arange(7.0), np.arange(90.0)
    for _ in range(2):
        np.testing.assert_allclose(A @ x, table @ x, rtol=1e-5)
        np.testing.assert_allclose(A.T @ r, table.T @ r, rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(A.source[20:31], table[20:31])
    np.testing.assert_array_equal(A.source[5:9], table[5:9])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(A.source))[85:90], table[85:])
    found = ks.minimize(ks.LeastSquares(A, 2.0 * table[:, 3]), 1)
    assert found.support.tolist() == [3]


def test_stored_tables_are_mapped(table, tmp_path):
    np.savez(tmp_path / "data.npz", np.asfortranarray(table))
    rows = ks.blocks(tmp_path / "data.npz").source[3:50]
    assert isinstance(rows, np.memmap)
    np.testing.assert_array_equal(rows, table[3:50])


def test_a_folder_of_them(table, tmp_path):
    np.savez_compressed(tmp_path / "0.npz", table[:40])
    np.save(tmp_path / "1.npy", table[40:])
    np.testing.assert_array_equal(ks.blocks(tmp_path).source[30:60], table[30:60])


def test_what_cannot_be_read(table, tmp_path):
    np.savez(tmp_path / "two.npz", P=table, Q=table)
    with pytest.raises(ValueError, match=r"one called X or A, but two.npz holds P \(90, 7\), Q"):
        ks.blocks(tmp_path / "two.npz")
    np.savez(tmp_path / "none.npz", y=table[0])
    with pytest.raises(ValueError, match=r"none.npz holds y \(7,\)"):
        ks.blocks(tmp_path / "none.npz")
    np.savez_compressed(tmp_path / "columns.npz", np.asfortranarray(table))
    with pytest.raises(ValueError, match="compressed by columns"):
        ks.blocks(tmp_path / "columns.npz")
    np.savez(tmp_path / "objects.npz", np.array([[None, 1]], dtype=object))
    with pytest.raises(TypeError, match="Python objects"):
        ks.blocks(tmp_path / "objects.npz")


@pytest.mark.parametrize("how", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_member_that_is_too_short(how, table, tmp_path):
    """A mapped array would otherwise continue into the next member."""
    whole = io.BytesIO()
    np.save(whole, table)
    with zipfile.ZipFile(tmp_path / "short.npz", "w", how) as archive:
        archive.writestr("X.npy", whole.getvalue()[: -7 * 4 * 50])
        archive.writestr("y.npy", whole.getvalue())
    with pytest.raises(ValueError, match=r"short.npz is damaged: X.npy has \d+ bytes, its shape \(90, 7\) needs"):
        ks.blocks(tmp_path / "short.npz")


def test_a_damaged_file_is_named(table, tmp_path):
    (tmp_path / "empty.npy").write_bytes(b"")
    (tmp_path / "text.npz").write_text("hello")
    np.savez(tmp_path / "cut.npz", table)
    (tmp_path / "cut.npz").write_bytes((tmp_path / "cut.npz").read_bytes()[:1000])
    for name in ("empty.npy", "text.npz", "cut.npz"):
        with pytest.raises(ValueError, match=rf"{name}, which cannot be read"):
            ks.blocks(tmp_path / name)
    np.savez_compressed(tmp_path / "bad.npz", table)
    content = bytearray((tmp_path / "bad.npz").read_bytes())
    content[1000] ^= 0xFF
    (tmp_path / "bad.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"bad.npz, which cannot be read"):
        ks.blocks(tmp_path / "bad.npz") @ np.ones(7)


@pytest.mark.parametrize("strange", [np.array([["a", "b"]]), np.ones((3, 2), dtype=complex)], ids=["texts", "complex"])
def test_what_is_no_number(strange, tmp_path):
    np.save(tmp_path / "data.npy", strange)
    np.savez(tmp_path / "data.npz", strange)
    for name in ("data.npy", "data.npz"):
        with pytest.raises(TypeError, match=f"real numbers, but {name} holds"):
            ks.blocks(tmp_path / name)
    with pytest.raises(TypeError, match="source must hold real numbers, got"):
        ks.blocks(strange)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_tables_without_rows(save, table, tmp_path):
    """A file without rows is refused alone and allowed as one part of several."""
    save(tmp_path / "0.npz", table[:0])
    with pytest.raises(ValueError, match=r"a row and a column at least, got shape \(0, 7\) in 0.npz"):
        ks.blocks(tmp_path / "0.npz")
    save(tmp_path / "1.npz", table)
    np.testing.assert_allclose(ks.blocks(tmp_path) @ np.ones(7), table.sum(axis=1), rtol=1e-5)

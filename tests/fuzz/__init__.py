"""Fuzzer: random problems of every kind, solved by the library and checked by independent code."""

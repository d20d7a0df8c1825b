"""A fuzzer: random problems of every kind, solved by the library and judged by code that shares nothing with it."""

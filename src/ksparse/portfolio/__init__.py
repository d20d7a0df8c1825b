"""Portfolios of at most k assets: rules, problem, solution, estimators."""

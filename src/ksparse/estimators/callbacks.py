"""scikit-learn's callback protocol (1.9 and newer): each stage of a search is a subtask. Without it, nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["CallbackSupportMixin", "Task", "with_callbacks"]

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # an older scikit-learn

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """The method as it is."""
        return method


class Task:
    """A fit as scikit-learn's callbacks see it."""

    def __init__(self, estimator: Any, X: Any, y: Any, subtasks: int | None = None) -> None:
        self.estimator, self.X, self.y = estimator, X, y
        begin = getattr(estimator, "_init_callback_context", None)
        self.context = begin(max_subtasks=subtasks) if begin is not None and getattr(estimator, "_skl_callbacks", None) else None
        if self.context is not None:
            self.context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)

    def step(self, name: str) -> bool:
        """A subtask that is done; whether a callback asks to stop."""
        if self.context is None:
            return False
        subtask = self.context.subcontext(task_name=name)
        subtask.call_on_fit_task_begin(estimator=self.estimator, X=self.X, y=self.y)
        return bool(subtask.call_on_fit_task_end(estimator=self.estimator, X=self.X, y=self.y))

    @property
    def callback(self) -> Callable[..., None] | None:
        """The same as a callback of `minimize`."""
        if self.context is None:
            return None

        def tell(intermediate_result: Any) -> None:
            if self.step("start"):
                raise StopIteration

        return tell

    @property
    def share(self) -> Callable[[int, int], None] | None:
        """The same as a callback of `minimize_many`."""
        tell = self.callback
        return None if tell is None else lambda done, total: tell(None)

    def end(self) -> None:
        """The fit is done."""
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=self.estimator, X=self.X, y=self.y)

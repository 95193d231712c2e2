"""What all user-level estimators share: reading people's rows, drawing, and stating the guarantee."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from userdp.accounting.budget_hook import announce
from userdp.estimators.privacy import Budget, PrivacyRecord, Spending, Unit, exact_epsilon
from userdp.estimators.saving import from_json, to_json
from userdp.exact.numbers import positive, shown
from userdp.exact.pmf import Pmf
from userdp.mechanisms.composed import Program, law_of, run
from userdp.runtime import source_of
from userdp.users.contributions import UserData, Users, encode_users, first_rows
from userdp.users.sanitize import equal_to, numbers_of, one_by_one, silence

if TYPE_CHECKING:
    from userdp.accounting import PrivacyCost

Self = TypeVar("Self", bound="UserLevelEstimator")


LARGEST_M = 2**31 - 1
"""The most rows of a user that count anywhere."""


class UserLevelEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator whose fit is private for users: all the rows that share a user id.

    A subclass says what is drawn (`_program`), what can come out (`_outcomes`), how the budget is split (`_budget`) and
    where the outcome goes (`_accept`). Fitting, the exact law and audits then follow from the same program.
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True}
    """Cross-validation must hand the user ids to fit, or fail."""

    released: ClassVar[tuple[str, ...]] = ()
    """The fitted attributes that are outputs of the mechanism."""

    caps_rows: ClassVar[bool] = True
    """Whether only the first m rows of a user count. Otherwise all do, and m says how many are expected."""

    # parameters that every subclass takes
    epsilon: Any
    m: Any
    on_invalid: Any
    require_groups: Any
    enrolled: Any
    random_state: Any

    @abstractmethod
    def _budget(self) -> Budget:
        """What epsilon is spent on; depends on parameters only."""

    def _delta(self) -> Fraction:
        """The delta of the guarantee; from parameters only."""
        return Fraction(0)

    def _spending(self, n_users: int, n_features: int) -> Spending:
        """What a fit spends; may depend on these two public numbers besides the parameters."""
        return Spending(self._budget(), self._delta())

    @abstractmethod
    def _program(self, data: UserData) -> Program:
        """What is drawn on the data; see `userdp.mechanisms.composed`."""

    @abstractmethod
    def _outcomes(self, n_users: int, n_features: int) -> Sequence[Hashable]:
        """All outcomes of the program, from public numbers; refused when there are too many to list."""

    @abstractmethod
    def _accept(self, outcome: Any) -> None:
        """Set the fitted attributes, from the outcome and public parameters only."""

    def _check_parameters(self) -> None:
        """Refuse bad parameters. Subclasses check theirs and call this."""
        exact_epsilon(self.epsilon)
        if self.on_invalid not in ("clamp", "raise"):
            raise ValueError(f"on_invalid must be 'clamp' or 'raise'; got {shown(self.on_invalid)}")
        if not isinstance(self.require_groups, (bool, np.bool_)):
            raise TypeError(f"require_groups must be a bool; got {shown(self.require_groups)}")
        if self.m is not None and positive(self.m, "m") > LARGEST_M:
            raise ValueError(f"m must be below 2**31; got {shown(self.m)}")

    def _fit(self: Self, X: Any, y: Any, groups: Any) -> Self:
        """Draw once and keep what was drawn."""
        self._check_parameters()
        data = self._read(X, y, groups)
        self.n_users_ = data.n_users
        with silence():
            program = self._program(data)
        unit: Unit = "record" if groups is None else "user"
        record = self._record(self._spending(data.n_users, data.n_columns), unit)
        announce(record)
        outcome = run(program, source_of(self.random_state, stacklevel=4))
        self._accept(outcome)
        self.unit_ = unit
        self.privacy_ = record
        self.is_private_ = self.privacy_.is_private
        return self

    def _record(self, spending: Spending, unit: Unit) -> PrivacyRecord:
        return PrivacyRecord(
            epsilon=exact_epsilon(self.epsilon),
            delta=spending.delta,
            neighbours="replace",
            unit=unit,
            budget=spending.budget,
            released=self.released,
            caveats=tuple(self._caveats()),
            rho=spending.rho,
            distance=spending.distance,
            budget_unit=spending.budget_unit,
        )

    def privacy_cost(self, *, n_users: int, n_features: int) -> PrivacyCost:
        """What a fit costs, before there are data.

        Parameters
        ----------
        n_users, n_features : int
            Public: how many users there are, those without rows included, and how many columns. Delta and rho may
            depend on these, as methods that are chosen by their predicted error do; epsilon never does.

        Returns
        -------
        PrivacyCost
            For `userdp.accounting.PrivacyLedger`.

        Raises
        ------
        TypeError, ValueError
            For bad parameters.
        """
        self._check_parameters()
        spending = self._spending(positive(n_users, "n_users", 2), positive(n_features, "n_features"))
        return self._record(spending, "user").cost

    def output_distribution(self, X: Any, y: Any = None, *, groups: Any = None) -> Pmf:
        """The exact distribution of what `fit` releases on this data. **Not private**: for audits.

        Parameters
        ----------
        X, y, groups
            As for `fit`.

        Returns
        -------
        Pmf
            Over all outcomes that the public parameters allow, with exact weights. It comes from the program that
            `fit` runs, followed along all its paths.

        Raises
        ------
        TypeError, ValueError
            As `fit`.
        BudgetError
            When there are too many outcomes, or too many paths to them.
        """
        self._check_parameters()
        data = self._read(X, y, groups)
        outcomes = self._outcomes(data.n_users, data.n_columns)
        with silence():
            program = self._program(data)
        return law_of(program, outcomes)

    def __sklearn_is_fitted__(self) -> bool:
        # Reading data sets n_features_in_ before anything is drawn.
        return hasattr(self, "privacy_")

    def _symmetric(self) -> bool:
        """Whether the law of the outcome depends on the multiset of users only, not on their order."""
        return True

    def _caveats(self) -> list[str]:
        caveats = []
        if self.random_state is not None:
            caveats.append("random_state makes the draws reproducible")
        if self.on_invalid == "raise":
            caveats.append("on_invalid='raise' raises errors about private values")
        return caveats

    def _read(self, X: Any, y: Any, groups: Any) -> UserData:
        """People's rows: at most m of each if the estimator caps them, labels as 0 and 1."""
        rows = self._read_X(X)
        labels = self._read_y(y, len(rows))
        users, m = self._read_groups(groups, len(rows))
        if self.caps_rows and not (kept := first_rows(users, m)).all():
            rows, labels, users = rows[kept], labels[kept], Users(users.codes[kept], users.n_users)
        return UserData(rows, labels, users.codes, users.n_users, m)

    def _read_X(self, X: Any) -> npt.NDArray[Any]:
        return self._numbers(X)

    def _numbers(self, X: Any, *, reset: bool = True) -> npt.NDArray[Any]:
        """X as a table of numbers, for fit or, without reset, for predict."""
        rows: npt.NDArray[Any]
        with _without_values():
            if self.on_invalid == "raise":
                rows = validate_data(self, X, reset=reset, dtype="numeric")
                return rows
            # Whether anybody who is enrolled has rows is private.
            rows = validate_data(
                self, one_by_one(X), reset=reset, dtype=None, ensure_all_finite=False, ensure_min_samples=0
            )
        return numbers_of(rows)

    def _read_y(self, y: Any, n_rows: int) -> npt.NDArray[Any]:
        """Estimators without labels have none."""
        return np.zeros(n_rows, dtype=np.uint8)

    def _read_groups(self, groups: Any, n_rows: int) -> tuple[Users, int]:
        if groups is None:
            if self.require_groups:
                raise ValueError(
                    "groups is missing: pass the user id of every row, or set require_groups=False to protect single "
                    "rows, which is a weaker promise. In cross-validation pass params={'groups': ids} with "
                    "sklearn.set_config(enable_metadata_routing=True)"
                )
            if self.enrolled is not None:
                raise ValueError("enrolled lists users, but groups is missing: pass the user id of every row")
            if self.m not in (None, 1):
                raise ValueError(
                    f"m is {shown(self.m)}, but groups is missing, so that every row is a user of its own: pass the "
                    "user id of every row, or m=1"
                )
            users, m = Users(np.arange(n_rows, dtype=np.uint32), n_rows), 1
        elif self.m is None:
            raise ValueError("m must be the public number of rows that count of each user; it is never guessed")
        else:
            users, m = encode_users(groups, n_rows, self.enrolled), positive(self.m, "m")
        if users.n_users < 2:
            raise ValueError(
                f"{'X' if groups is None else 'groups'}: at least 2 users are needed to protect one among them; got "
                f"{users.n_users} (n_samples = {n_rows})"
            )
        return users, m

    def to_json(self) -> str:
        """Parameters and what was released, as JSON. No data. Read it with `from_json`."""
        check_is_fitted(self)
        return to_json(self)

    @classmethod
    def from_json(cls: type[Self], text: str) -> Self:
        """The fitted estimator that `to_json` wrote.

        Raises
        ------
        ValueError
            For anything else.
        """
        estimator: Self = from_json(cls, text)
        return estimator


class UserLevelClassifier(ClassifierMixin, UserLevelEstimator):  # type: ignore[misc]
    """A binary classifier whose fit is private for users."""

    classes: Any

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.classes is not None:
            try:
                listed = np.asarray(self.classes)
                # One array has both; NumPy would make a text of a number beside a text.
                fit = listed.shape == (2,) and listed.tolist() == list(self.classes) and listed[0] != listed[1]
            except (TypeError, ValueError):
                fit = False
            if not fit:
                raise ValueError(f"classes must be two distinct labels of one type, or None; got {shown(self.classes)}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        tags.non_deterministic = True
        return tags

    def _caveats(self) -> list[str]:
        caveats: list[str] = super()._caveats()
        if self.classes is None:
            caveats.append("classes=None takes the classes from the labels")
        return caveats

    def _read_y(self, y: Any, n_rows: int) -> npt.NDArray[np.uint8]:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        with _without_values():
            # What is not private may depend on all labels together.
            private = self.on_invalid == "clamp" and self.classes is not None
            targets = column_or_1d(one_by_one(y) if private else y, warn=True)
        check_consistent_length(targets, np.empty(n_rows))
        if self.on_invalid == "raise":
            assert_all_finite(targets, input_name="y")
        if self.classes is None:
            check_classification_targets(targets)
            classes = np.unique(targets)
            if len(classes) > 2:
                raise ValueError(f"Only binary classification is supported; y has {len(classes)} classes")
            if len(classes) < 2:
                raise ValueError("y has only one class; pass classes=(first, second), which are public")
        else:
            classes = np.asarray(self.classes)
        second = equal_to(targets, classes[1])
        if (
            self.on_invalid == "raise"
            and self.classes is not None
            and not np.all(second | equal_to(targets, classes[0]))
        ):
            raise ValueError(f"y has labels outside classes={shown(self.classes)}")
        self.classes_ = classes
        return second.astype(np.uint8)


class TargetEstimator(UserLevelEstimator):
    """An estimator whose targets are numbers within public bounds."""

    target_bounds: Any

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._bounds()

    def _bounds(self) -> tuple[float, float]:
        try:
            low, high = map(float, self.target_bounds)
        except (TypeError, ValueError):
            low, high = math.nan, math.nan
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(f"target_bounds must be two finite numbers (low, high); got {shown(self.target_bounds)}")
        return low, high

    def _read_y(self, y: Any, n_rows: int) -> npt.NDArray[np.float64]:
        """Targets within their public bounds; what is no number is 0, or the bound that is nearest to it."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        with _without_values():
            if self.on_invalid == "raise":
                targets = column_or_1d(y, warn=True)
                assert_all_finite(targets, input_name="y")
            else:
                targets = column_or_1d(one_by_one(y), warn=True)
        check_consistent_length(targets, np.empty(n_rows))
        low, high = self._bounds()
        numbers = numbers_of(targets).astype(np.float64)
        bounded: npt.NDArray[np.float64] = np.clip(np.where(np.isnan(numbers), 0.0, numbers), low, high)
        return bounded


class UserLevelRegressor(RegressorMixin, TargetEstimator):  # type: ignore[misc]
    """A regressor whose fit is private for users."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        tags.non_deterministic = True
        return tags


@contextmanager
def _without_values() -> Iterator[None]:
    """Errors of scikit-learn about types and shapes, without the data that it shows in some."""
    try:
        yield
    except ValueError as error:
        message = str(error)
        if "Complex data not supported" in message:
            raise ValueError("Complex data not supported") from None
        before, array, _ = message.partition(":\narray=")
        if not array:
            raise
        raise ValueError(
            f"{before}. Reshape your data: X needs a row for each example and a column for each feature"
        ) from None

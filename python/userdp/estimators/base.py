"""What all user-level estimators share: reading users' records, drawing, and stating the guarantee."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from userdp.accounting.budget_hook import ATTRIBUTE, charges_of
from userdp.algorithms import Dataset, FiniteAlgorithm, SymmetricAlgorithm, finite_algorithm
from userdp.estimators import fields
from userdp.estimators.fields import estimator
from userdp.estimators.plan import Promise, ReleasePlan, Unit
from userdp.estimators.saving import from_json, to_json
from userdp.exact.numbers import Epsilon, check_count, short_repr
from userdp.exact.pmf import Pmf
from userdp.exceptions import BudgetError, NoisyFitWarning, TooFewUsersWarning
from userdp.runtime import source_of, warn
from userdp.users.containers import (
    Grid,
    check_width,
    is_sequence,
    label_column,
    places_of,
    read_classes,
    read_features,
    read_labels,
    read_points,
    read_targets,
)
from userdp.users.table import LARGEST_M, Users, UserTable, check_enrolled, encode_users

Self = TypeVar("Self", bound="UserLevelEstimator")
Reader = TypeVar("Reader", bound="UserLevelMechanism[Any]")
Plan = TypeVar("Plan", bound=Promise)
Base = TypeVar("Base", bound="BaseEstimator")
Floats = npt.NDArray[np.float64]

if TYPE_CHECKING:
    from userdp import _core
    from userdp.accounting.cost import PrivacyCost

    # scikit-learn says no types. A base of no type would accept every argument of every constructor.
    class BaseEstimator:
        """What type checkers know of scikit-learn's estimators."""

        def __getattr__(self, name: str) -> Any: ...  # what a fit leaves
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self: Base, **params: Any) -> Base: ...
        def get_metadata_routing(self) -> Any: ...
        def set_fit_request(self: Base, **requests: Any) -> Base: ...
        def __sklearn_clone__(self: Base) -> Base: ...
        def __sklearn_tags__(self) -> Any: ...

    class ClassifierMixin(BaseEstimator):
        """Those that predict classes."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...

    class RegressorMixin(BaseEstimator):
        """Those that predict numbers."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...
else:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

MOST_COLUMNS = 2**27


@estimator
class UserLevelMechanism(BaseEstimator, Generic[Plan]):
    """What reads users' rows and draws once from them, private for users: all the rows that share a user id.

    A subclass makes a promise from its parameters and two public numbers (`_plan`), and says what it reads (`_read_X`,
    `_read_y`).
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True}
    """Cross-validation must hand the user ids to fit, or fail."""

    released: ClassVar[tuple[str, ...]] = ()
    """The fitted attributes that are outputs of the mechanism."""

    caps_rows: ClassVar[bool] = True
    """Whether only the first m rows of a user count. Otherwise all do, and m says how many are expected."""

    needs_labels: ClassVar[bool] = False
    """Whether rows without a label or target that is known do not count."""

    without_rows: ClassVar[str] = ""
    """What users without rows do to the answer, in one sentence: it is in the documentation and in `privacy_`."""

    epsilon: Epsilon = fields.epsilon()
    m: int | None = fields.count(
        default=None,
        most=LARGEST_M,
        doc="The most rows of a user that count, the first m; public, and needed with `groups`. Where all rows of a"
        "\nuser count, as for means and descents, how many are expected.",
    )
    n_features: int | None = fields.count(
        default=None,
        doc="The public number of columns of X. Needed where X is a list of rows, whose lengths are private; all else"
        "\nmust have as many.",
    )
    on_invalid: str = fields.choice(
        ("clamp", "raise"),
        default="clamp",
        doc='What to do about values that are no numbers, and labels outside the public ones: "clamp" takes a public'
        "\ndefault for a value, and leaves out rows that have no such label or no target."
        '\n"raise" raises errors, which is not private.',
    )
    require_groups: bool = fields.flag(
        default=True, doc="True refuses to fit without user ids. False then protects single rows."
    )
    enrolled: Iterable[Any] | None = fields.parameter(
        default=None,
        check=check_enrolled,
        kind="sequence, optional",
        doc="The public list of all users, those without rows included, who count in the number of users. By default"
        "\nthose who have rows.",
    )
    exact_ids: bool = fields.flag(
        default=False,
        doc="True promises that the column of user ids was read as integers or texts. Otherwise whole numbers beyond"
        "\n2**53 are one person where doubles cannot tell them apart, but in columns of Arrow and polars.",
    )
    written_ids: bool = fields.flag(
        default=False,
        doc="True promises that the column of user ids was read as texts, each of which is then itself. Otherwise 5,"
        '\n"5" and "05" are one person.',
    )
    random_state: int | None = fields.parameter(
        default=None,
        kind="None or int",
        doc="None draws from the operating system's generator. An integer is for tests: it warns, and voids privacy.",
    )

    @abstractmethod
    def _plan(self, n_users: int, n_features: int) -> Plan:
        """What is drawn and what it costs. May depend on the parameters and on these two public numbers only."""

    def _lacking(self, grouped: bool) -> dict[str, str]:
        """Public facts that are needed, with `grouped` for rows of users, and not given; and what each of them is."""
        needs_m = grouped and self.caps_rows and self.m is None
        return {"m": "the public number of rows that count of each user"} if needs_m else {}

    def _check_given(self, grouped: bool) -> None:
        """Refuse to go on without public facts, naming all of them."""
        if lacking := self._lacking(grouped):
            raise ValueError(fields.must_be_given(lacking))

    def _check_parameters(self) -> None:
        """Refuse bad parameters. Subclasses that check several together extend this."""
        fields.check_parameters(self)

    # --- planning

    def _frozen(self: Reader) -> Reader:
        """The same parameters, on an estimator that nobody else can change."""
        frozen: Reader = copy.copy(self)
        for name in list(filter(_is_fitted, vars(frozen))):
            delattr(frozen, name)
        for name in self.get_params(deep=False):
            if name != "enrolled":  # is read before anything of the caller's runs
                setattr(frozen, name, _own(getattr(self, name)))
        return frozen

    def _promised(self, n_users: int, n_features: int, unit: Unit) -> Plan:
        without_rows = "" if self.enrolled is None else self.without_rows
        return self._plan(n_users, n_features).promised(unit, self.released, self._caveats(), without_rows)

    def release_plan(self, *, n_users: int, n_features: int) -> Plan:
        """What a fit will draw and cost, before there are data.

        Parameters
        ----------
        n_users, n_features : int
            Public: how many users there are, those without rows included, and how many columns.

        Returns
        -------
        Promise
            A `ReleasePlan` where a fit draws all at once.
        """
        frozen = self._frozen()
        frozen._check_given(grouped=False)
        frozen._check_parameters()
        users, columns = check_count(n_users, "n_users", 2), check_count(n_features, "n_features")
        if columns > MOST_COLUMNS:
            raise BudgetError(f"n_features must be at most 2**27, a gigabyte for a row; got {short_repr(n_features)}")
        return frozen._promised(users, columns, "user")

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
        """
        return self.release_plan(n_users=n_users, n_features=n_features).cost

    def __sklearn_clone__(self: Reader) -> Reader:
        """A clone is fitted at the cost of whoever pays for this one."""
        made: Reader = super().__sklearn_clone__()
        if ATTRIBUTE in vars(self):
            setattr(made, ATTRIBUTE, vars(self)[ATTRIBUTE])
        return made

    def _prepared(self: Reader, X: Any, y: Any, groups: Any) -> tuple[Reader, UserTable, Plan]:
        """Return the estimator as it is now, users' rows, and the plan with its promise: all that a release needs."""
        frozen = self._frozen()
        frozen._check_given(grouped=groups is not None)
        frozen._check_parameters()
        table, unit = frozen._read(X, y, groups)
        return frozen, table, frozen._promised(table.n_users, table.n_columns, unit)

    def _begun(self: Reader, X: Any, y: Any, groups: Any) -> tuple[Reader, UserTable, Plan, _core.Source]:
        """Prepare a release, say what its plan warns of, and open the source that it is drawn from."""
        frozen, table, plan = self._prepared(X, y, groups)
        for warning in plan.warnings:
            warn(warning, TooFewUsersWarning)
        return frozen, table, plan, source_of(frozen.random_state)

    def _symmetric(self) -> bool:
        """Whether the distribution of the outcome depends on the multiset of users only, not on their order."""
        return True

    def _caveats(self) -> list[str]:
        caveats = []
        if self.random_state is not None:
            caveats.append("random_state makes the draws reproducible")
        if self.on_invalid == "raise":
            caveats.append("on_invalid='raise' raises errors about private values")
        return caveats

    # --- reading

    def _read(self, X: Any, y: Any, groups: Any) -> tuple[UserTable, Unit]:
        """Users' rows, and whom a release protects."""
        if groups is None:
            self._check_without_groups()
        rows, ids = self._features(X, groups, reset=True)
        labels = self._read_y(y, len(rows))
        unit: Unit = "user"
        if ids is None:
            users, m, unit = Users(np.arange(len(rows), dtype=np.uint32), len(rows)), 1, "record"
        else:
            m = 1 if self.m is None else check_count(self.m, "m")
            promises = {"exact_ids": self.exact_ids, "written_ids": self.written_ids}
            users = encode_users(ids, len(rows), self.enrolled, **promises)
        if users.n_users < 2:
            raise ValueError(
                f"{'X' if ids is None else 'groups'}: at least 2 users are needed to protect one among them; got "
                f"{users.n_users}" + (f" (n_samples = {len(rows)})" if ids is None else "")
            )
        table = UserTable.of(rows, labels, users, m, labeled=self.needs_labels)
        return (table.capped() if self.caps_rows else table), unit

    def _check_without_groups(self) -> None:
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
                f"m is {short_repr(self.m)}, but groups is missing, so that every row is a user of its own: pass the "
                "user id of every row, or m=1"
            )

    def _features(self, X: Any, groups: Any, *, reset: bool) -> tuple[npt.NDArray[Any], Any]:
        """What the estimator reads of X, and the user ids, which may be a column of it."""
        named = self._has_names()
        if self.on_invalid == "raise" and not named and not isinstance(groups, str):
            with _without_values():
                block = validate_data(self, X, reset=reset, dtype="numeric")
            return self._read_X(Grid(block, (), block)), groups
        kind = "text" if named else "number"
        grid, ids = read_features(X, groups, n_features=self._width(reset), kind=kind)
        if reset:
            check_width(grid, self.n_features)
        validate_data(self, X=grid.native, reset=reset, skip_check_array=True)
        if reset and self.on_invalid == "raise" and not named:
            assert_all_finite(np.asarray(grid.numbers(), dtype=np.float64), input_name="X")
        return self._read_X(grid), ids

    def _width(self, reset: bool) -> int | None:
        """The public number of columns, for lists of rows."""
        if not reset:
            return int(self.n_features_in_)
        return self._columns() if self.n_features is None else int(self.n_features)

    def _has_names(self) -> bool:
        """Whether X has public names in place of numbers."""
        return False

    def _columns(self) -> int | None:
        """The number of columns where the parameters say it."""
        return None

    def _read_X(self, grid: Grid) -> npt.NDArray[Any]:
        """What the estimator takes from a table: a row for each row."""
        return grid.numbers()

    def _numbers(self, X: Any) -> npt.NDArray[Any]:
        """Rows to predict for, as the fit read them."""
        return self._features(X, None, reset=False)[0]

    def _read_y(self, y: Any, n_rows: int) -> npt.NDArray[Any]:
        """Estimators without labels have none."""
        return np.zeros(n_rows, dtype=np.uint8)


def _is_fitted(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


def _own(value: Any) -> Any:
    """A copy of a parameter that nobody else holds; of what cannot be copied, the thing itself."""
    try:
        return copy.deepcopy(value)
    except Exception:
        return value


@estimator
class UserLevelEstimator(UserLevelMechanism[ReleasePlan]):
    """An estimator whose fit is private for users: all the rows that share a user id.

    Fitting, the exact output distribution, costs and audits follow from the `ReleasePlan` that a subclass makes from
    its parameters and two public numbers (`_plan`).
    """

    def fit(self: Self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Draw once, and keep what was drawn.

        Parameters
        ----------
        X : array, frame or sequence of rows with shape (rows, features)
            What is no number counts as a public default. Lists need `n_features`.
        y : array, series or sequence with shape (rows,)
            Labels or targets, for estimators that have them.
        groups : array, series or sequence with shape (rows,), or str
            The user id of every row: texts, bytes, numbers, bools, dates, times, UUIDs, or tuples of these. Rows
            without one are nobody's and are left out. A str names a column of X, a frame.

        Raises
        ------
        TypeError, ValueError
            For bad parameters, types and shapes, never for what is in a row. The estimator is then as it was.
        BudgetError
            For work that would not end in minutes, from public numbers.
        """
        frozen, table, plan, source = self._begun(X, y, groups)
        outcome = plan.draw(table, source, charges_of(self))
        assert plan.record is not None
        fitted = {
            **{name: value for name, value in vars(frozen).items() if _is_fitted(name)},
            "n_users_": table.n_users,
            **plan.fitted(outcome),
            "unit_": plan.record.unit,
            "privacy_": plan.record,
            "is_private_": plan.record.is_private,
        }
        for name in list(filter(_is_fitted, vars(self))):
            delattr(self, name)
        for name, value in fitted.items():
            setattr(self, name, value)
        for note in fitted.get("notes_", ()):
            warn(note, NoisyFitWarning)
        return self

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
        BudgetError
            When there are too many outcomes, or too many paths to them.
        """
        _, table, plan = self._prepared(X, y, groups)
        return plan.output_distribution(table)

    _fitted_doc: ClassVar[dict[str, tuple[str, str]]] = {
        "n_users_": ("int", "The number of users, which is public."),
        "unit_": ('{"user", "record"}', "Whose data is protected."),
        "privacy_": ("PrivacyRecord", "The guarantee, and how the budget was split."),
        "is_private_": ("bool", "False where a setting voids the guarantee."),
    }
    """Fitted attributes that all estimators have, for their documentation."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "privacy_")

    # --- saving

    def to_json(self) -> str:
        """Parameters and what was released, as JSON. No data. Read it with `from_json`."""
        check_is_fitted(self)
        return to_json(self)

    @classmethod
    def from_json(cls: type[Self], text: str) -> Self:
        """The fitted estimator that `to_json` wrote."""
        return from_json(cls, text)


@estimator
class UserLevelClassifier(ClassifierMixin, UserLevelEstimator):
    """A binary classifier whose fit is private for users."""

    needs_labels: ClassVar[bool] = True

    classes: Sequence[Any] | None = fields.parameter(
        check=fields.or_none(lambda value, name: read_classes(value)),
        kind="pair of labels, or None",
        doc="The public labels, two numbers or two texts, compared with the one text of each value: 1, True, 1.0 and"
        '\n"1" are one label. The second is the positive one. Rows whose label is neither do not count, as if the user'
        "\nhad not given them. None takes the labels from y, which is not private.",
        fact="the two public labels, the positive one second",
    )

    _fitted_doc = {"classes_": ("ndarray with shape (2,)", "The labels, as given.")} | UserLevelEstimator._fitted_doc

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        tags.non_deterministic = True
        return tags

    @abstractmethod
    def _predicts_second(self, rows: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """For which rows, as the fit read them, the second class is predicted."""

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict the class of each row.

        Parameters
        ----------
        X : array, frame or sequence of rows with shape (rows, features)
            As for `fit`.

        Returns
        -------
        ndarray with shape (rows,)
            Entries of `classes_`.
        """
        check_is_fitted(self)
        second = np.asarray(self._predicts_second(self._numbers(X)), dtype=np.intp)
        return self.classes_[second]

    def _caveats(self) -> list[str]:
        caveats: list[str] = super()._caveats()
        if self.classes is None:
            caveats.append("classes=None takes the classes from the labels")
        return caveats

    def _read_y(self, y: Any, n_rows: int) -> npt.NDArray[np.uint8]:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        if self.classes is None or self.on_invalid == "raise":
            return self._checked_labels(y, n_rows)
        classes = read_classes(self.classes)
        self.classes_ = classes.labels
        _warn_of_columns(y)
        return read_labels(y, classes, n_rows)

    def _checked_labels(self, y: Any, n_rows: int) -> npt.NDArray[np.uint8]:
        """Labels that are looked at together, which is not private."""
        with _without_values():
            targets = column_or_1d(y, warn=True)
        check_consistent_length(targets, np.empty(n_rows))
        if self.on_invalid == "raise":
            assert_all_finite(targets, input_name="y")
        if self.classes is None:
            check_classification_targets(targets)
            labels = np.unique(targets)
            if len(labels) > 2:
                raise ValueError(f"Only binary classification is supported; y has {len(labels)} classes")
            if len(labels) < 2:
                raise ValueError("y has only one class; pass classes=(first, second), which are public")
            self.classes_ = labels
            return np.asarray(targets == labels[1]).astype(np.uint8)
        classes = read_classes(self.classes)
        places = places_of(label_column(targets, n_rows), classes)
        if np.any(places < 0):
            raise ValueError(f"y has labels outside classes={short_repr(self.classes)}")
        self.classes_ = classes.labels
        return (places == 1).astype(np.uint8)


def check_rising(classes: Any, otherwise: str) -> None:
    """Refuse numbers whose second is the smaller, for learners of hypotheses that hold of one class."""
    known = None if classes is None else read_classes(classes)
    if known is not None and known.falling:
        swapped = tuple(known.labels[::-1].tolist())
        raise ValueError(
            f"classes must list the smaller label first; got {short_repr(classes)}: pass classes={swapped}, {otherwise}"
        )


def _warn_of_columns(y: Any) -> None:
    """Say what scikit-learn says of tables of one column, by the shape alone."""
    if not is_sequence(y) and getattr(y, "ndim", 1) == 2:
        warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,), "
            "for example using ravel().",
            DataConversionWarning,
        )


def read_bounds(bounds: Any, name: str) -> tuple[float, float]:
    """Read two finite numbers, the first below the second."""
    try:
        low, high = map(float, bounds)
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"{name} must be two finite numbers (low, high); got {short_repr(bounds)}")
    return low, high


@estimator
class TargetEstimator(UserLevelEstimator):
    """An estimator whose targets are numbers within public bounds."""

    needs_labels: ClassVar[bool] = True

    target_bounds: tuple[float, float] = fields.parameter(
        check=read_bounds,
        kind="pair of floats",
        doc="(low, high): targets are clamped to these public numbers. Rows whose target is no number do not count, as"
        "\nif the user had not given them.",
        fact="the public range (low, high) of targets",
    )

    def _bounds(self) -> tuple[float, float]:
        return read_bounds(self.target_bounds, "target_bounds")

    def _read_y(self, y: Any, n_rows: int) -> Floats:
        """Targets within their public bounds, NaN for what is no number."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        if self.on_invalid == "raise":
            with _without_values():
                numbers = column_or_1d(y, warn=True)
            assert_all_finite(numbers, input_name="y")
            check_consistent_length(numbers, np.empty(n_rows))
            numbers = np.asarray(numbers, dtype=np.float64)
        else:
            _warn_of_columns(y)
            numbers = read_targets(y, n_rows)
        low, high = self._bounds()
        return np.clip(numbers, low, high)


@estimator
class UserLevelRegressor(RegressorMixin, TargetEstimator):
    """A regressor whose fit is private for users."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        tags.non_deterministic = True
        return tags


@estimator
class PointReader(UserLevelEstimator):
    """An estimator that reads whole numbers up to a public largest one."""

    exact_integers: bool = fields.flag(
        default=False,
        doc="True promises that the type of X is public, and so reads NumPy's integers beyond 2**53 exactly. Otherwise"
        "\nthey are read as doubles, which pandas and NumPy make of them as soon as one value is missing. Columns of"
        "\nArrow and polars are read exactly anyway.",
    )

    @abstractmethod
    def _largest_point(self) -> int:
        """No whole number that matters is larger."""

    def _read_X(self, grid: Grid) -> npt.NDArray[Any]:
        return read_points(grid, self._largest_point(), exact_integers=self.exact_integers, n_columns=self._columns())


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


def as_finite_algorithm(
    estimator: UserLevelEstimator, *, n_users: int = 2, n_features: int | None = None, name: str | None = None
) -> FiniteAlgorithm:
    """An estimator's fit as a finite algorithm, for `userdp.audit`.

    Parameters
    ----------
    estimator : UserLevelEstimator
        Not fitted, or fitted: it is cloned. Its outcomes must be few enough to list.
    n_users : int
        How many users the datasets have: what can come out of means and descents depends on it.
    n_features : int, optional
        How many columns they have: by default what the estimator's parameters say, or 1.
    name : str, optional
        For reports.

    Returns
    -------
    FiniteAlgorithm
        On datasets of users, each a tuple of examples. An example is a pair (x, y) for a classifier or regressor, and x
        otherwise; x is a number or a tuple of numbers. Its pmf is `output_distribution`, and so the distribution that
        `fit` draws from. A `SymmetricAlgorithm`, unless the order of users counts, as it does where each reports
        another bit of a hypothesis.

    Raises
    ------
    BudgetError
        When there are too many outcomes.

    Notes
    -----
    All users of a dataset are enrolled, those without examples too.

    Examples
    --------
    >>> from userdp.audit import audit_user_level
    >>> from userdp.learners import ThresholdClassifier
    >>> from userdp.estimators import as_finite_algorithm
    >>> learner = ThresholdClassifier(epsilon=1, domain_size=2, m=1, classes=(0, 1))
    >>> report = audit_user_level(
    ...     as_finite_algorithm(learner),
    ...     universe=[(1, 0), (1, 1), (2, 0), (2, 1)],
    ...     n_users=2,
    ...     n_examples=1,
    ...     epsilon=1,
    ...     delta=0,
    ... )
    >>> report.holds
    True
    """
    columns = estimator.n_features or estimator._columns() or 1 if n_features is None else n_features
    plan = estimator.release_plan(n_users=n_users, n_features=columns)
    labeled = estimator.needs_labels

    def distribution(dataset: Dataset) -> Pmf:
        fitted = clone(estimator).set_params(enrolled=tuple(range(len(dataset))), n_features=columns)
        examples = [(user, example) for user, rows in enumerate(dataset) for example in rows]
        points = [example[0] if labeled else example for _, example in examples]
        X = [point if isinstance(point, tuple) else (point,) for point in points]
        if (odd := next((row for row in X if len(row) != columns), None)) is not None:
            raise ValueError(f"examples must have n_features={columns} numbers; got {short_repr(odd)}")
        y = [example[1] for _, example in examples] if labeled else None
        return fitted.output_distribution(X, y, groups=np.array([user for user, _ in examples], dtype=np.int64))

    distribution.__name__ = name or type(estimator).__name__
    if not estimator._symmetric():
        return finite_algorithm(plan.outcomes())(distribution)
    return SymmetricAlgorithm(plan.outcomes(), distribution)

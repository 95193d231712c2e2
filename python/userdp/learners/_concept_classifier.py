"""What the classifiers share that choose one hypothesis of a public list."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from userdp._numbers import shown
from userdp.exceptions import BudgetError
from userdp.learners._base import UserLevelClassifier
from userdp.learners._concept_class import ConceptClass
from userdp.learners._ranges import open_unit_interval

__all__ = ["ConceptClassifier"]

MAX_LISTED = 2**16
"""The most outcomes of an exact law."""


class ConceptClassifier(UserLevelClassifier):
    """A classifier that predicts by one hypothesis of a representation, or of the class itself."""

    released: ClassVar[tuple[str, ...]] = ("concept_",)

    concepts: Any
    representation: Any
    alpha: Any

    @property
    def hypotheses(self) -> ConceptClass:
        """What is chosen from: the representation, or else the class."""
        hypotheses: ConceptClass = self.concepts if self.representation is None else self.representation
        return hypotheses

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not isinstance(self.concepts, ConceptClass):
            raise TypeError(f"concepts must be a concept class, such as FiniteClass(...); got {shown(self.concepts)}")
        if self.representation is not None:
            if not isinstance(self.representation, ConceptClass):
                raise TypeError(f"representation must be a concept class or None; got {shown(self.representation)}")
            domains = self.concepts.domain_size, self.representation.domain_size
            if domains[0] != domains[1]:
                raise ValueError(f"concepts and representation must be over as many points; got {domains}")
        open_unit_interval(self.alpha, "alpha")

    def _outcomes(self, n_users: int, n_features: int) -> Sequence[Hashable]:
        return self._listed()

    def _listed(self) -> range:
        """The hypotheses, when they are few enough for an exact law."""
        if self.hypotheses.size > MAX_LISTED:
            raise BudgetError(
                f"the law over {self.hypotheses.size} hypotheses is not listed (limit {MAX_LISTED}); audit a smaller "
                "class"
            )
        return range(self.hypotheses.size)

    def _accept(self, outcome: Any) -> None:
        self.concept_ = outcome

    def describe(self) -> str:
        """When the chosen hypothesis predicts the second class, in words."""
        check_is_fitted(self)
        return self.hypotheses.describe(self.concept_)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict classes by the chosen hypothesis.

        Parameters
        ----------
        X : array-like with shape (rows, features)

        Returns
        -------
        ndarray with shape (rows,)
            Entries of `classes_`.
        """
        check_is_fitted(self)
        rows = self._numbers(X, reset=False)
        second = self.hypotheses.predict(self.hypotheses.points(rows), self.concept_, self.concept_ + 1)[:, 0]
        predictions: npt.NDArray[Any] = self.classes_[second.astype(np.intp)]
        return predictions

(** A second opinion on numbers of certificates, by interval arithmetic on Coq's real numbers: the shares of "optimal" at
    epsilon = 1. The certificates do not use this file, and it rests on the axioms of the real numbers, of classical logic
    and of machine integers that `Print Assumptions` lists. *)
From Coq Require Import Reals.
From Interval Require Import Tactic.
Local Open Scope R_scope.

(** E_T, the factor of the table, is at most e^(4/5). *)
Lemma factor_of_optimal : 757312334826839932725382643271217160005 / 340282366920938463463374607431768211456 <= exp (4/5).
Proof. interval with (i_prec 400). Qed.
Print Assumptions factor_of_optimal.

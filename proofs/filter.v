(** Filters: mechanisms and budgets that are chosen by what came out before.
    Paper proofs: docs/proofs/composition.md, section 5 ("The ledger is a filter", "Epsilons" and "Deltas")
    [Rogers, Roth, Ullman and Vadhan, NeurIPS 2016]; docs/proofs/exact_composition.md, section 11 ("The ledger"), slots.
    Outputs are finite; a strategy has at most k rounds. *)
From mathcomp Require Import all_ssreflect all_algebra.
Require Import indist users domination.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Lemma big_history (R : realDomainType) (O : finType) k (F : history O k.+1 -> R) :
  \sum_u F u = \sum_(h : history O k) \sum_(o : O) F (h, o).
Proof. by rewrite (pair_bigA _ (fun (h : history O k) (o : O) => F (h, o))) /=; apply: eq_bigr => -[]. Qed.

Section Basic.
Variables (R : realDomainType) (O : finType) (silent : O) (E d : R).
Hypothesis E1 : 1 <= E.
Hypothesis d0 : 0 <= d.
Unset Implicit Arguments.
(** What round j asks for after the outcomes h: a level and a delta. *)
Variables ask_E ask_d : forall j, history O j -> R.
Set Implicit Arguments.
Hypothesis ask_E0 : forall j h, 0 <= ask_E j h.
Hypothesis ask_d0 : forall j h, 0 <= ask_d j h.

(** What is spent after a history, and whether the next round fits. What does not fit is not asked: it says [silent]. *)
Definition fits_in (spent : R * R) (e c : R) := (spent.1 * e <= E) && (spent.2 + c <= d).
Fixpoint spent k : history O k -> R * R := if k is k'.+1 then fun u => let s := spent u.1 in
    if fits_in s (ask_E k' u.1) (ask_d k' u.1) then (s.1 * ask_E k' u.1, s.2 + ask_d k' u.1) else s
  else fun=> (1, 0).
Definition fits j (h : history O j) := fits_in (spent h) (ask_E j h) (ask_d j h).
Definition filtered (M : forall j, history O j -> O -> R) j (h : history O j) : O -> R :=
  if fits h then M j h else fun o => (o == silent)%:R.

Lemma spent_within k (h : history O k) : 0 <= (spent h).1 /\ (spent h).1 <= E /\ (spent h).2 <= d.
Proof.
elim: k h => [|k IH] h /=; first by rewrite ler01.
case: ifP => [/andP[le1 le2]|_]; last exact: IH.
by have [? _] := IH h.1; split=> //; apply: mulr_ge0.
Qed.

Lemma filtered_pmf M : (forall j h, pmf (M j h)) -> forall j h, pmf (filtered M (j := j) h).
Proof.
move=> pM j h; rewrite /filtered; case: ifP => // _; split=> [o|]; first exact: ler0n.
by rewrite (bigD1 silent) //= eqxx big1 ?addr0 // => o /negbTE->.
Qed.

Section TwoSides.
Unset Implicit Arguments.
Variables M M' : forall j, history O j -> O -> R.
Set Implicit Arguments.
Hypothesis M_pmf : forall j h, pmf (M j h).
Hypothesis M'_pmf : forall j h, pmf (M' j h).
Hypothesis M_indist : forall j h, indist (ask_E j h) (ask_d j h) (M j h) (M' j h).
Let P k := rounds R O k (filtered M).
Let Q k := rounds R O k (filtered M').

(** By induction: a test g that sees all outcomes, less what was spent of delta, against g times what was spent of E. *)
Lemma filter_tests k (g : history O k -> R) : (forall h, 0 <= g h <= 1) ->
  \sum_h P h * (g h - (spent h).2) <= \sum_h Q h * ((spent h).1 * g h).
Proof.
elim: k g => [|k IH] g g01.
  by apply: ler_sum => -[] _; rewrite /P /Q /= subr0 !mul1r.
pose ho (h : history O k) (o : O) : history O k.+1 := (h, o).
pose e (h : history O k) := if fits h then ask_E k h else 1.
pose c (h : history O k) := if fits h then ask_d k h else 0.
have spentE h o : spent (ho h o) = ((spent h).1 * e h, (spent h).2 + c h).
  by rewrite /= /e /c -/(fits h); case: (fits h) => //; rewrite mulr1 addr0; case: (spent h).
have fM h : pmf (filtered M (j := k) h) := filtered_pmf M_pmf h.
have fM' h : pmf (filtered M' (j := k) h) := filtered_pmf M'_pmf h.
have round h : indist (e h) (c h) (filtered M (j := k) h) (filtered M' (j := k) h).
  have := fM h; rewrite /e /c /filtered; case: (fits h) => // pS; exact: indist_refl.
pose test h := \sum_o filtered M' h o * g (ho h o).
pose G h := Num.min 1 (e h * test h).
have e0 h : 0 <= e h by rewrite /e; case: (fits h); rewrite ?ler01.
have c0 h : 0 <= c h by rewrite /c; case: (fits h); rewrite ?lexx.
have test0 h : 0 <= test h.
  by apply: sumr_ge0 => o _; case: (fM' h) => f0 _; rewrite mulr_ge0 //; case/andP: (g01 (ho h o)).
have G01 h : 0 <= G h <= 1 by rewrite /G le_minr ler01 mulr_ge0 // le_minl lexx.
have step h : \sum_o filtered M h o * (g (ho h o) - ((spent h).2 + c h)) <= G h - (spent h).2.
  have -> : \sum_o filtered M h o * (g (ho h o) - ((spent h).2 + c h)) =
      \sum_o filtered M h o * g (ho h o) - ((spent h).2 + c h).
    under eq_bigr => o _ do rewrite mulrBr; rewrite sumrB -mulr_suml.
    by case: (fM h) => _ ->; rewrite mul1r.
  rewrite opprD addrA addrAC ler_add2r ler_subl_addr addr_minl le_minr; apply/andP; split; last first.
    exact: indist_test (round h) (fun o => g01 (ho h o)).
  apply: (@le_trans _ _ (\sum_o filtered M h o)).
    by apply: ler_sum => o _; case: (fM h) => f0 _; rewrite ler_pimulr //; case/andP: (g01 (ho h o)).
  by case: (fM h) => _ ->; rewrite ler_addl.
rewrite !big_history.
apply: (@le_trans _ _ (\sum_h P h * (G h - (spent h).2))).
  apply: ler_sum => h _; apply: (@le_trans _ _ (\sum_o P h * (filtered M h o * (g (ho h o) - ((spent h).2 + c h))))).
    by apply: ler_sum => o _; rewrite -/(ho h o) spentE /P /= /joint /= mulrA.
  rewrite -mulr_sumr; apply: ler_wpmul2l => //.
  by have [P0 _] := rounds_pmf k (filtered_pmf M_pmf); apply: P0.
apply: (le_trans (IH G G01)); apply: ler_sum => h _.
have Q0 : 0 <= Q h by have [Q0 _] := rounds_pmf k (filtered_pmf M'_pmf); apply: Q0.
have [s0 _] := spent_within h.
apply: (@le_trans _ _ (\sum_o Q h * ((spent h).1 * e h * (filtered M' h o * g (ho h o))))); last first.
  apply: ler_sum => o _; rewrite -/(ho h o) spentE /Q /= /joint /=.
  by rewrite -[X in _ <= X]mulrA [X in _ <= Q h * X]mulrCA.
rewrite -!mulr_sumr -/(test h); apply: ler_wpmul2l => //; rewrite -mulrA; apply: ler_wpmul2l => //.
by rewrite /G le_minl lexx orbT.
Qed.

Lemma filter_indist k : indist E d (@P k) (@Q k).
Proof.
move=> S; pose g (h : history O k) : R := (h \in S)%:R.
have g01 h : 0 <= g h <= 1 by rewrite ler0n lern1; case: (_ \in _).
have [[P0 P1] [Q0 _]] := (rounds_pmf k (filtered_pmf M_pmf), rounds_pmf k (filtered_pmf M'_pmf)).
have massE (m : history O k -> R) : mass m S = \sum_h m h * g h.
  by rewrite /mass big_mkcond; apply: eq_bigr => h _; rewrite /g; case: ifP; rewrite ?mulr1 ?mulr0.
have := filter_tests g01; under eq_bigr => h _ do rewrite mulrBr.
rewrite sumrB ler_subl_addr -massE => le; apply: (le_trans le); apply: ler_add.
  rewrite massE mulr_sumr; apply: ler_sum => h _; rewrite mulrCA; apply: ler_wpmul2r; last first.
    by have [_ []] := spent_within h.
  by rewrite mulr_ge0 //; [apply: Q0 | case/andP: (g01 h)].
apply: (@le_trans _ _ (\sum_h P h * d)); last first.
  by rewrite -mulr_suml -[d in X in _ <= X]mul1r ler_wpmul2r // le_eqVlt; apply/orP; left; apply/eqP; apply: P1.
by apply: ler_sum => h _; apply: ler_wpmul2l; [apply: P0 | have [_ []] := spent_within h].
Qed.
End TwoSides.

(** composition.md, section 5, with composition="basic": "The ledger allows release i only if, on the path h, the sums stay
    at most" what was fixed in advance; then everything together is (E, d)-private. Budgets and mechanisms may depend on
    all outcomes before; a request that does not fit is refused, and a later one may fit again. Where the page splits a
    release into a part that is epsilon-DP and an event, a test is followed through the rounds here; the levels are
    e^epsilon, so that their products are the page's sums. rho, tau and infinitely many outputs are not here. *)
Theorem filter_private (I : finType) (U : Type) (M : {ffun I -> U} -> forall j, history O j -> O -> R) k :
  (forall x j h, pmf (M x j h)) -> (forall j h, private (ask_E j h) (ask_d j h) (fun x => M x j h)) ->
  private E d (fun x => rounds R O k (filtered (M x))).
Proof. by move=> pM H x x' xx'; apply: filter_indist => // j h; apply: H. Qed.
End Basic.

(** Slots: pairs of laws that are fixed in advance, used in any order. *)
Section Slots.
Variables (R : realDomainType) (O : finType) (T : eqType) (X : T -> finType).
Unset Implicit Arguments.
Variables A B : forall s, X s -> R.
(** Which slot round j is charged to after the outcomes h; none for a release that tells nothing. *)
Variable use : forall j, history O j -> option T.
Set Implicit Arguments.
Hypothesis A_pmf : forall s, pmf (A s).
Hypothesis B_pmf : forall s, pmf (B s).
Variable slots : seq T.

Fixpoint unused j : history O j -> seq T := if j is j'.+1 then fun u =>
    if use j' u.1 is Some s then rem s (unused u.1) else unused u.1
  else fun=> slots.

(** A release may be charged to a slot that is unused and whose pair dominates it, in this order of the sides. *)
Definition may_use j (h : history O j) (P Q : O -> R) :=
  if use j h is Some s then s \in unused h /\ dominates (A s) (B s) P Q else P =1 Q.

Section TwoSides.
Unset Implicit Arguments.
Variables M M' : forall j, history O j -> O -> R.
Set Implicit Arguments.
Hypothesis M_pmf : forall j h, pmf (M j h).
Hypothesis M'_pmf : forall j h, pmf (M' j h).
Hypothesis allowed : forall j h, may_use h (M j h) (M' j h).

Lemma slots_curve k a b : 0 <= a -> 0 <= b ->
  \sum_h curve A B (unused h) (a * rounds R O k M h) (b * rounds R O k M' h) <= curve A B slots a b.
Proof.
move=> a0 b0; elim: k => [|k IH]; first by rewrite /= (bigD1 tt) //= big1 ?addr0 ?mulr1 // => -[].
have [[P0 _] [Q0 _]] := (rounds_pmf k M_pmf, rounds_pmf k M'_pmf).
rewrite big_history; apply: le_trans IH; apply: ler_sum => h _ /=; rewrite /joint /=.
have := allowed h; rewrite /may_use; case: (use k h) => [s [sU dom]|same].
  rewrite (curve_rem A B _ _ sU) /=; under eq_bigr => o _ do rewrite !mulrA.
  by apply: curve_dominated => //; rewrite mulr_ge0 // ?P0 ?Q0.
have [m0 m1] := M_pmf h.
rewrite (eq_bigr (fun o => M k h o * curve A B (unused h) (a * rounds R O k M h) (b * rounds R O k M' h))) => [|o _].
  by rewrite -mulr_suml m1 mul1r.
by rewrite -same !mulrA ![_ * M k h o]mulrC curve_scale.
Qed.

Lemma slots_indist k E d : 0 <= E -> curve A B slots 1 E <= d -> indist E d (rounds R O k M) (rounds R O k M').
Proof.
move=> E0 le; apply/indistP; apply: le_trans le; apply: le_trans (slots_curve k ler01 E0).
by apply: ler_sum => h _; rewrite mul1r; apply: curve_ge.
Qed.
End TwoSides.

(** exact_composition.md, section 11, slots: "a multiset of pairs fixed in advance ... slots may be used in any order, chosen
    by what came out, each by any mechanism it dominates, and left unused". Here d bounds the divergence of the product of
    all slots ([curveE] in domination.v), and each release must be dominated in both orders of two neighbors, as the
    class asks of a slot where neighbors have no sides. Not here: the Gaussian budget, deltas and distances on top. *)
Theorem slots_private (I : finType) (U : Type) (M : {ffun I -> U} -> forall j, history O j -> O -> R) k E d :
  0 <= E -> (forall x j h, pmf (M x j h)) ->
  (forall x x' j h, neighbors x x' -> may_use h (M x j h) (M x' j h)) ->
  hs E (product A (l := slots)) (product B (l := slots)) <= d ->
  private E d (fun x => rounds R O k (M x)).
Proof.
move=> E0 pM H le x x' xx'; apply: slots_indist => // [j h|]; first exact: H.
by rewrite curveE hs2_1.
Qed.
End Slots.

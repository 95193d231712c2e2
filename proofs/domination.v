(** Domination of pairs of laws, at all levels E >= 0, and products of pairs.
    Paper proof: docs/proofs/exact_composition.md, section 1, Theorem 1 [Zhu, Dong and Wang, AISTATS 2022, Theorem 10].
    A divergence h_E(P, Q) with E = b / a is kept as hs2 a b P Q = a h_(b/a)(P, Q), so that nothing is divided. *)
From mathcomp Require Import all_ssreflect all_algebra.
Require Import indist.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Domination.
Variable R : realDomainType.
Implicit Types (a b c E : R).

Definition hs2 (O : finType) a b (P Q : O -> R) := \sum_o Num.max 0 (a * P o - b * Q o).
(** The pair (A, B) is nowhere below (P, Q). *)
Definition dominates (X : finType) (A B : X -> R) (O : finType) (P Q : O -> R) :=
  forall a b, 0 <= a -> 0 <= b -> hs2 a b P Q <= hs2 a b A B.

Lemma hs2_1 (O : finType) E (P Q : O -> R) : hs2 1 E P Q = hs E P Q.
Proof. by apply: eq_bigr => o _; rewrite mul1r. Qed.

Theorem dominates_indist (X O : finType) (A B : X -> R) E d (P Q : O -> R) : 0 <= E -> dominates A B P Q -> hs E A B <= d ->
  indist E d P Q.
Proof. by move=> E0 dom le; apply/indistP; apply: le_trans le; rewrite -!hs2_1; apply: dom => //; apply: ler01. Qed.

Lemma max_split (z : R) : Num.max 0 z = z + Num.max 0 (- z).
Proof. by rewrite addr_maxr addr0 subrr maxC. Qed.

(** exact_composition.md, section 1, "Reverse". *)
Lemma hs2_reverse (O : finType) a b (P Q : O -> R) : \sum_o P o = 1 -> \sum_o Q o = 1 -> hs2 a b P Q = a - b + hs2 b a Q P.
Proof.
move=> P1 Q1; have -> : a - b = \sum_o (a * P o - b * Q o) by rewrite sumrB -!mulr_sumr P1 Q1 !mulr1.
by rewrite /hs2 -big_split /=; apply: eq_bigr => o _; rewrite max_split opprB.
Qed.

Lemma dominatesC (X O : finType) (A B : X -> R) (P Q : O -> R) : pmf A -> pmf B -> pmf P -> pmf Q ->
  dominates A B P Q -> dominates B A Q P.
Proof.
move=> [_ A1] [_ B1] [_ P1] [_ Q1] dom a b a0 b0.
by rewrite (hs2_reverse a b Q1 P1) (hs2_reverse a b B1 A1) ler_add2l; apply: dom.
Qed.

(** Post-processing. *)
Lemma dominates_post (J O : finType) (P Q : J -> R) (K : J -> O -> R) : (forall j, pmf (K j)) ->
  dominates P Q (mix P K) (mix Q K).
Proof.
move=> pK a b _ _; rewrite /hs2 /mix.
apply: (@le_trans _ _ (\sum_o \sum_j Num.max 0 (a * P j - b * Q j) * K j o)).
  apply: ler_sum => o _; rewrite le_maxl; apply/andP; split.
    by apply: sumr_ge0 => j _; case: (pK j) => K0 _; rewrite mulr_ge0 // le_maxr lexx.
  rewrite !mulr_sumr -sumrB; apply: ler_sum => j _; rewrite !mulrA -mulrBl.
  by case: (pK j) => K0 _; rewrite ler_wpmul2r // le_maxr lexx orbT.
rewrite exchange_big /=; apply: ler_sum => j _; rewrite -mulr_sumr.
by case: (pK j) => _ ->; rewrite mulr1.
Qed.

Lemma dominates_trans (X Y O : finType) (A B : X -> R) (P Q : Y -> R) (P' Q' : O -> R) :
  dominates A B P Q -> dominates P Q P' Q' -> dominates A B P' Q'.
Proof. by move=> H H' a b a0 b0; apply: le_trans (H' a b a0 b0) (H a b a0 b0). Qed.

(** Theorem 1: adaptive composition. The second release may be chosen by the outcome y of the first. *)
Theorem dominates_joint (X1 X2 O1 O2 : finType) (A1 B1 : X1 -> R) (A2 B2 : X2 -> R) (P1 Q1 : O1 -> R)
    (P2 Q2 : O1 -> O2 -> R) : (forall y, 0 <= P1 y) -> (forall y, 0 <= Q1 y) ->
  (forall x, 0 <= A2 x) -> (forall x, 0 <= B2 x) ->
  dominates A1 B1 P1 Q1 -> (forall y, dominates A2 B2 (P2 y) (Q2 y)) ->
  dominates (joint A1 (fun=> A2)) (joint B1 (fun=> B2)) (joint P1 P2) (joint Q1 Q2).
Proof.
move=> P0 Q0 A0 B0 dom1 dom2 a b a0 b0.
have split (J O : finType) (c c' : J -> R) (P Q : J -> O -> R) :
    hs2 a b (joint c P) (joint c' Q) = \sum_j hs2 (a * c j) (b * c' j) (P j) (Q j).
  rewrite /hs2 pair_big /=; apply: eq_bigr => -[j o] _; by rewrite /joint /= !mulrA.
rewrite !split; apply: (@le_trans _ _ (\sum_y hs2 (a * P1 y) (b * Q1 y) A2 B2)).
  by apply: ler_sum => y _; apply: dom2; rewrite mulr_ge0.
rewrite /hs2 exchange_big [X in _ <= X]exchange_big /=; apply: ler_sum => x _.
rewrite (eq_bigr (fun y => Num.max 0 (a * A2 x * P1 y - b * B2 x * Q1 y))) => [|y _]; last by rewrite (mulrAC a) (mulrAC b).
rewrite [X in _ <= X](eq_bigr (fun y => Num.max 0 (a * A2 x * A1 y - b * B2 x * B1 y))) => [|y _].
  by apply: dom1; rewrite mulr_ge0.
by rewrite (mulrAC a) (mulrAC b).
Qed.

(** The curve of a product of pairs, one for each member of a list: curve l a b = hs2 a b of the products. *)
Section Curve.
Variables (T : eqType) (X : T -> finType).
Unset Implicit Arguments.
Variables A B : forall s, X s -> R.
Set Implicit Arguments.
Hypothesis A_pmf : forall s, pmf (A s).
Hypothesis B_pmf : forall s, pmf (B s).
Implicit Types (l : seq T).

Fixpoint curve l a b := if l is s :: l' then \sum_(x : X s) curve l' (a * A s x) (b * B s x) else Num.max 0 (a - b).

Let A0 s x : 0 <= A s x. Proof. by case: (A_pmf s). Qed.
Let B0 s x : 0 <= B s x. Proof. by case: (B_pmf s). Qed.

Lemma curve_ge0 l a b : 0 <= curve l a b.
Proof. by elim: l a b => [|s l IH] a b /=; [rewrite le_maxr lexx | apply: sumr_ge0]. Qed.

Lemma curve_ge l a b : Num.max 0 (a - b) <= curve l a b.
Proof.
rewrite le_maxl curve_ge0 /=; elim: l a b => [|s l IH] a b /=; first by rewrite le_maxr lexx orbT.
apply: le_trans _ (ler_sum _ (fun x _ => IH (a * A s x) (b * B s x))).
by rewrite sumrB -!mulr_sumr; case: (A_pmf s) => _ ->; case: (B_pmf s) => _ ->; rewrite !mulr1.
Qed.

Lemma curve_scale l c a b : 0 <= c -> curve l (c * a) (c * b) = c * curve l a b.
Proof.
move=> c0; elim: l a b => [|s l IH] a b /=; first by rewrite -mulrBr maxr_pmulr // mulr0.
by rewrite mulr_sumr; apply: eq_bigr => x _; rewrite -!mulrA IH.
Qed.

Lemma curve_right0 l a : 0 <= a -> curve l a 0 = a.
Proof.
elim: l a => [|s l IH] a a0 /=; first by rewrite subr0 max_r.
rewrite -[RHS]mulr1; case: (A_pmf s) => _ <-; rewrite mulr_sumr; apply: eq_bigr => x _.
by rewrite mul0r IH // mulr_ge0.
Qed.

Lemma curve_left0 l b : 0 <= b -> curve l 0 b = 0.
Proof.
elim: l b => [|s l IH] b b0 /=; first by rewrite sub0r max_l // oppr_le0.
by rewrite big1 // => x _; rewrite mul0r IH // mulr_ge0.
Qed.

(** The order of a list does not matter. *)
Lemma curve_rem s l a b : s \in l -> curve l a b = curve (s :: rem s l) a b.
Proof.
elim: l a b => // t l IH a b; rewrite inE /= [s == t]eq_sym; case: (eqVneq t s) => [-> //|ts] /= sl.
rewrite exchange_big /=.
under eq_bigr => x _ do rewrite IH //=.
by apply: eq_bigr => x _; apply: eq_bigr => y _; rewrite (mulrAC a) (mulrAC b).
Qed.

Lemma curve_perm l l' a b : perm_eq l l' -> curve l a b = curve l' a b.
Proof.
elim: l l' a b => [|s l IH] l' a b p; first by have /perm_nilP-> : perm_eq l' [::] by rewrite perm_sym.
have sl : s \in l' by rewrite -(perm_mem p) mem_head.
rewrite (curve_rem a b sl) /=; apply: eq_bigr => x _; apply: IH.
by rewrite -(perm_cons s) (perm_trans p) // perm_to_rem.
Qed.

(** A further pair may be replaced by one that dominates it. *)
Lemma curve_dominated l (Y O : finType) (C D : Y -> R) (P Q : O -> R) a b : dominates C D P Q ->
  0 <= a -> 0 <= b ->
  \sum_o curve l (a * P o) (b * Q o) <= \sum_y curve l (a * C y) (b * D y).
Proof.
move=> dom; elim: l a b => [|s l IH] a b a0 b0 /=; first exact: dom.
rewrite exchange_big [X in _ <= X]exchange_big /=; apply: ler_sum => x _.
under eq_bigr => o _ do rewrite (mulrAC a) (mulrAC b).
under [X in _ <= X]eq_bigr => y _ do rewrite (mulrAC a) (mulrAC b).
by apply: IH; rewrite mulr_ge0.
Qed.

(** The products themselves: laws on a nested product. *)
Fixpoint space l : finType := if l is s :: l' then [finType of X s * space l'] else [finType of unit].
Fixpoint product (C : forall s, X s -> R) l : space l -> R :=
  if l is s :: l' then fun u => C s u.1 * product C u.2 else fun=> 1.

Theorem curveE l a b : curve l a b = hs2 a b (product A (l := l)) (product B (l := l)).
Proof.
rewrite /hs2; elim: l a b => [|s l IH] a b /=; first by rewrite (bigD1 tt) //= big1 ?addr0 ?mulr1 // => -[].
rewrite -(pair_bigA _ (fun x u => Num.max 0 (a * (A s x * product A u) - b * (B s x * product B u)))) /=.
by apply: eq_bigr => x _; rewrite IH; apply: eq_bigr => u _; rewrite !mulrA.
Qed.
End Curve.

(** Independent coordinates, one for each k in K. *)
Section Independent.
Variables (K : finType) (V : finType) (v0 : V) (A B : K -> V -> R).

Theorem curve_ffun a b : curve (X := fun=> V) A B (enum K) a b =
  hs2 a b (fun f : {ffun K -> V} => \prod_k A k (f k)) (fun f : {ffun K -> V} => \prod_k B k (f k)).
Proof.
pose same (l : seq K) (f0 f : {ffun K -> V}) := [forall k, (k \notin l) ==> (f k == f0 k)].
have main (l : seq K) f0 : uniq l -> \sum_(f | same l f0 f) Num.max 0 (a * \prod_k A k (f k) - b * \prod_k B k (f k)) =
    curve (X := fun=> V) A B l (a * \prod_(k | k \notin l) A k (f0 k)) (b * \prod_(k | k \notin l) B k (f0 k)).
  elim: l f0 => [|j l IH] f0 /=.
    move=> _; rewrite (big_pred1 f0) // => f; apply/forallP/eqP => [H|-> k]; last by rewrite eqxx implybT.
    by apply/ffunP => k; apply/eqP; have := H k.
  case/andP=> jl ul; rewrite (partition_big (fun f : {ffun K -> V} => f j) xpredT) //=; apply: eq_bigr => o _.
  pose f1 := [ffun k => if k == j then o else f0 k].
  have step (C : K -> V -> R) : \prod_(k | k \notin l) C k (f1 k) = \prod_(k | k \notin j :: l) C k (f0 k) * C j o.
    rewrite (bigD1 j) //= ffunE eqxx mulrC; congr (_ * _).
    by apply: eq_big => [k|k /andP[_ /negbTE kj]]; [rewrite inE negb_or andbC | rewrite ffunE kj].
  rewrite -!mulrA -!step -IH //; apply: eq_bigl => f; apply/andP/forallP => [[/forallP H /eqP fj] k|H].
    have := H k; rewrite ffunE inE; case: eqP => [->|_] //=; by rewrite jl fj eqxx implybT.
  split; last by have := H j; rewrite jl ffunE eqxx.
  apply/forallP => k; by have := H k; rewrite ffunE inE; case: (eqVneq k j).
have one (f0 : {ffun K -> V}) (C : K -> V -> R) : \prod_(k | k \notin enum K) C k (f0 k) = 1.
  by apply: big_pred0 => k; rewrite mem_enum.
have := main (enum K) [ffun=> v0] (enum_uniq _); rewrite !one !mulr1 => <-.
by apply: eq_bigl => f; apply/forallP => k; rewrite mem_enum.
Qed.
End Independent.
End Domination.

(** Permute-and-flip: a coin for every candidate, and a uniformly random one of those whose coins succeed.
    Paper proof: docs/proofs/permute_and_flip.md. [McKenna and Sheldon, NeurIPS 2020, Theorem 1] has the ideal mechanism.
    The integral of the page is a linear functional of polynomials here. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Coq Require Import Lia.
Require Import indist users tables.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Averages.
Variable F : realFieldType.
Implicit Types (P Q : {poly F}) (c p : F).

(** The mean of 1 / N for a number N of successes with the generating function P; a mean over N = 0 counts as 0.
    avg ('X * P) is the integral of P over [0, 1]. *)
Definition avg P := \sum_(k < size P) P`_k / k%:R.

Lemma avgE n P : (size P <= n)%N -> avg P = \sum_(k < n) P`_k / k%:R.
Proof.
move=> Pn; rewrite /avg -!(big_mkord xpredT (fun k => P`_k / k%:R)) [RHS](@big_cat_nat _ _ _ (size P)) //=.
by rewrite [X in _ + X]big_nat [X in _ + X]big1 ?addr0 // => k /andP[sk _]; rewrite nth_default ?mul0r.
Qed.

Lemma avgD P Q : avg (P + Q) = avg P + avg Q.
Proof.
pose n := maxn (size P) (size Q); rewrite !(@avgE n) ?leq_maxl ?leq_maxr ?size_add // -big_split /=.
by apply: eq_bigr => k _; rewrite coefD mulrDl.
Qed.

Lemma avgZ c P : avg (c *: P) = c * avg P.
Proof.
rewrite (@avgE (size P)) ?size_scale_leq // mulr_sumr.
by apply: eq_bigr => k _; rewrite coefZ mulrA.
Qed.

Lemma avg_sum (J : Type) (s : seq J) (A : pred J) (P : J -> {poly F}) :
  avg (\sum_(j <- s | A j) P j) = \sum_(j <- s | A j) avg (P j).
Proof. by apply: (big_morph avg avgD); rewrite /avg size_poly0 big_ord0. Qed.

Lemma avgXn n : avg 'X^n = n%:R^-1.
Proof.
rewrite /avg size_polyXn big_ord_recr /= coefXn eqxx mul1r big1 ?add0r // => k _.
by rewrite coefXn ltn_eqF ?ltn_ord // mul0r.
Qed.

(** The integral of a derivative. *)
Lemma avg_deriv P : avg ('X * P^`()) = P.[1] - P.[0].
Proof.
have co k : ('X * P^`())`_k = P`_k *+ k by rewrite coefXM; case: k => [|k]; rewrite ?mulr0n // coef_deriv.
have sz : (size ('X * P^`())%R <= (size P).+1)%N.
  by apply/leq_sizeP => k Pk; rewrite co nth_default ?mul0rn // ltnW.
rewrite (avgE sz) horner_coef0 horner_coef big_ord_recl /= invr0 mulr0 add0r.
have -> : \sum_(i < size P) P`_i * 1 ^+ i = \sum_(i < (size P).+1) P`_i.
  rewrite big_ord_recr /= nth_default // addr0; by apply: eq_bigr => k _; rewrite expr1n mulr1.
rewrite big_ord_recl /= addrC addKr; apply: eq_bigr => k _.
by rewrite co /bump /= add1n -mulr_natr mulfK // pnatr_eq0.
Qed.

Definition nonneg P := forall k, 0 <= P`_k.

Lemma avg_ge0 P : nonneg P -> 0 <= avg P.
Proof. by move=> P0; apply: sumr_ge0 => k _; rewrite divr_ge0 ?ler0n. Qed.

Lemma nonneg_mul P Q : nonneg P -> nonneg Q -> nonneg (P * Q).
Proof. by move=> P0 Q0 k; rewrite coefM; apply: sumr_ge0 => j _; rewrite mulr_ge0. Qed.

(** One coin. *)
Definition coin p : {poly F} := (1 - p)%:P + p *: 'X.

Lemma coin_nonneg p : 0 <= p <= 1 -> nonneg (coin p).
Proof.
case/andP=> p0 p1 k; rewrite coefD coefC coefZ coefX; apply: addr_ge0.
  by case: ifP; rewrite ?subr_ge0.
by rewrite mulr_ge0 ?ler0n.
Qed.

Lemma avg_terms P Q : avg (Q * P) = \sum_(k < size P) P`_k * avg (Q * 'X^k).
Proof.
rewrite -{1}[P]coefK poly_def mulr_sumr avg_sum; apply: eq_bigr => k _.
by rewrite -scalerAr avgZ.
Qed.

(** One success more lowers the mean of 1 / (1 + N). *)
Lemma avg_success P : nonneg P -> avg ('X * ('X * P)) <= avg ('X * P).
Proof.
move=> P0; rewrite mulrA !avg_terms; apply: ler_sum => k _; apply: ler_wpmul2l => //.
by rewrite -mulrA -!exprS !avgXn lef_pinv ?posrE ?ltr0Sn // ler_nat.
Qed.

Lemma coin_step p P : avg ('X * (coin p * P)) = avg ('X * P) - p * (avg ('X * P) - avg ('X * ('X * P))).
Proof.
have -> : 'X * (coin p * P) = (1 - p) *: ('X * P) + p *: ('X * ('X * P)).
  by rewrite /coin mulrDl mulrDr mul_polyC -!scalerAl -!scalerAr.
by rewrite avgD !avgZ mulrBl mul1r mulrBr opprB addrCA addrC addrA.
Qed.

(** The integral falls in every probability. *)
Lemma coins_fall (J : Type) (s : seq J) (A : pred J) (a b : J -> F) P : nonneg P -> (forall j, 0 <= a j) ->
  (forall j, a j <= b j <= 1) ->
  avg ('X * (P * \prod_(j <- s | A j) coin (b j))) <= avg ('X * (P * \prod_(j <- s | A j) coin (a j))).
Proof.
move=> P0 a0 ab; elim: s P P0 => [|j s IH] P P0; first by rewrite !big_nil.
rewrite !big_cons; case: ifP => _; last exact: IH.
have /andP[ab1 b1] := ab j; have b01 : 0 <= b j <= 1 by rewrite b1 (le_trans (a0 j) ab1).
have a01 : 0 <= a j <= 1 by rewrite a0 (le_trans ab1).
rewrite (mulrA P (coin (b j))) (mulrA P (coin (a j))).
apply: (@le_trans _ _ (avg ('X * (P * coin (b j) * \prod_(j <- s | A j) coin (a j))))).
  by apply: IH; apply: nonneg_mul => //; apply: coin_nonneg.
set G := \prod_(_ <- _ | _) _; have G0 : nonneg G.
  rewrite /G; elim/big_rec: _ => [k|i Q _ Q0]; first by rewrite coef1 ler0n.
  by apply: nonneg_mul => //; apply: coin_nonneg; have /andP[x y] := ab i; rewrite a0 (le_trans x y).
have e p : 'X * (P * coin p * G) = 'X * (coin p * (P * G)) by rewrite -[P * _ * _]mulrA [P * (_ * _)]mulrCA.
rewrite !e !coin_step; rewrite ler_add2l ler_opp2; apply: ler_wpmul2r => //.
by rewrite subr_ge0; apply: avg_success; apply: nonneg_mul.
Qed.

(** Thinning: a success is kept with probability p. *)
Lemma avg_thinned k p : 0 < p <= 1 -> avg ('X * coin p ^+ k) * p <= k.+1%:R^-1.
Proof.
case/andP=> p0 p1; have := avg_deriv (coin p ^+ k.+1).
rewrite deriv_exp; have -> : (coin p)^`() = p%:P by rewrite /coin !derivE add0r -mul_polyC mulr1.
rewrite mul_polyC -scaler_nat scalerA -scalerAr avgZ !horner_exp.
have -> : (coin p).[1] = 1 by rewrite /coin !hornerE subrK.
have -> : (coin p).[0] = 1 - p by rewrite /coin !hornerE.
rewrite expr1n => E; have c0 : 0 < k.+1%:R :> F by rewrite ltr0Sn.
rewrite -(ler_pmul2l c0) mulfV ?gt_eqF // [avg _ * p]mulrC mulrA E.
by rewrite ler_subl_addr ler_addl exprn_ge0 // subr_ge0.
Qed.

Lemma coin_comp p q : coin q \Po coin p = coin (p * q).
Proof.
rewrite /coin comp_polyD comp_polyC comp_polyZ comp_polyX scalerDr scalerA [q * p]mulrC addrA; congr (_ + _).
by rewrite -mul_polyC -polyCM -polyCD mulrBr mulr1 mulrC addrA subrK.
Qed.

(** The page's lemma of scaling, for one and the same list of coins. *)
Theorem avg_scaled (J : Type) (s : seq J) (A : pred J) (a b : J -> F) c : 1 <= c -> (forall j, 0 <= a j <= 1) ->
  (forall j, 0 <= b j <= 1) -> (forall j, b j <= c * a j) ->
  avg ('X * \prod_(j <- s | A j) coin (a j)) <= c * avg ('X * \prod_(j <- s | A j) coin (b j)).
Proof.
move=> c1 a01 b01 ba; have c0 : 0 < c by apply: lt_le_trans c1.
have p01 : 0 < c^-1 <= 1 by rewrite invr_gt0 c0 invf_le1.
have step : avg ('X * \prod_(j <- s | A j) coin (a j)) <= avg ('X * \prod_(j <- s | A j) coin (c^-1 * b j)).
  have P0 : nonneg 1 by move=> k; rewrite coef1 ler0n.
  have := @coins_fall J s A (fun j => c^-1 * b j) a 1 P0; rewrite !mul1r; apply=> j.
    by have /andP[b0 _] := b01 j; rewrite mulr_ge0 // ltW //; case/andP: p01.
  by rewrite ler_pdivr_mull // ba; case/andP: (a01 j).
apply: (le_trans step).
have -> : \prod_(j <- s | A j) coin (c^-1 * b j) = (\prod_(j <- s | A j) coin (b j)) \Po coin c^-1.
  rewrite (big_morph _ (fun x y => comp_polyM x y (coin c^-1)) (comp_polyC 1 _)).
  by apply: eq_bigr => j _; rewrite coin_comp.
set G := \prod_(_ <- _ | _) _; have G0 : nonneg G.
  by rewrite /G; elim/big_rec: _ => [k|i Q _ Q0]; [rewrite coef1 ler0n | apply: nonneg_mul => //; apply: coin_nonneg].
rewrite comp_polyE mulr_sumr avg_sum avg_terms mulr_sumr; apply: ler_sum => k _.
rewrite -scalerAr avgZ mulrCA; apply: ler_wpmul2l => //.
by rewrite -exprS avgXn -ler_pdivr_mull // mulrC; apply: avg_thinned.
Qed.
End Averages.

(** The mechanism: coins q for the candidates O; t says whose succeed. *)
Section Coins.
Variables (F : realFieldType) (O : finType).
Implicit Types (q : O -> F) (t : {ffun O -> bool}).

Definition coins q t := \prod_j (if t j then q j else 1 - q j).
Definition successes t := (\sum_j t j)%N.
Definition others q i := avg ('X * \prod_(j | j != i) coin (q j)).

Lemma coins_pmf q : (forall j, 0 <= q j <= 1) -> pmf (coins q).
Proof.
move=> q01; split=> [t|].
  by apply: prodr_ge0 => j _; have /andP[q0 q1] := q01 j; case: (t j); rewrite ?subr_ge0.
rewrite -(bigA_distr_bigA (fun j b => if b then q j else 1 - q j)) big1 // => j _.
by rewrite big_bool /= addrC subrK.
Qed.

(** The ideal mechanism: p_i = q_i E[1 / (1 + S_-i)]. *)
Lemma uniform_success q i : \sum_t coins q t * ((t i)%:R / (successes t)%:R) = q i * others q i.
Proof.
pose term j (b : bool) : {poly F} := (if b then q j else if j == i then 0 else 1 - q j) *: 'X^b.
have termE j : \sum_b term j b = if j == i then q i *: 'X else coin (q j).
  rewrite big_bool /term /= expr1 expr0; case: eqP => [->|_]; first by rewrite scale0r addr0.
  by rewrite /coin addrC alg_polyC.
have -> : q i * others q i = avg (\prod_j \sum_b term j b).
  rewrite /others -avgZ; congr (avg _); rewrite [RHS](bigD1 i) //= termE eqxx -scalerAl; congr (_ *: (_ * _)).
  by apply: eq_bigr => j /negbTE ji; rewrite termE ji.
rewrite bigA_distr_bigA avg_sum; apply: eq_bigr => t _.
rewrite scaler_prod prodrXr avgZ avgXn mulrA; congr (_ * _).
have [ti|/negbTE ti] := boolP (t i).
  by rewrite mulr1; apply: eq_bigr => j _; case: ifP => // tj; case: eqP => // ji; rewrite ji ti in tj.
by rewrite mulr0 (bigD1 i) //= ti eqxx mul0r.
Qed.

(** What is drawn: coins of probabilities q, then [pick t i] for the place among the successes t. It is uniform up to a
    relative theta. *)
Definition nearly_uniform (theta : F) (pick : {ffun O -> bool} -> O -> F) := forall t i,
  (1 - theta) * ((t i)%:R / (successes t)%:R) <= pick t i <= (1 + theta) * ((t i)%:R / (successes t)%:R).
Definition drawn (pick : {ffun O -> bool} -> O -> F) q i := \sum_t coins q t * pick t i.

Lemma drawn_bounds theta pick q i : nearly_uniform theta pick -> (forall j, 0 <= q j <= 1) ->
  (1 - theta) * (q i * others q i) <= drawn pick q i <= (1 + theta) * (q i * others q i).
Proof.
move=> near q01; have [c0 _] := coins_pmf q01; rewrite -uniform_success !mulr_sumr.
by apply/andP; split; apply: ler_sum => t _; rewrite mulrCA; apply: ler_wpmul2l => //; case/andP: (near t i).
Qed.

Lemma others_ge0 q i : (forall j, 0 <= q j <= 1) -> 0 <= others q i.
Proof.
move=> q01; apply: avg_ge0; apply: nonneg_mul => [k|]; first by rewrite coefX ler0n.
elim/big_rec: _ => [k|j Q _ Q0]; first by rewrite coef1 ler0n.
by apply: nonneg_mul => //; apply: coin_nonneg.
Qed.

(** permute_and_flip.md, "Directed rounding" and "The place": coins q within [lo, hi] of the ideal v. *)
Lemma rounded_flip theta pick lo hi B v v' q q' i : nearly_uniform theta pick -> 0 <= theta <= 1 -> 0 < lo <= 1 ->
  1 <= hi -> 0 <= B -> (forall j, 0 <= v j <= 1) -> (forall j, 0 <= v' j <= 1) ->
  (forall j, 0 <= q j <= 1) -> (forall j, 0 <= q' j <= 1) ->
  (forall j, lo * v j <= q j <= hi * v j) -> (forall j, lo * v' j <= q' j <= hi * v' j) ->
  v i * others v i <= B * (v' i * others v' i) ->
  (1 - theta) * lo ^+ 2 * drawn pick q i <= (1 + theta) * hi ^+ 2 * B * drawn pick q' i.
Proof.
move=> near /andP[t0 t1] /andP[lo0 lo1] hi1 B0 v01 v'01 q01 q'01 Hq Hq' HB.
have hi0 : 0 <= hi by apply: le_trans hi1.
have [/andP[_ up] /andP[down _]] := (drawn_bounds i near q01, drawn_bounds i near q'01).
have t0' : 0 <= 1 - theta by rewrite subr_ge0.
have t1' : 0 <= 1 + theta by rewrite addr_ge0 ?ler01.
have a1 : lo * others q i <= others v i.
  rewrite -ler_pdivl_mull //; apply: avg_scaled => // [|j]; first by rewrite invf_ge1.
  by rewrite ler_pdivl_mull //; case/andP: (Hq j).
have a2 : others v' i <= hi * others q' i by apply: avg_scaled => // j; case/andP: (Hq' j).
have [v0 v'0] : 0 <= v i /\ 0 <= v' i by case/andP: (v01 i) => ? _; case/andP: (v'01 i).
have [q0 q'0] : 0 <= q i /\ 0 <= q' i by case/andP: (q01 i) => ? _; case/andP: (q'01 i).
have u : lo * drawn pick q i <= (1 + theta) * hi * (v i * others v i).
  apply: (le_trans (ler_wpmul2l (ltW lo0) up)); rewrite mulrCA -mulrA; apply: ler_wpmul2l => //.
  rewrite mulrCA [X in _ <= X]mulrA; apply: ler_pmul => //; last by case/andP: (Hq i).
  by rewrite mulr_ge0 ?others_ge0 // ltW.
have d : (1 - theta) * lo * (v' i * others v' i) <= hi * drawn pick q' i.
  apply: le_trans _ (ler_wpmul2l hi0 down); rewrite [X in _ <= X]mulrCA -mulrA; apply: ler_wpmul2l => //.
  rewrite [X in _ <= X]mulrCA [X in X <= _]mulrA; apply: ler_pmul => //; last by case/andP: (Hq' i).
    by rewrite mulr_ge0 // ltW.
  exact: others_ge0.
have w : (1 - theta) * lo * (lo * drawn pick q i) <= (1 - theta) * lo * ((1 + theta) * hi * (B * (v' i * others v' i))).
  apply: ler_wpmul2l; first by rewrite mulr_ge0 // ltW.
  by apply: (le_trans u); apply: ler_wpmul2l => //; rewrite mulr_ge0.
have -> : (1 - theta) * lo ^+ 2 * drawn pick q i = (1 - theta) * lo * (lo * drawn pick q i).
  by rewrite expr2 !mulrA.
have -> : (1 + theta) * hi ^+ 2 * B * drawn pick q' i = (1 + theta) * hi * (B * (hi * drawn pick q' i)).
  by rewrite expr2 !mulrA; congr (_ * _); rewrite mulrAC.
apply: (le_trans w); rewrite mulrCA; apply: ler_wpmul2l; first by rewrite mulr_ge0.
by rewrite mulrCA; apply: ler_wpmul2l.
Qed.

(** permute_and_flip.md, "Theorem (tables)": any table f with f(0) = 1 that does not increase and whose ratio of
    neighboring entries is at most r. The page's powers 2^(-rho d), clamped at a gap, are one; so is a ladder of
    integers, rounded up. No list of powers rounded down need be. *)
Section Table.
Variables (f : nat -> F) (r : F).
Hypothesis f_top : f 0%N = 1.
Hypothesis f_ge0 : forall d, 0 <= f d.
Hypothesis f_falls : forall d, f d.+1 <= f d.
Hypothesis f_ratio : forall d, f d <= r * f d.+1.

Lemma table_le d k : f (d + k) <= f d.
Proof. by elim: k => [|k IH]; [rewrite addn0 | rewrite addnS; apply: le_trans (f_falls _) IH]. Qed.

Lemma table_range d : 0 <= f d <= 1.
Proof. by rewrite f_ge0 -f_top -[d]add0n table_le. Qed.

Lemma ratio_ge1 : 1 <= r.
Proof.
have r0 : 0 < r.
  rewrite ltNge; apply/negP => r0; have := f_ratio 0; rewrite f_top leNgt => /negP; apply.
  by apply: le_lt_trans ltr01; rewrite mulr_le0_ge0.
have := f_ratio 0; rewrite f_top => le; apply: (le_trans le).
by rewrite ler_pimulr ?(ltW r0) // -f_top.
Qed.

Lemma table_gap d d' a : (d' <= d + a)%N -> f d <= r ^+ a * f d'.
Proof.
have r0 : 0 <= r by apply: le_trans ratio_ge1; apply: ler01.
have steps k : f d <= r ^+ k * f (d + k).
  elim: k => [|k IH]; first by rewrite addn0 expr0 mul1r.
  apply: (le_trans IH); rewrite addnS exprSr -mulrA; apply: ler_wpmul2l; [exact: exprn_ge0 | exact: f_ratio].
move=> le; apply: (le_trans (steps a)); apply: ler_wpmul2l; first exact: exprn_ge0.
by rewrite -(subnKC le) table_le.
Qed.

(** If gaps grow by at most a and shrink by at most b, the ideal probabilities fall by r^(a + b) at most. *)
Lemma flip_ratio a b (g g' : O -> nat) i : (forall j, g' j <= g j + a)%N -> (forall j, g j <= g' j + b)%N ->
  f (g i) * others (f \o g) i <= r ^+ (a + b) * (f (g' i) * others (f \o g') i).
Proof.
move=> Ha Hb; set v := f \o g; set v' := f \o g'; have r0 : 0 <= r by apply: le_trans ratio_ge1; apply: ler01.
have v01 j : 0 <= v j <= 1 by apply: table_range.
have v'01 j : 0 <= v' j <= 1 by apply: table_range.
have e : r ^+ (a + b) * (f (g' i) * others v' i) = r ^+ a * f (g' i) * (r ^+ b * others v' i) by rewrite exprD mulrACA.
rewrite e; apply: ler_pmul; rewrite ?f_ge0 ?others_ge0 //.
  exact: table_gap.
by apply: avg_scaled => // [|j]; [rewrite exprn_ege1 // ratio_ge1 | apply: table_gap].
Qed.

Variable i0 : O.
Definition excess (s : O -> nat) j := (s j - least i0 s)%N.

(** If scores fall by at most a and rise by at most b, ... *)
Lemma excess_ratio a b (s s' : O -> nat) i : (forall j, s' j <= s j + b)%N -> (forall j, s j <= s' j + a)%N ->
  f (excess s i) * others (f \o excess s) i <= r ^+ (a + b) * (f (excess s' i) * others (f \o excess s') i).
Proof.
move=> up down; have [m m'] : (least i0 s' <= least i0 s + b)%N /\ (least i0 s <= least i0 s' + a)%N.
  split; [rewrite {2}/least|rewrite {2}/least]; case: arg_minnP => // j _ _.
    exact: leq_trans (least_le _ _ j) (up j).
  exact: leq_trans (least_le _ _ j) (down j).
have -> : (a + b = (least i0 s + b - least i0 s') + (least i0 s' + a - least i0 s))%N.
  by move/ssrnat.leP: m; move/ssrnat.leP: m'; rewrite -!plusE -!minusE; lia.
apply: flip_ratio => j; have [l l'] := (least_le i0 s j, least_le i0 s' j); have [u d] := (up j, down j).
  move: m m' l l' u d => /ssrnat.leP m /ssrnat.leP m' /ssrnat.leP l /ssrnat.leP l' /ssrnat.leP u /ssrnat.leP d.
  by apply/ssrnat.leP; rewrite /excess -!plusE -!minusE in m m' l l' u d *; lia.
move: m m' l l' u d => /ssrnat.leP m /ssrnat.leP m' /ssrnat.leP l /ssrnat.leP l' /ssrnat.leP u /ssrnat.leP d.
by apply/ssrnat.leP; rewrite /excess -!plusE -!minusE in m m' l l' u d *; lia.
Qed.

Section Private.
Variables (I : finType) (U : Type) (score : {ffun I -> U} -> O -> nat) (Delta : nat).
Variables (lo hi theta E : F) (q : {ffun I -> U} -> O -> F) (pick : {ffun O -> bool} -> O -> F).
Hypothesis sensitive : forall x x' j, neighbors x x' -> (score x j <= score x' j + Delta)%N.
Let v x := f \o excess (score x).
Hypothesis lo0 : 0 < lo.
Hypothesis q_range : forall x j, 0 <= q x j <= 1.
Hypothesis q_near : forall x j, lo * v x j <= q x j <= hi * v x j.
Hypothesis q_best : forall x j, excess (score x) j = 0%N -> q x j = 1.
Hypothesis theta01 : 0 <= theta < 1.
Hypothesis place : nearly_uniform theta pick.

Lemma rounded_private B : 0 <= B -> (forall x x' i, neighbors x x' ->
    v x i * others (v x) i <= B * (v x' i * others (v x') i)) ->
  (1 + theta) * hi ^+ 2 * B <= E * ((1 - theta) * lo ^+ 2) -> private E 0 (fun x => drawn pick (q x)).
Proof.
move=> B0 H cert x x' xx'; apply: indist_pure => i; case/andP: theta01 => t0 t1.
have v01 y j : 0 <= v y j <= 1 by apply: table_range.
have [lo1 hi1] : lo <= 1 /\ 1 <= hi.
  have e : excess (score x) [arg min_(j < i0) score x j] = 0%N by rewrite /excess /least subnn.
  by have := q_near x [arg min_(j < i0) score x j]; rewrite (q_best e) /v /comp e f_top !mulr1 => /andP[].
have c0 : 0 < (1 - theta) * lo ^+ 2 by rewrite mulr_gt0 ?subr_gt0 // exprn_gt0.
rewrite -(ler_pmul2l c0); have P0 : 0 <= drawn pick (q x') i.
  have /andP[le _] := drawn_bounds i place (q_range x'); apply: le_trans le.
  by rewrite !mulr_ge0 ?subr_ge0 ?(ltW t1) ?others_ge0 //; case/andP: (q_range x' i).
apply: le_trans _ (_ : (1 + theta) * hi ^+ 2 * B * drawn pick (q x') i <= _).
  by apply: (rounded_flip place) (H _ _ _ xx'); rewrite ?t0 ?lo0 // ltW.
by apply: (le_trans (ler_wpmul2r P0 cert)); rewrite -mulrA mulrCA.
Qed.

(** permute_and_flip.md, statement 2: "If no score changes by more than Delta between neighbors, then p_i <= e^epsilon
    p'_i for every i". Here E is any bound with the certificate's inequality; f is any table, not only the powers. *)
Theorem permute_and_flip_private :
  (1 + theta) * hi ^+ 2 * r ^+ (Delta + Delta) <= E * ((1 - theta) * lo ^+ 2) ->
  private E 0 (fun x => drawn pick (q x)).
Proof.
have r0 : 0 <= r by apply: le_trans ratio_ge1; apply: ler01.
apply: rounded_private => [|x x' i xx']; first exact: exprn_ge0.
by apply: excess_ratio => j; apply: sensitive => //; apply: neighborsC.
Qed.

(** permute_and_flip.md, statement 3: "With monotone the rate is twice as high, and 2 holds when all scores change in one
    direction between neighbors, by at most Delta". *)
Theorem permute_and_flip_monotone :
  (forall x x', neighbors x x' -> (forall j, score x j <= score x' j)%N \/ (forall j, score x' j <= score x j)%N) ->
  (1 + theta) * hi ^+ 2 * r ^+ Delta <= E * ((1 - theta) * lo ^+ 2) ->
  private E 0 (fun x => drawn pick (q x)).
Proof.
have r0 : 0 <= r by apply: le_trans ratio_ge1; apply: ler01.
move=> one; apply: rounded_private => [|x x' i xx']; first exact: exprn_ge0.
have s1 j := sensitive j xx'; have s2 j := sensitive j (neighborsC xx').
case: (one _ _ xx') => H; first by rewrite -[Delta]add0n; apply: excess_ratio => // j; rewrite addn0.
by rewrite -[Delta]addn0; apply: excess_ratio => // j; rewrite addn0.
Qed.
End Private.
End Table.

(** The table of the class: powers of beta = 2^-rho, clamped at the gap D; r = 1 / beta. *)
Lemma powers_table (beta : F) D : 0 < beta <= 1 -> let f d := beta ^+ minn d D in
  [/\ f 0%N = 1, forall d, 0 <= f d, forall d, f d.+1 <= f d & forall d, f d <= beta^-1 * f d.+1].
Proof.
case/andP=> b0 b1 f; have pos d : 0 < f d by rewrite exprn_gt0.
split=> [|d|d|d]; rewrite ?(ltW (pos d)) //; first by rewrite /f min0n.
  by apply: ler_wiexpn2l; rewrite ?(ltW b0) // leq_min geq_minr geq_min leqnSn.
rewrite ler_pdivl_mull // -exprS; apply: ler_wiexpn2l; rewrite ?(ltW b0) //.
by rewrite -minnSS leq_min geq_minl geq_min leqnSn orbT.
Qed.

(** The place among the successes: J = floor(V N / T) for T equally likely V (T = 2^128), N successes. The success
    number j is returned for ceil((j + 1) T / N) - ceil(j T / N) of these ([selection_count] in tables.v). *)
Section Place.
Variable T : nat.
Hypothesis T0 : (0 < T)%N.
Definition before t k := (\sum_(j | enum_rank j < k) t j)%N.
Definition share n j : nat := (ceil n (j.+1 * T) - ceil n (j * T))%N.
Definition by_place t i : F := if t i then (share (successes t) (before t (enum_rank i)))%:R / T%:R else 0.

Lemma by_place_uniform theta : #|O|%:R <= theta * T%:R -> nearly_uniform theta by_place.
Proof.
move=> big t i; rewrite /by_place; case: ifP => [ti|_]; last by rewrite mul0r !mulr0 lexx.
set N := successes t; have N0 : (0 < N)%N by rewrite /N /successes (bigD1 i) //= ti.
have NO : (N <= #|O|)%N.
  by rewrite -sum1_card; apply: leq_sum => j _; case: (t j).
have T0F : 0 < T%:R :> F by rewrite ltr0n.
have N0F : 0 < N%:R :> F by rewrite ltr0n.
have NT : N%:R <= theta * T%:R by apply: le_trans big; rewrite ler_nat.
have [] := selection_error T N0 (before t (enum_rank i)) 1; rewrite addn1 -/(share _ _) mul1n.
set S := share _ _ => up down.
have u : S%:R * N%:R <= T%:R + N%:R :> F by rewrite -natrM -natrD ler_nat ltnW.
have d : T%:R <= S%:R * N%:R + N%:R :> F by rewrite -natrM -natrD ler_nat ltnW.
rewrite -[true%:R]/(1 : F) !mul1r; apply/andP; split.
  rewrite ler_pdivr_mulr // mulrAC ler_pdivl_mulr // mulrBl mul1r ler_subl_addr.
  by apply: (le_trans d); rewrite ler_add2l.
rewrite ler_pdivl_mulr // mulrAC ler_pdivr_mulr // mulrDl mul1r.
by apply: (le_trans u); rewrite ler_add2l.
Qed.

Lemma before_step t i : before t (enum_rank i).+1 = (before t (enum_rank i) + t i)%N.
Proof.
rewrite /before (bigD1 i) //= addnC; congr (_ + _)%N; apply: eq_bigl => j.
by rewrite ltnS leq_eqVlt andb_orl; case: (eqVneq j i) => [->|ji]; rewrite ?andbT ?andbF ?ltnn ?orbF //=
  (inj_eq val_inj) (inj_eq enum_rank_inj) (negbTE ji).
Qed.

(** What is drawn is a law, as some coin is certain to succeed. *)
Lemma drawn_pmf q best : (forall j, 0 <= q j <= 1) -> q best = 1 -> pmf (drawn by_place q).
Proof.
move=> q01 qb; have [c0 c1] := coins_pmf q01; split=> [i|].
  apply: sumr_ge0 => t _; apply: mulr_ge0 => //; rewrite /by_place; case: ifP => // _.
  by rewrite divr_ge0 ?ler0n.
rewrite /drawn exchange_big /= -[RHS]c1; apply: eq_bigr => t _; rewrite -mulr_sumr.
have [tb|/negbTE tb] := boolP (t best); last by rewrite /coins (bigD1 best) //= tb qb subrr !mul0r.
rewrite -[RHS]mulr1; congr (_ * _); set N := successes t.
have N0 : (0 < N)%N by rewrite /N /successes (bigD1 best) //= tb.
have T0F : T%:R != 0 :> F by rewrite pnatr_eq0 -lt0n.
pose c k : F := (ceil N (before t k * T))%:R / T%:R.
have step i : by_place t i = c (enum_rank i).+1 - c (enum_rank i).
  rewrite /by_place /c before_step; case: (t i); last by rewrite addn0 subrr.
  rewrite addn1 /share natrB ?mulrBl //.
  by rewrite ceil_le //; apply: leq_trans (ceil_bounds N0 _).1; rewrite leq_mul2r leqnSn orbT.
rewrite (eq_bigr _ (fun i _ => step i)).
rewrite (reindex (@enum_val O xpredT)) /=; last first.
  by exists enum_rank => i _; [exact: enum_valK | exact: enum_rankK].
under eq_bigr => i _ do rewrite enum_valK.
rewrite -(big_mkord xpredT (fun k => c k.+1 - c k)) telescope_sumr //.
have last : before t #|O| = N by apply: eq_bigl => j; rewrite ltn_ord.
have first : before t 0 = 0%N by rewrite /before big_pred0.
rewrite /c last first mul0n; have -> : ceil N 0 = 0%N by apply/eqP; rewrite -leqn0 ceil_le.
have -> : ceil N (N * T) = T by apply/eqP; rewrite eqn_leq ceil_le // mulnC leqnn /= -(leq_pmul2r N0) (ceil_bounds N0 _).1.
by rewrite mul0r subr0 divff.
Qed.

(** All together, for the table and the place of the class: beta = 2^-rho, lo and hi what the weights are certified to be
    within, theta = (number of candidates) / T. The page's bound on ln(p_i / p'_i) is this inequality's logarithm. What is
    left to the tests: that the weights are within [lo, hi], and that the code draws this law. *)
Corollary permute_and_flip_drawn (I : finType) (U : Type) (score : {ffun I -> U} -> O -> nat) Delta i0 (beta : F) D
    lo hi theta E (q : {ffun I -> U} -> O -> F) : 0 < beta <= 1 ->
  (forall x x' j, neighbors x x' -> (score x j <= score x' j + Delta)%N) ->
  let v x j := beta ^+ minn (excess i0 (score x) j) D in
  0 < lo -> (forall x j, 0 <= q x j <= 1) -> (forall x j, lo * v x j <= q x j <= hi * v x j) ->
  (forall x j, excess i0 (score x) j = 0%N -> q x j = 1) ->
  0 <= theta < 1 -> #|O|%:R <= theta * T%:R ->
  (1 + theta) * hi ^+ 2 * beta^-1 ^+ (Delta + Delta) <= E * ((1 - theta) * lo ^+ 2) ->
  private E 0 (fun x => drawn by_place (q x)).
Proof.
move=> b01 sens v lo0 q01 near best t01 big cert; have [f0 fpos falls ratio] := powers_table D b01.
by apply: (permute_and_flip_private f0 fpos falls ratio sens lo0 q01 near best t01 (by_place_uniform big) cert).
Qed.
End Place.
End Coins.

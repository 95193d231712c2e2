(** Privacy of a mechanism on k records drawn uniformly, without replacement, from n: level 1 + (k/n) (E - 1) and
    (k/n) d. [GKKMMZ23, Theorem 7]; code: userdp.accounting.subsampling_amplification.
    The abstract form is [indist_subsample] in indist.v; here is the coupling. Replacing a record of the sample by one from
    outside must be (E, d), too ([B_swap]): it is, where the law ignores the order of the records. For a mechanism that
    sees them in the order of the users the formula is false: a user who leaves the sample for another one moves the
    records between them. *)
From mathcomp Require Import all_ssreflect all_algebra.
Require Import indist users.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Identities.
Variables (T : Type) (z o : T) (add mul : T -> T -> T) (opp : T -> T).
Hypothesis rt : ring_theory z o add mul (fun x y => add x (opp y)) opp eq.
Add Ring T_ring : rt.
Local Notation "a + b" := (add a b). Local Notation "a * b" := (mul a b).
Local Notation "a - b" := (add a (opp b)). Local Notation "1" := o.
Lemma ring_split_sample n k E X : E * (n * X) = (n + k * (E - 1)) * X + (E - 1) * ((n - k) * X).
Proof. ring. Qed.
Lemma ring_join_sample n k E d X Y c :
  (n + k * (E - 1)) * (E * X + d * c) + (E - 1) * (E * (k * Y) + d * ((n - k) * c)) =
  E * ((n + k * (E - 1)) * X + k * (E - 1) * Y + d * (n * c)).
Proof. ring. Qed.
Lemma ring_total_sample n k E d X Y c :
  (n + k * (E - 1)) * X + k * (E - 1) * Y + d * (n * c) + n * Y = (n + k * (E - 1)) * (X + Y) + d * (n * c).
Proof. ring. Qed.
Lemma ring_end_sample n p E d S u t : t * u = 1 ->
  (n + n * p * (E - 1)) * S + d * (n * p * t) = n * (t * ((1 + p * (E - 1)) * (u * S) + p * d)).
Proof.
move=> tu; transitivity ((n + n * p * (E - 1)) * (t * u * S) + d * (n * p * t)); [rewrite tu; ring | ring].
Qed.
End Identities.

(** The coupling, for samples of any kind. [ok]: the samples, all equally likely; [sees]: those with the user who is
    replaced. A move takes a sample that sees the user to one that does not; there are n - k moves from each of the
    former and k to each of the latter. *)
Section Coupling.
Variables (R : realFieldType) (F Z O : finType) (ok sees : pred F) (mv : pred Z) (src dst : Z -> F) (k m : nat).
Variables (E d : R) (P Q : F -> O -> R).
Hypothesis E1 : 1 <= E.
Hypothesis src_sees : forall z, mv z -> ok (src z) && sees (src z).
Hypothesis dst_blind : forall z, mv z -> ok (dst z) && ~~ sees (dst z).
Hypothesis moves_from : forall f, ok f -> sees f -> #|[set z | mv z && (src z == f)]| = m.
Hypothesis moves_to : forall f, ok f -> ~~ sees f -> #|[set z | mv z && (dst z == f)]| = k.
Hypothesis seen : forall f, ok f -> sees f -> indist E d (P f) (Q f).
Hypothesis blind : forall f, ok f -> ~~ sees f -> P f =1 Q f.
Hypothesis moved : forall z, mv z -> indist E d (P (src z)) (P (dst z)).

Definition uniform (f : F) : R := if ok f then (#|[set f | ok f]|%:R)^-1 else 0.

Lemma sum_moves (c : pred F) (g : Z -> F) q (h : F -> R) : (forall z, mv z -> c (g z)) ->
  (forall f, c f -> #|[set z | mv z && (g z == f)]| = q) -> \sum_(z | mv z) h (g z) = q%:R * \sum_(f | c f) h f.
Proof.
move=> cg cq; rewrite (partition_big g c) //= mulr_sumr; apply: eq_bigr => f cf.
rewrite (eq_bigr (fun=> h f)) => [|z /andP[_ /eqP->] //].
by rewrite sumr_const -(cq f cf) cardsE mulr_natl.
Qed.

Lemma count_moves : m%:R * #|[set f | ok f && sees f]|%:R = k%:R * #|[set f | ok f && ~~ sees f]|%:R :> R.
Proof.
have one (c : pred F) : \sum_(f | c f) 1 = #|[set f | c f]|%:R :> R by rewrite sumr_const cardsE.
have H1 := @sum_moves (fun f => ok f && sees f) src m (fun=> 1) src_sees.
have H2 := @sum_moves (fun f => ok f && ~~ sees f) dst k (fun=> 1) dst_blind.
rewrite -!one -H1 => [|f /andP[]]; last exact: moves_from.
by rewrite -H2 => // f /andP[]; apply: moves_to.
Qed.

Lemma uniform_pmf : (0 < #|[set f | ok f]|)%N -> pmf uniform.
Proof.
move=> pos; split=> [f|]; first by rewrite /uniform; case: ifP => // _; rewrite invr_ge0 ler0n.
rewrite /uniform -big_mkcond sumr_const /= -[LHS]mulr_natl -cardsE divff //.
by rewrite pnatr_eq0 -lt0n.
Qed.

Theorem coupling p : (0 < #|[set f | ok f]|)%N -> (0 < k + m)%N -> p = k%:R / (k + m)%:R ->
  indist (1 + p * (E - 1)) (p * d) (mix uniform P) (mix uniform Q).
Proof.
move=> pos km pE A; rewrite !mass_mix.
have E0 : 0 < E by apply: lt_le_trans E1.
set c : R := #|[set f | ok f && sees f]|%:R; set c' : R := #|[set f | ok f && ~~ sees f]|%:R.
pose X (M : F -> O -> R) : R := \sum_(f | ok f && sees f) mass (M f) A.
pose Y (M : F -> O -> R) : R := \sum_(f | ok f && ~~ sees f) mass (M f) A.
set t : R := #|[set f | ok f]|%:R; have t0 : 0 < t by rewrite ltr0n.
have sum M : \sum_j uniform j * mass (M j) A = t^-1 * (X M + Y M).
  rewrite (bigID (fun f => ok f)) /= [X in _ + X]big1 ?addr0 => [|f]; last by rewrite /uniform => /negbTE->; rewrite mul0r.
  rewrite (bigID (fun f => sees f)) /= mulrDr /X /Y !mulr_sumr.
  by congr (_ + _); apply: eq_bigr => f /andP[okf _]; rewrite /uniform okf.
have YE : Y P = Y Q by apply: eq_bigr => f /andP[okf nf]; apply: eq_bigr => o _; apply: blind.
have tE : t = c + c'.
  rewrite /t /c /c' -natrD -!sum1_card; congr _%:R; rewrite (bigID (fun f => sees f)) /=.
  by congr addn; apply: eq_bigl => f; rewrite !inE.
have cc : m%:R * c = k%:R * c' := count_moves.
have n0 : 0 < (k + m)%:R :> R by rewrite ltr0n.
set n : R := (k + m)%:R in n0; have nm : n - k%:R = m%:R by rewrite /n natrD addrAC subrr add0r.
have nc : n * c = k%:R * t by rewrite /n natrD tE mulrDl mulrDr cc.
(* The sample that sees the user on both sides, and the moves. *)
have H1 : X P <= E * X Q + d * c.
  rewrite /X mulr_sumr; apply: (@le_trans _ _ (\sum_(f | ok f && sees f) (E * mass (Q f) A + d))).
    by apply: ler_sum => f /andP[okf sf]; apply: seen.
  by rewrite big_split /= ler_add2l sumr_const -cardsE -mulr_natr.
have H2 : (n - k%:R) * X P <= E * (k%:R * Y Q) + d * ((n - k%:R) * c).
  rewrite nm -YE -(sum_moves (c := fun f => ok f && sees f) (fun f => mass (P f) A) src_sees) => [|f /andP[]]; last first.
    exact: moves_from.
  rewrite -(sum_moves (c := fun f => ok f && ~~ sees f) (fun f => mass (P f) A) dst_blind) => [|f /andP[]]; last first.
    exact: moves_to.
  have -> : m%:R * c = \sum_(z | mv z) 1 :> R.
    rewrite (sum_moves (c := fun f => ok f && sees f) (q := m) (fun=> 1) src_sees) => [|f /andP[]]; last exact: moves_from.
    by rewrite sumr_const -cardsE.
  by rewrite !mulr_sumr -big_split /=; apply: ler_sum => z mz; rewrite mulr1; apply: moved.
have key : n * (X P + Y P) <= (n + k%:R * (E - 1)) * (X Q + Y Q) + d * (n * c).
  rewrite YE mulrDr -(ring_total_sample (ring_of R)) ler_add2r -(ler_pmul2l E0) (ring_split_sample (ring_of R) n k%:R E).
  apply: (@le_trans _ _ ((n + k%:R * (E - 1)) * (E * X Q + d * c) +
      (E - 1) * (E * (k%:R * Y Q) + d * ((n - k%:R) * c)))); last by rewrite (ring_join_sample (ring_of R)).
  apply: ler_add; apply: ler_wpmul2l => //; last by rewrite subr_ge0.
  by rewrite addr_ge0 ?mulr_ge0 ?ler0n ?subr_ge0 // ltW.
rewrite !sum -(ler_pmul2l t0) -(ler_pmul2l n0) mulrA -[n * t * _]mulrA mulVKf ?gt_eqF //.
apply: le_trans key _; rewrite nc.
have pn : n * p = k%:R by rewrite pE mulrCA divff ?mulr1 // gt_eqF.
rewrite -pn; by rewrite (ring_end_sample (ring_of R) n p E d (X Q + Y Q) (mulfV (negbT (gt_eqF t0)))).
Qed.
End Coupling.

(** Subsets of k of the n users. [B x T]: the law on the records of the users T. *)
Section Subsets.
Variables (R : realFieldType) (I : finType) (U : Type) (O : finType) (k : nat) (E d : R).
Variable B : {ffun I -> U} -> {set I} -> O -> R.
Hypothesis E1 : 1 <= E.
Hypothesis kn : (k <= #|I|)%N.
Hypothesis B_local : forall (x x' : {ffun I -> U}) (T : {set I}), (forall j, j \in T -> x j = x' j) -> B x T =1 B x' T.
(** The record of a user in the sample is replaced; by any record, or by that of a user outside. *)
Hypothesis B_replace : forall (x x' : {ffun I -> U}) (T : {set I}), #|T| = k -> neighbors x x' -> indist E d (B x T) (B x' T).
Hypothesis B_swap : forall (x : {ffun I -> U}) (T : {set I}) i j, #|T| = k -> i \in T -> j \notin T ->
  indist E d (B x T) (B x (j |: T :\ i)).
Definition sized (T : {set I}) := #|T| == k.

(** [GKKMMZ23, Theorem 7], for laws that do not depend on the order of the records. p = k / n. *)
Theorem subsample_private : let p := k%:R / #|I|%:R in
  private (1 + p * (E - 1)) (p * d) (fun x => mix (uniform R sized) (B x)).
Proof.
move=> p x x' [i xx']; have pE : p = k%:R / (k + (#|I| - k))%:R by rewrite subnKC.
have n0 : (0 < k + (#|I| - k))%N by rewrite subnKC //; apply/card_gt0P; exists i.
pose mv (z : {set I} * I) := [&& #|z.1| == k, i \in z.1 & z.2 \notin z.1].
apply: (@coupling R _ _ O sized (fun T => i \in T) mv (fun z => z.1) (fun z => z.2 |: z.1 :\ i) k (#|I| - k)
  E d (B x) (B x')) => //.
- by move=> [T j] /and3P[/= cT iT _]; rewrite /sized cT.
- move=> [T j] /and3P[/= cT iT jT]; have ij : (i == j) = false by apply: contraNF jT => /eqP<-.
  have jTi : j \notin T :\ i by rewrite inE (negbTE jT) andbF.
  rewrite /sized cardsU1 jTi in_setU1 ij in_setD1 eqxx /= andbT.
  by move: cT; rewrite (cardsD1 i) iT.
- move=> T cT iT; have -> : [set z | mv z && (z.1 == T)] = setX [set T] (~: T).
    apply/setP => -[S j]; rewrite !inE /mv /=; case: (S =P T) => [->|_]; last by rewrite andbF.
    by rewrite andbT iT; move: cT; rewrite /sized => /eqP->; rewrite eqxx.
  by rewrite cardsX cards1 mul1n cardsCs setCK (eqP cT).
- move=> T cT iT; have -> : [set z | mv z && (z.2 |: z.1 :\ i == T)] = [set (i |: T :\ j, j) | j in T].
    apply/setP => -[S j]; rewrite inE /mv /=; apply/idP/imsetP => [/andP[/and3P[cS iS jS] /eqP TE]|[j' jT [-> ->]]].
      have jSi : j \notin S :\ i by rewrite inE (negbTE jS) andbF.
      by exists j; rewrite -TE ?setU11 // setU1K ?setD1K.
    have ij : j' != i by apply: contraNneq iT => <-.
    have iTj : i \notin T :\ j' by rewrite inE (negbTE iT) andbF.
    rewrite setU1K // setD1K // eqxx setU11 cardsU1 iTj !inE eqxx (negbTE ij) /= andbT.
    by move: cT; rewrite /sized (cardsD1 j' T) jT => ->.
  by rewrite card_imset ?(eqP cT) // => a b [].
- by move=> T /eqP cT _; apply: B_replace => //; exists i.
- by move=> T _ iT; apply: B_local => j jT; apply: xx'; rewrite inE; apply: contraNneq iT => <-.
- by move=> [T j] /and3P[/= /eqP cT iT jT]; apply: B_swap.
- have -> : [set T | sized T] = [set T : {set I} | #|T| == k] by [].
  by rewrite card_draws bin_gt0.
Qed.
End Subsets.

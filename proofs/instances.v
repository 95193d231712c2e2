(** The hypotheses of the main theorems can be met: each is applied to a small case, in rational numbers, whose release
    is a probability distribution and says something. *)
From Coq Require Import NArith.
From mathcomp Require Import all_ssreflect all_algebra.
Require Import indist users tables delstab certificate.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** Users with one bit each; a list of masses as a function. *)
Definition masses (s : seq rat) k : rat := nth 0 s k.
Definition yes (I : finType) (x : {ffun I -> bool}) := (\sum_i x i)%N.
Definition first_user (v : seq bool) (o : bool) : rat := (o == head false v)%:R.

Lemma yes_moves_by_one (I : finType) (x x' : {ffun I -> bool}) : neighbors x x' -> (yes x <= (yes x').+1)%N.
Proof.
case=> i xx'; rewrite /yes (bigD1 i) //= [X in (_ <= X.+1)%N](bigD1 i) //=.
rewrite (eq_bigr (fun j => x' j : nat)) => [|j ji]; last by rewrite xx' // inE.
by rewrite -addSn; apply: leq_add => //; case: (x i).
Qed.

Lemma first_user_pmf v : pmf (first_user v).
Proof.
split=> [o|]; first exact: ler0n.
by rewrite (bigD1 (head false v)) //= /first_user eqxx big1 ?addr0 // => o /negbTE->.
Qed.

(** delstab_any_algorithm: three users, one is kept, "the first kept user's bit" is made private at E = 4, d = 1/2 by
    the refusal probabilities 0, 1/2, 1. On equal users there is no refusal. *)
Example delstab_any_algorithm_instance : let table := [:: 1; 2]%num in
  let release := fun choice => optimal (@kept_data [finType of 'I_3] bool) first_user
    (exactly_stable first_user 1 (2 : rat) 0) 2 choice (refusal rat_realFieldType 2 0 table) in
  exists choice, [/\ forall x, pmf (release choice x), private 4%:R (1 / 2%:R) (release choice) &
    release choice [ffun=> true] None = 0].
Proof.
move=> table release; have keeps : (1 <= #|'I_3| - 2)%N by rewrite card_ord.
have c2 : (2 <= 2.+1)%N by [].
have [choice [cp cg]] := choice_exists rat_realDomainType keeps (exactly_stable first_user 1 (2 : rat) 0) c2.
have low : (nat_of_bin 1)%:R <= (1 : rat) * (nat_of_bin 1)%:R by [].
have slack : (nat_of_bin 1)%:R <= (1 / 2%:R : rat) * (nat_of_bin 2)%:R * (nat_of_bin 1)%:R by [].
have check : check_refusal 2 1 1 1 0 table by vm_compute.
exists choice; split.
- have [q01 q1 _ _ _] := check_refusal_sound low slack check.
  by move=> x; apply: optimal_pmf => //; apply: first_user_pmf.
- exact: (delstab_any_algorithm first_user_pmf keeps cp cg (EL := 2%:R) (dL := 0) (ET := 1) (dT := 1 / 2%:R) (ln := 1)
    (sn := 1) (den := 1) (t := table)).
- rewrite /release /= /rstar /=; case: ifP => [_|/existsP[]]; first by [].
  exists set0; rewrite cards0 eqxx; apply/andP; split=> //; apply/forallP => J; apply/forallP => J'.
  apply/implyP => /andP[/andP[_ /eqP cJ] /andP[_ /eqP cJ']].
  have all_yes (K : {set 'I_3}) : #|K| = 1%N -> kept_data [ffun=> true] K = [:: true].
    move=> cK; have : size (kept_data [ffun=> true] K) = 1%N by rewrite size_map -cardE.
    have : all id (kept_data [ffun=> true] K) by apply/allP => b /mapP[j _ ->]; rewrite ffunE.
    by case: (kept_data _ K) => [|[] []].
  by rewrite /exact !all_yes // /hs big_bool /first_user /=.
Qed.

(** delstab_laplace: five users, D = 4, noise of masses 1/4, 1/2, 1/4; equal data are compatible, and at most two kinds
    of users may remain. E = 8, d = 1/4. *)
Example delstab_laplace_instance : let p := masses [:: 1 / 4%:R; 1 / 2%:R; 1 / 4%:R] in
  let stable := stable (@kept_data [finType of 'I_5] bool) 1 eq_op
    (fun x S => size (undup (kept_data x (~: S))) <= 2)%N in
  exists choice, (forall x, pmf (algorithm1 (@kept_data _ bool) first_user stable 3 choice p x)) /\
    private 8%:R (1 / 4%:R) (algorithm1 (@kept_data _ bool) first_user stable 3 choice p).
Proof.
move=> p st; have keeps : (1 <= #|'I_5| - 4)%N by rewrite card_ord.
have c3 : (3 <= 4.+1)%N by [].
have [choice [cp cg]] := choice_exists rat_realDomainType keeps st c3.
have p0 k : 0 <= p k by case: k => [|[|[|k]]] //; rewrite /p /masses nth_default.
have p1 : \sum_(0 <= k < 3) p k = 1 by rewrite !big_nat_recl // big_geq.
have local J (x x' : {ffun 'I_5 -> bool}) : agree J x x' -> kept_data x J = kept_data x' J.
  by move=> xx'; apply/eq_in_map => j; rewrite mem_enum; apply: xx'.
exists choice; split=> [x|]; first by apply: algorithm1_pmf => //; apply: first_user_pmf.
apply: (@delstab_laplace _ _ _ _ _ _ local _ first_user_pmf _ _ keeps 2%:R 0 _ _ _ _ _ _ _ 2 p 2%:R (1 / 4%:R)) => //.
- by move=> u v /eqP->; apply: indist_refl => //; apply: first_user_pmf.
- by move=> S x x' xx'; rewrite (local (~: S) x x').
- move=> x S S' SS'; apply: leq_trans; apply: uniq_leq_size (undup_uniq _) _ => b.
  rewrite !mem_undup => /mapP[j jS ->]; apply: map_f; move: jS; rewrite !mem_enum !inE.
  by apply: contra => /(subsetP SS').
- by case=> [|[|k]].
- by case=> [|[|k]].
Qed.

(** noisy_count_private: how many of three users have the bit, with the same noise. *)
Example noisy_count_instance : let release := fun x : {ffun 'I_3 -> bool} =>
    shifted (K := 6) (masses [:: 1 / 4%:R; 1 / 2%:R; 1 / 4%:R]) 2 (yes x) in
  (forall x, pmf (release x)) /\ private 2%:R (1 / 4%:R) release.
Proof.
have p0 k : 0 <= masses [:: 1 / 4%:R; 1 / 2%:R; 1 / 4%:R] k by case: k => [|[|[|k]]] //; rewrite /masses nth_default.
split=> [x|].
  apply: shifted_pmf => //; last by rewrite !big_nat_recl // big_geq.
  have le : (yes x <= 3)%N.
    by rewrite -[X in (_ <= X)%N](card_ord 3) -sum1_card; apply: leq_sum => i _; case: (x i).
  by rewrite addn2 !ltnS.
apply: noisy_count_private => // [[|[|k]]|[|[|k]]|] //; exact: yes_moves_by_one.
Qed.

(** clamped_private: the count clamped to 0, 1, 2, with the noise of masses 1/3, 1/6, ... to both sides. *)
Example clamped_instance : let release := fun x : {ffun 'I_3 -> bool} =>
    clamped (N := 2) (masses [:: 1 / 3%:R; 1 / 6%:R]) (masses [:: 2%:R / 3%:R; 1 / 3%:R; 1 / 6%:R]) (minn (yes x) 2) in
  (forall x, pmf (release x)) /\ private 2%:R 0 release.
Proof.
have p0 k : 0 <= masses [:: 1 / 3%:R; 1 / 6%:R] k by case: k => [|[|k]] //; rewrite /masses nth_default.
have S0 k : 0 <= masses [:: 2%:R / 3%:R; 1 / 3%:R; 1 / 6%:R] k.
  by case: k => [|[|[|k]]] //; rewrite /masses nth_default.
split=> [x|].
  split=> [z|]; first exact: clamped_ge0.
  by rewrite !big_ord_recl big_ord0; case: (yes x) => [|[|[|n]]].
apply: (@clamped_private _ 2 _ _ 2%:R _ _ _ _ _ _ _ _ _ _ _ 1) => // [[|[|k]]|[|k]|[|k]|x|x x' xx'] //.
  exact: geq_minr.
by rewrite addn_minl leq_min !geq_min addn1 (yes_moves_by_one xx') /= orbT.
Qed.

(** exponential_private: two candidates, whose scores are the numbers of users without and with the bit. *)
Example exponential_instance : let score (x : {ffun 'I_3 -> bool}) (o : bool) := yes [ffun i => x i != o] in
  let weight x o : rat := ideal false 9 (1 / 2%:R) (score x) o in
  let P x o := weight x o / \sum_j weight x j in (forall x, pmf (P x)) /\ private 4%:R 0 P.
Proof.
move=> score weight P.
have w0 x o : 0 < weight x o by rewrite exprn_gt0.
have W0 x : 0 < \sum_j weight x j by rewrite (bigD1 true) //= ltr_spaddl // sumr_ge0 // => o _; apply: ltW.
have PW x o : P x o * (\sum_j weight x j) = weight x o by rewrite divfK // gt_eqF.
have P0 x o : 0 <= P x o by rewrite divr_ge0 // ltW.
split=> [x|]; first by split=> //; rewrite -mulr_suml divff // gt_eqF.
apply: (@exponential_private _ _ false 9 (1 / 2%:R) _ _ _ _ score 1 1 1 0 _ weight) => // [x x' o [i xx']|x o|x o|x o].
- by rewrite addn1; apply: yes_moves_by_one; exists i => j /xx' e; rewrite !ffunE e.
- by rewrite mul1r !lexx.
- by rewrite PW addr0 mul1r.
- by rewrite PW subr0 mul1r.
Qed.

(** Transcripts of local protocols with adaptive rounds: whoever reports next, and by which randomizer, may depend on
    all reports before; a user reports at most once. The transcript is as private for one user as that one report.
    Page: docs/proofs/local_protocols.md, "Privacy of the transcript". The page has fixed slots and delta = 0
    ([transcript_private] in tables.v); here the rounds are adaptive, and delta is not multiplied by their number. *)
From mathcomp Require Import all_ssreflect all_algebra.
Require Import indist users.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Transcripts.
Variables (R : realDomainType) (I : finType) (U : Type) (O : finType).
Local Notation past := (history O).
(** Who reports in round j after the reports h: a user, or nobody. A round of nobody is a message of the servers, or a
    public coin, such as one that chooses the next user or randomizer. *)
Variable who : forall j, past j -> option I.
(** The randomizer that is then used, on all that the user has. It may depend on h in any way, so on the user too. *)
Variable send : forall j, past j -> U -> O -> R.
Variable public : forall j, past j -> O -> R.
Hypothesis send_pmf : forall j h u, pmf (@send j h u).
Hypothesis public_pmf : forall j h, pmf (@public j h).
Variables E d : R.
Hypothesis E1 : 1 <= E.
Hypothesis d0 : 0 <= d.
Hypothesis send_private : forall j h u v, indist E d (@send j h u) (@send j h v).

Definition round (x : {ffun I -> U}) j (h : past j) : O -> R :=
  if who h is Some i then send h (x i) else public h.
Definition transcript k x : past k -> R := rounds R O k (fun j => @round x j).
Fixpoint asked (i : I) k : past k -> nat :=
  if k is k'.+1 then fun h => (asked i h.1 + (who h.1 == Some i))%N else fun=> 0%N.

Lemma round_pmf x j h : pmf (@round x j h).
Proof. by rewrite /round; case: (who h). Qed.

Lemma transcript_pmf k x : pmf (@transcript k x).
Proof. by apply: rounds_pmf => j h; apply: round_pmf. Qed.

Section Two.
Variables (x x' : {ffun I -> U}) (i : I).
Hypothesis xx' : differ_in [set i] x x'.

Lemma round_same k (h : past k) : who h != Some i -> round x h = round x' h.
Proof.
rewrite /round; case: (who h) => [j|] // ji; congr (send _ _); apply: xx'.
by rewrite inE; apply: contraNneq ji => ->.
Qed.

Lemma unasked k (h : past k) : asked i h = 0%N -> transcript x h = transcript x' h.
Proof.
elim: k h => [|k IH] //= [h o] /= /eqP; rewrite addn_eq0 => /andP[/eqP a0 now].
rewrite /transcript /= /joint /=; congr (_ * _); first exact: IH.
by rewrite round_same //; move: now; rewrite eqb0.
Qed.

(** delta is paid with the probability that the user is asked at all. *)
Lemma transcript_test k (g : past k -> R) : (forall h : past k, asked i h <= 1)%N -> (forall h : past k, 0 <= g h <= 1) ->
  \sum_(h : past k) transcript x h * g h <= E * (\sum_(h : past k) transcript x' h * g h) + d * (\sum_(h : past k) transcript x h * (asked i h)%:R).
Proof.
elim: k g => [|k IH] g once g01.
  rewrite [X in d * X]big1 => [|h _]; last by rewrite mulr0.
  rewrite mulr0 addr0 ler_pemull //; apply: sumr_ge0 => h _; rewrite mulr_ge0 ?ler01 //.
  by case/andP: (g01 h).
have E0 : 0 <= E := le_trans ler01 E1.
have p0 y (h : past k) : 0 <= transcript y h by case: (transcript_pmf k y).
have once' (h : past k) : (asked i h + (who h == Some i) <= 1)%N.
  case: (pickP (fun o : O => true)) => [o _|none]; first exact: once (h, o).
  have [_] := round_pmf x h; rewrite big1 => [/eqP|o]; last by have := none o.
  by rewrite eq_sym oner_eq0.
pose G y h := \sum_o round y h o * g (h, o).
have G01 y h : 0 <= G y h <= 1.
  have [r0 r1] := round_pmf y h; apply/andP; split.
    by apply: sumr_ge0 => o _; rewrite mulr_ge0 //; case/andP: (g01 (h, o)).
  by rewrite -r1; apply: ler_sum => o _; rewrite ler_pimulr //; case/andP: (g01 (h, o)).
have split y : \sum_(h : past k.+1) transcript y h * g h = \sum_(h : past k) transcript y h * G y h.
  rewrite /G; under [RHS]eq_bigr => h _ do rewrite mulr_sumr.
  by rewrite pair_big /=; apply: eq_bigr => -[h o] _ /=; rewrite /transcript /= /joint /= mulrA.
have paid : \sum_(h : past k.+1) transcript x h * (asked i h)%:R =
    \sum_(h : past k) transcript x h * (asked i h + (who h == Some i))%:R.
  transitivity (\sum_(h : past k) \sum_o transcript x h * round x h o * (asked i h + (who h == Some i))%:R).
    by rewrite pair_big /=; apply: eq_bigr => -[h o].
  apply: eq_bigr => h _; rewrite -mulr_suml -mulr_sumr; case: (round_pmf x h) => _ ->.
  by rewrite mulr1.
rewrite !split paid; pose f (h : past k) := if who h == Some i then 0 else G x h.
have f01 h : 0 <= f h <= 1 by rewrite /f; case: ifP => // _; rewrite lexx ler01.
have once1 (h : past k) : (asked i h <= 1)%N := leq_trans (leq_addr _ _) (once' h).
have := IH f once1 f01; set P := fun h : past k => transcript x h; set P' := fun h : past k => transcript x' h => H.
apply: (@le_trans _ _ (\sum_h P h * f h + \sum_h (if who h == Some i then E * (P' h * G x' h) + d * P h else 0))).
  rewrite -big_split /=; apply: ler_sum => h _; rewrite /f -/(P h); case: eqP => [now|_]; last by rewrite addr0.
  have same : P h = P' h.
    by apply: unasked; have := once' h; rewrite now eqxx addn1 ltnS leqn0 => /eqP.
  rewrite mulr0 add0r -same mulrCA [d * _]mulrC -mulrDr; apply: ler_wpmul2l; first exact: p0.
  rewrite /G /round now; apply: indist_test => [|o]; last exact: g01.
  exact: send_private.
apply: (le_trans (ler_add H (lexx _))); rewrite addrAC -addrA !mulr_sumr -!big_split /=.
rewrite [X in _ <= X]big_split /= -!big_split /=; apply: ler_sum => h _; rewrite -/(P h) -/(P' h) /f natrD.
case: eqP => [_|no]; last by rewrite !addr0 add0r (_ : G x h = G x' h) // /G round_same //; apply/eqP.
by rewrite !mulr0 add0r mulrDr mulr1 mulrDr addrCA addrA addrAC addrC addrA [X in _ <= X]addrAC addrC.
Qed.
End Two.

(** Interactive transcripts: one report per user, of any order, by randomizers chosen as one goes. *)
Theorem transcript_interactive k : (forall i (h : past k), asked i h <= 1)%N -> private E d (@transcript k).
Proof.
move=> once x x' [i xx'] A.
have := transcript_test xx' (g := fun h => (h \in A)%:R) (once i).
have mE y : \sum_(h : past k) transcript y h * (h \in A)%:R = mass (@transcript k y) A.
  by rewrite /mass [RHS]big_mkcond; apply: eq_bigr => h _; case: (h \in A); rewrite ?mulr1 ?mulr0.
rewrite !mE => H; apply: (le_trans (H _)) => [h|]; first by rewrite ler0n lern1 leq_b1.
rewrite ler_add2l; apply: ler_pimulr => //; have [p0 p1] := transcript_pmf k x; rewrite -[X in _ <= X]p1.
by apply: ler_sum => h _; rewrite ler_pimulr // lern1.
Qed.
End Transcripts.

(** The sorting bridge for windows: r* as the program computes it is r* as it is defined.
    Page: docs/proofs/delstab_paper.md, "Which relations are used" (Distance) and "Windows".
    Code: python/userdp/delstab/stable_sets.py, [smallest_window]; rust/core/src/stability/windows.rs, [smallest_window].
    windows.v is about increasing sequences of positions in sorted data; here they come from sets of users. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Coq Require Import Lia.
Require Import indist users delstab windows.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(** A subsequence chosen by a predicate is read at increasing positions. *)
Lemma positions (R : realDomainType) (T : Type) (f : T -> R) (a : pred T) (s : seq T) :
  exists2 k : nat -> nat, increasing k (size (filter a s)) (size s) &
    forall j, (j < size (filter a s))%N -> nth 0 (map f (filter a s)) j = nth 0 (map f s) (k j).
Proof.
case: s => [|x0 s0]; first by exists id; split.
move: (x0 :: s0) => {s0} s; pose pos := [seq p <- iota 0 (size s) | a (nth x0 s p)].
have E : filter a s = map (nth x0 s) pos.
  by rewrite -[s in LHS](take_size s) -(map_nth_iota0 x0 (leqnn _)) filter_map.
have sz : size (filter a s) = size pos by rewrite E size_map.
have lt : sorted ltn pos by apply: sorted_filter (iota_ltn_sorted _ _); apply: ltn_trans.
exists (nth 0%N pos); rewrite sz.
  split=> j jp; first by apply: (sorted_ltn_nth ltn_trans) => //; rewrite inE // ltnW.
  by have := mem_nth 0%N jp; rewrite mem_filter mem_iota add0n => /and3P[].
move=> j jp; rewrite E -map_comp (nth_map 0%N) //= (nth_map x0) //.
by have := mem_nth 0%N jp; rewrite mem_filter mem_iota add0n => /and3P[].
Qed.

Section Sorting.
Variables (R : realDomainType) (I : finType) (U : Type).

(** [val]: a user's statistic, clamped to the public range; None where it is no integer. *)
Variable val : U -> option R.
(** w users are kept; totals within t of each other, of those that can occur, are compatible. t may be negative: then
    nothing is (the program's distance -1). *)
Variables (w D : nat) (t : R) (ok : pred R).
Hypothesis keeps : (w <= #|I| - D)%N.
Hypothesis deletions : (D <= #|I|)%N.
Implicit Types (x : {ffun I -> U}) (J P S : {set I}).

Definition num x i : R := odflt 0 (val (x i)).
Definition total x J := \sum_(i in J) num x i.
(** What the algorithm is shown: the total, or that somebody has no statistic. *)
Definition shown x J : option R := if [forall i in J, val (x i)] then Some (total x J) else None.
Definition within (a b : option R) : bool :=
  if (a, b) is (Some a', Some b') then [&& ok a', ok b' & `|a' - b'| <= t] else false.
(** Users without a statistic are in every stable set. *)
Definition usable x S := [forall i, (i \in S) || val (x i)].
Hypothesis ok_total : forall x J, #|J| = w -> [forall i in J, val (x i)] -> ok (total x J).

(** What the program computes. [values]: the usable statistics, sorted; [range]: by prefix sums, of the window of N
    values from [start] on; [computed]: the first r, over all starts, whose range is at most t. *)
Definition values x : seq R := sort <=%R (pmap val (map x (enum I))).
Definition missing x := (#|I| - size (values x))%N.
Definition prefix x m := \sum_(0 <= j < m) nth 0 (values x) j.
Definition range x start N :=
  (prefix x (start + N) - prefix x (start + N - w)) - (prefix x (start + w) - prefix x start).
Definition has_window x r := has (fun start => range x start (size (values x) - r) <= t) (iota 0 r.+1).
Definition computed cap x := (minn cap (missing x) + find (has_window x) (iota 0 (cap - missing x)))%N.

(** The users behind the sorted values: by value, and by index where values are equal, since the sort is stable. *)
Definition line x : seq I := sort (relpre (num x) <=%R) [seq i <- enum I | val (x i)].
Definition ordered x P := [seq i <- line x | i \in P].
Definition at_ x P j := nth 0 (map (num x) (ordered x P)) j.

Lemma values_line x : values x = map (num x) (line x).
Proof.
rewrite /line -sort_map; congr sort; elim: (enum I) => //= i s ->; rewrite /oapp /num.
by case E: (val (x i)) => [a|] //=; rewrite E.
Qed.

Lemma line_uniq x : uniq (line x).
Proof. by rewrite sort_uniq filter_uniq // enum_uniq. Qed.

Lemma mem_line x i : (i \in line x) = val (x i).
Proof. by rewrite mem_sort mem_filter mem_enum andbT. Qed.

Lemma values_sorted x : sorted <=%R (values x).
Proof. exact: sort_sorted (@le_total _ R) _. Qed.

Lemma size_values x : size (values x) = #|[set i | isSome (val (x i))]|.
Proof.
rewrite values_line size_map -(card_uniqP (line_uniq x)).
by apply: eq_card => i; rewrite mem_line inE.
Qed.

Lemma size_ordered x P : (forall i, i \in P -> val (x i)) -> size (ordered x P) = #|P|.
Proof.
move=> use; have u : uniq (ordered x P) by rewrite filter_uniq // line_uniq.
rewrite -(card_uniqP u); apply: eq_card => i; rewrite mem_filter mem_line.
by case iP: (i \in P) => //=; rewrite use.
Qed.

Lemma total_ordered x P : (forall i, i \in P -> val (x i)) -> total x P = \sum_(0 <= j < #|P|) at_ x P j.
Proof.
move=> use; rewrite -(size_ordered use) -(size_map (num x)) -(big_nth 0 xpredT id) big_map.
rewrite big_uniq ?filter_uniq ?line_uniq //=; apply: eq_bigl => i; rewrite mem_filter mem_line.
by case iP: (i \in P) => //=; rewrite use.
Qed.

Lemma at_sorted x P : sorted <=%R (map (num x) (ordered x P)).
Proof.
rewrite sorted_map /ordered; apply: sorted_filter; first by move=> b a c; apply: le_trans.
by rewrite -sorted_map -values_line values_sorted.
Qed.

Lemma nth_sorted (s : seq R) : sorted <=%R s -> sorted_upto (nth 0 s) (size s).
Proof.
move=> so a b /andP[ab bs]; apply: (sorted_leq_nth le_trans le_refl) => //; rewrite inE //.
exact: leq_ltn_trans ab bs.
Qed.

Lemma total_uniq x (s : seq I) : uniq s -> total x [set i in s] = \sum_(i <- s) num x i.
Proof. by move=> u; rewrite big_uniq //=; apply: eq_bigl => i; rewrite inE. Qed.

(** "Under the distance relation a pool of N users is stable iff its top-w total minus its bottom-w total is at most t."
    The page's pool is the complement of S; the totals are of sets of users, not of positions. *)
Theorem pool_spread x P : (forall i, i \in P -> val (x i)) -> (w <= #|P|)%N ->
  (forall J J', J \subset P -> #|J| = w -> J' \subset P -> #|J'| = w -> `|total x J - total x J'| <= t) <->
  spread (at_ x P) w #|P| <= t.
Proof.
move=> use wP; have so := nth_sorted (at_sorted x P); rewrite size_map size_ordered // in so.
split=> [H|le J J' JP cJ J'P cJ'].
  pose lo := take w (ordered x P); pose hi := drop (#|P| - w) (ordered x P).
  have u : uniq (ordered x P) by rewrite filter_uniq // line_uniq.
  have sub (s : seq I) : subseq s (ordered x P) -> [set i in s] \subset P /\ uniq s.
    move=> ss; split; last exact: subseq_uniq ss u.
    by apply/subsetP => i; rewrite inE => /(mem_subseq ss); rewrite mem_filter => /andP[].
  have [loP ulo] := sub lo (take_subseq _ _); have [hiP uhi] := sub hi (drop_subseq _ _).
  have clo : #|[set i in lo]| = w by rewrite cardsE (card_uniqP ulo) size_takel // size_ordered.
  have chi : #|[set i in hi]| = w by rewrite cardsE (card_uniqP uhi) size_drop size_ordered // subKn.
  apply: le_trans (H _ _ hiP chi loP clo); apply: le_trans (ler_norm _); rewrite !total_uniq //.
  have tot (s : seq I) : \sum_(i <- s) num x i = \sum_(0 <= j < size s) nth 0 (map (num x) s) j.
    by rewrite -(size_map (num x)) -(big_nth 0 xpredT id) big_map.
  rewrite !tot /spread /lo /hi size_takel ?size_ordered // size_drop size_ordered // subKn //.
  apply: ler_sub; rewrite !big_nat; apply: ler_sum => j /andP[_ jw].
    by rewrite map_drop nth_drop.
  by rewrite map_take nth_take.
have bounds (K : {set I}) : K \subset P -> #|K| = w -> \sum_(0 <= j < w) at_ x P j <= total x K <=
    \sum_(0 <= j < w) at_ x P (#|P| - w + j)%N.
  move=> KP cK; have useK i : i \in K -> val (x i) by move=> /(subsetP KP)/use.
  have [k inc kE] := positions (num x) (fun i => i \in K) (ordered x P).
  have KE : filter (fun i => i \in K) (ordered x P) = ordered x K.
    rewrite -filter_predI; apply: eq_filter => i /=.
    by case iK: (i \in K) => //=; rewrite (subsetP KP).
  rewrite KE size_ordered // cK size_ordered // in inc kE.
  rewrite total_ordered // cK.
  have -> : \sum_(0 <= j < w) at_ x K j = \sum_(0 <= j < w) at_ x P (k j).
    by rewrite !big_nat; apply: eq_bigr => j /andP[_ jw]; apply: kE.
  exact: kept_totals.
have /andP[a1 a2] := bounds J JP cJ; have /andP[b1 b2] := bounds J' J'P cJ'.
apply: le_trans le; rewrite ler_norml opprB; apply/andP; split; first exact: ler_sub.
exact: ler_sub.
Qed.

(** Stability of a set, by the spread of what it leaves. *)
Lemma stable_spread x S : (#|S| <= D)%N -> stable shown w within usable x S =
  usable x S && (spread (at_ x (~: S)) w #|~: S| <= t).
Proof.
move=> SD; rewrite /stable; case use: (usable x S) => //=.
have useP i : i \in ~: S -> val (x i) by rewrite inE => iS; move/forallP: use => /(_ i); rewrite (negbTE iS).
have wP : (w <= #|~: S|)%N by apply: leq_trans keeps _; rewrite cardsCs setCK leq_sub2l.
have see J : J \subset ~: S -> [forall i in J, val (x i)].
  by move=> JS; apply/forallP => i; apply/implyP => /(subsetP JS)/useP.
apply/idP/idP => [/forallP H|/(pool_spread useP wP) H].
  apply/(pool_spread useP wP) => J J' JS cJ J'S cJ'; move/forallP: (H J) => /(_ J')/implyP.
  by rewrite /kept JS J'S cJ cJ' eqxx => /(_ isT); rewrite /within /shown !see //= => /and3P[].
apply/forallP => J; apply/forallP => J'; apply/implyP => /andP[/andP[JS /eqP cJ] /andP[J'S /eqP cJ']].
by rewrite /within /shown !see //= !ok_total ?see //= H.
Qed.

Lemma segment x a n : prefix x (a + n) - prefix x a = \sum_(0 <= j < n) nth 0 (values x) (a + j)%N.
Proof.
rewrite /prefix (@big_cat_nat _ _ _ a 0 (a + n)) ?leq_addr //= addrAC subrr add0r.
by rewrite -[X in \sum_(X <= _ < _) _]add0n big_addn addnC addnK; apply: eq_bigr => j _; rewrite addnC.
Qed.

Lemma range_spread x start N : (w <= N)%N -> range x start N = spread (fun j => nth 0 (values x) (start + j)%N) w N.
Proof.
move=> wN; rewrite /range -{1}(@subnK w (start + N)) ?(leq_trans wN) ?leq_addl // !segment /spread.
by congr (_ - _); apply: eq_bigr => j _; rewrite -addnBA // addnA.
Qed.

(** The users of a window. *)
Definition window x start N := [set i in take N (drop start (line x))].

Lemma window_ordered x start N : ordered x (window x start N) = take N (drop start (line x)).
Proof.
have ss : subseq (take N (drop start (line x))) (line x).
  exact: subseq_trans (take_subseq _ _) (drop_subseq _ _).
by rewrite [RHS](subseq_uniqP (line_uniq x) ss); apply: eq_filter => i; rewrite inE.
Qed.

Lemma window_usable x start N i : i \in window x start N -> val (x i).
Proof. by rewrite inE => /mem_take/mem_drop; rewrite mem_line. Qed.

Lemma window_card x start N : (start + N <= size (values x))%N -> #|window x start N| = N.
Proof.
rewrite values_line size_map => le; rewrite -(size_ordered (@window_usable x start N)) window_ordered.
by rewrite size_takel // size_drop leq_subRL // (leq_trans (leq_addr N _)).
Qed.

Lemma window_spread x start N : (start + N <= size (values x))%N -> (w <= N)%N ->
  spread (at_ x (window x start N)) w N = range x start N.
Proof.
move=> le wN; rewrite range_spread // /spread /at_ window_ordered values_line map_take map_drop.
by congr (_ - _); rewrite !big_nat; apply: eq_bigr => j /andP[_ jw]; rewrite nth_take ?nth_drop //;
  [rewrite -ltn_subRL subKn | apply: leq_trans wN].
Qed.

(** "Among the pools of N users a window of the sorted values has the smallest such spread": for every pool of N users
    there is a window of N users, itself a pool, whose spread, as the program computes it, is no larger. Ties are broken
    by the index of the user; any order of equal values would do. *)
Theorem window_least x P : (forall i, i \in P -> val (x i)) -> (w <= #|P|)%N ->
  exists2 start, (start + #|P| <= size (values x))%N & range x start #|P| <= spread (at_ x P) w #|P|.
Proof.
move=> use wP; have [k inc kE] := positions (num x) (fun i => i \in P) (line x).
rewrite -/(ordered x P) size_ordered // -(size_map (num x) (line x)) -values_line in inc kE.
have [start le H] := window_best (nth_sorted (values_sorted x)) wP inc.
exists start => //; rewrite range_spread //; apply: le_trans H _.
by rewrite /spread; apply: ler_sub; rewrite !big_nat; apply: ler_sum => j /andP[_ jw]; rewrite /at_ kE //;
  [rewrite -ltn_subRL subKn | apply: leq_trans wP].
Qed.

Lemma missing_values x : (missing x + size (values x) = #|I|)%N.
Proof. by rewrite /missing subnK // size_values max_card. Qed.

Lemma usable_size x S : usable x S -> (missing x <= #|S|)%N.
Proof.
move=> /forallP use; rewrite /missing size_values [#|S|]cardsCs; apply/leq_sub2l/subset_leq_card.
by apply/subsetP => i; rewrite !inE => no; move: (use i); rewrite (negbTE no).
Qed.

(** A stable set of r users exists iff some window of the other n - r has a range of at most t. *)
Theorem stable_window x r : (r <= D)%N -> has_stable (stable shown w within usable) x r =
  (missing x <= r)%N && has_window x (r - missing x).
Proof.
move=> rD; have MV := missing_values x.
have wN : (w <= #|I| - r)%N by apply: leq_trans keeps _; apply: leq_sub2l.
apply/existsP/andP => [[S /andP[/eqP cS]]|[mr /hasP[start]]].
  rewrite stable_spread ?cS // => /andP[use le]; have mS := usable_size use; rewrite cS in mS; split=> //.
  have useP i : i \in ~: S -> val (x i) by rewrite inE => iS; move/forallP: use => /(_ i); rewrite (negbTE iS).
  have cP : #|~: S| = (#|I| - r)%N by rewrite cardsCs setCK cS.
  have wP : (w <= #|~: S|)%N by rewrite cP.
  have [start sP H] := window_least useP wP; have NE : (size (values x) - (r - missing x))%N = #|~: S|.
    by rewrite cP -MV -[in RHS](subnKC mS) subnDl.
  apply/hasP; exists start; last by rewrite NE (le_trans H).
  rewrite mem_iota add0n ltnS /=; have rI : (r <= #|I|)%N by rewrite -cS max_card.
  have sP' : (start + (#|I| - r) <= size (values x))%N by rewrite -cP.
  by clear - MV mS rI sP'; nlia.
rewrite mem_iota add0n ltnS /= => sr le; pose N := (size (values x) - (r - missing x))%N.
have rI := leq_trans rD deletions.
have NE : N = (#|I| - r)%N by rewrite /N; clear - MV mr rI; apply/eqP; rewrite eqn_leq; nlia.
have sN : (start + N <= size (values x))%N by rewrite NE; clear - MV mr rI sr; nlia.
have wN' : (w <= N)%N by rewrite NE.
exists (~: window x start N); have cS : #|~: window x start N| = r.
  by rewrite cardsCs setCK window_card // NE subKn.
rewrite cS eqxx stable_spread ?cS // setCK window_card // window_spread // le andbT.
by apply/forallP => i; rewrite inE; case iW: (i \in _) => //=; rewrite (window_usable iW).
Qed.

(** "So r* over windows is r* over all sets": the program's number is the definition's, for every dataset. *)
Theorem rstar_windows cap x : (cap <= D.+1)%N -> rstar (stable shown w within usable) cap x = computed cap x.
Proof.
move=> capD; rewrite /rstar /computed; set m := minn cap (missing x).
have mc : (m <= cap)%N := geq_minl _ _.
rewrite -{1}(subnKC mc) iotaD find_cat size_iota add0n.
have -> : has (has_stable (stable shown w within usable) x) (iota 0 m) = false.
  apply/hasP => -[r]; rewrite mem_iota add0n => /andP[_ rm].
  have rD : (r <= D)%N by rewrite -ltnS (leq_trans _ capD) // (leq_trans rm).
  by rewrite stable_window // leqNgt (leq_trans rm (geq_minr _ _)).
congr (_ + _)%N; rewrite -[m in iota m _]addn0 iotaDl find_map.
have [le|lt] := leqP cap (missing x).
  by have -> : m = cap; [apply/minn_idPl | move/eqP: le => ->; rewrite subnn].
have -> : m = missing x by apply/minn_idPr; apply: ltnW.
apply: eq_in_find => r; rewrite mem_iota add0n => /andP[_ rc] /=.
by rewrite stable_window ?leq_addr ?addKn // -ltnS (leq_trans _ capD) // -ltn_subRL.
Qed.
End Sorting.

//! The smallest stable sets of users grouped by type, where a pool may have few types only.
//!
//! The search asks for distributions whenever it needs some: whoever runs the algorithm answers between two steps.
//! Proof that nothing is left out: `docs/proofs/delstab_paper.md`, "Choices".

use super::{
    StableFamily,
    choices::Choices,
    pools::{Closeness, Key, Keys, Needs, Pools, check_rows},
};
use crate::{Error, Result, control::Control, family::PmfMatrix};
use std::{mem, sync::Arc};

/// How often a failure is looked into for its causes, with success.
pub const MAX_LESSONS: usize = 1024;
/// And without: futile lessons slow down more than they help.
const MAX_FUTILE: usize = 64;

/// Users by type, and the public bounds on the search.
#[derive(Debug, Clone)]
pub struct Problem {
    /// Users of each type.
    pub counts: Vec<usize>,
    /// Users on whom the algorithm fails: no pool with them is stable.
    pub unusable: usize,
    /// Users kept of all, w = n - D.
    pub kept: usize,
    /// The largest size of a stable set that matters.
    pub limit: usize,
    /// Types that a stable pool may have.
    pub max_types: usize,
    /// Choices of types that are looked at, if more are refused.
    pub max_choices: Option<usize>,
    /// What distributions depend on. None: every kept set has one of its own, and there are no choices.
    pub keys: Option<Keys>,
    /// How kept sets are compared.
    pub closeness: Closeness,
}

/// Distributions that the search needs, a row each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// Those that these keys stand for.
    Keys(Vec<Key>),
    /// Those of the deletion vectors from the active types, row after row.
    Deletions {
        /// Types in play.
        active: Vec<usize>,
        /// Users deleted of each of them.
        vectors: Vec<u16>,
    },
}

/// The smallest stable sets of one dataset.
#[derive(Debug, Clone)]
pub struct Smallest {
    /// Their size.
    pub size: usize,
    /// Users in all of them, because their types are not kept.
    pub dropped: usize,
    /// Types that are kept.
    pub active: Vec<usize>,
    /// All stable sets of their users.
    pub family: Arc<StableFamily>,
    /// The distributions on what is kept, a row for each deletion vector.
    pub matrix: Arc<PmfMatrix<'static>>,
    /// Rows of kept sets on which the algorithm fails.
    pub incompatible: Vec<usize>,
}

/// What a search has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// Grids that were decided.
    pub grids: usize,
    /// Kept sets of the largest of them.
    pub kept_sets: usize,
    /// Pools that were decided without a grid.
    pub pools: usize,
}

/// A pool of all users of some types.
#[derive(Debug, Clone)]
struct Pool {
    active: Vec<usize>,
    counts: Vec<usize>,
}

/// A choice of types that is being decided.
#[derive(Debug)]
struct Trial {
    places: Vec<usize>,
    /// The users that a better stable set has at most, beside those dropped, plus 1.
    room: usize,
}

/// What is next.
#[derive(Debug)]
enum Phase {
    /// Another choice, with the stage of the users it drops begun or not.
    Choose,
    /// Whether a choice fails, without a grid.
    Pool(Trial),
    /// Its grid.
    Grid(Trial),
    /// Which of its types may be left out so that the rest still fails: the one at `at` is next.
    Lesson {
        trial: Trial,
        rest: Vec<usize>,
        at: usize,
        grid: bool,
    },
    Done,
}

/// Distributions that are asked for.
#[derive(Debug)]
enum Asked {
    Keys(Vec<Key>),
    Grid(StableFamily),
}

/// The rows of an answer.
#[derive(Debug)]
struct Answer {
    matrix: Arc<PmfMatrix<'static>>,
    incompatible: Vec<usize>,
}

/// Something that is known, or a question first.
enum Poll<T> {
    Ask(Question),
    Ready(T),
}

/// A search for the smallest stable sets, from question to question.
#[derive(Debug)]
pub struct StableSearch {
    problem: Problem,
    deletions: usize,
    /// Types by their users, then by index.
    ordered: Vec<usize>,
    choices: Choices,
    pools: Option<Pools>,
    /// Users dropped by the choices that are looked at.
    dropped: usize,
    begun: bool,
    tried: usize,
    lessons: usize,
    futile: usize,
    phase: Phase,
    asked: Option<Asked>,
    answer: Option<Answer>,
    best: Option<Smallest>,
    work: Work,
}

impl StableSearch {
    /// A search that has not begun.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for fewer users than are kept, a limit above the deletions, no types admitted, or
    /// other values than types; [`Error::TooLarge`] for more than 2^32 users.
    pub fn new(problem: Problem) -> Result<Self> {
        let users = problem.counts.iter().try_fold(problem.unusable, |sum, &count| sum.checked_add(count));
        let users = users.filter(|&users| u32::try_from(users).is_ok()).ok_or_else(|| {
            Error::too_large("counts: more than 2^32 users; there is no way to decide stability for them")
        })?;
        let deletions = users.checked_sub(problem.kept).ok_or_else(|| {
            Error::invalid("kept", format!("{} exceeds the number of users, {users}", problem.kept))
        })?;
        if problem.limit > deletions {
            let message = format!("{} exceeds the {deletions} deletions", problem.limit);
            return Err(Error::invalid("limit", message));
        }
        if problem.max_types == 0 {
            return Err(Error::invalid("max_types", "must be at least 1"));
        }
        if let Some(Keys::Totals(values)) = &problem.keys
            && values.len() != problem.counts.len()
        {
            let message = format!("has {} values of {} types", values.len(), problem.counts.len());
            return Err(Error::invalid("values", message));
        }
        let mut ordered: Vec<usize> = (0..problem.counts.len()).collect();
        ordered.sort_by_key(|&kind| problem.counts[kind]);
        let sizes = ordered.iter().map(|&kind| problem.counts[kind]).collect();
        let bound = problem.limit.checked_sub(problem.unusable);
        let phase = if bound.is_none() || ordered.is_empty() { Phase::Done } else { Phase::Choose };
        Ok(Self {
            deletions,
            choices: Choices::new(sizes, problem.max_types.min(ordered.len()), bound.unwrap_or(0)),
            ordered,
            pools: problem.keys.clone().map(Pools::new),
            dropped: problem.unusable,
            begun: false,
            tried: 0,
            lessons: 0,
            futile: 0,
            phase,
            asked: None,
            answer: None,
            best: None,
            work: Work::default(),
            problem,
        })
    }

    /// What was found, once there are no more questions; None when every stable set exceeds the limit.
    pub fn found(&self) -> Option<&Smallest> {
        self.best.as_ref()
    }

    /// What was done so far.
    pub fn work(&self) -> Work {
        self.work
    }

    /// Goes on up to the next question; None at the end.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] when the last question has no answer; [`Error::TooLarge`] beyond `max_choices`, or
    /// for a grid that does not fit; [`Error::Canceled`], after which the search cannot go on.
    pub fn step(&mut self, control: &Control) -> Result<Option<Question>> {
        if self.asked.is_some() && self.answer.is_none() {
            return Err(Error::invalid("search", "waits for the answer to its last question"));
        }
        loop {
            let phase = mem::replace(&mut self.phase, Phase::Done);
            self.phase = match phase {
                Phase::Done => return Ok(None),
                Phase::Choose => self.choose(control)?,
                Phase::Pool(trial) => {
                    let pool = self.pool(&trial.places);
                    match self.small(&pool, trial.room, control)? {
                        Poll::Ask(question) => return Ok(Some(self.ask(Phase::Pool(trial), question))),
                        Poll::Ready(Some(true)) => self.lesson(trial),
                        Poll::Ready(_) => Phase::Grid(trial),
                    }
                }
                Phase::Grid(trial) => {
                    let pool = self.pool(&trial.places);
                    let (deletions, limit) =
                        (self.deletions - self.dropped, self.problem.limit - self.dropped);
                    match self.grid(&pool, deletions, limit, control)? {
                        Poll::Ask(question) => return Ok(Some(self.ask(Phase::Grid(trial), question))),
                        Poll::Ready((family, answer, smallest)) => match smallest {
                            Some(removed) if removed < trial.room => {
                                self.improve(pool.active, removed, family, answer)
                            }
                            _ => self.lesson(trial),
                        },
                    }
                }
                Phase::Lesson { trial, rest, at, grid } => {
                    match self.learn(trial, rest, at, grid, control)? {
                        Poll::Ask(question) => return Ok(Some(question)),
                        Poll::Ready(phase) => phase,
                    }
                }
            };
        }
    }

    /// Takes the distributions that were asked for: row i of the matrix is the i-th, and on incompatible rows the
    /// algorithm fails.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] without a question, or for other rows than were asked for.
    pub fn answer(&mut self, matrix: Arc<PmfMatrix<'static>>, incompatible: Vec<usize>) -> Result<()> {
        let rows = match (&self.asked, &self.answer) {
            (Some(Asked::Keys(keys)), None) => keys.len(),
            (Some(Asked::Grid(family)), None) => family.rows(),
            _ => return Err(Error::invalid("matrix", "answers no question")),
        };
        check_rows(&matrix, &incompatible, rows)?;
        self.answer = Some(Answer { matrix, incompatible });
        Ok(())
    }

    fn ask(&mut self, phase: Phase, question: Question) -> Question {
        self.phase = phase;
        question
    }

    /// The next choice.
    fn choose(&mut self, control: &Control) -> Result<Phase> {
        loop {
            let better = self.best.as_ref().map_or(self.problem.limit + 1, |best| best.size);
            if !self.begun {
                if self.dropped >= better {
                    return Ok(Phase::Done);
                }
                self.choices.begin(self.dropped - self.problem.unusable);
                self.begun = true;
            }
            let Some(places) = self.choices.next(control)? else {
                self.dropped += 1;
                self.begun = false;
                continue;
            };
            if self.problem.max_choices.is_some_and(|most| self.tried >= most) {
                return Err(Error::too_large(format!(
                    "sets of up to {} users may leave more than {} choices of {} types; refusal_probability looks at \
                     those up to the largest size that a release needs",
                    self.problem.limit,
                    in_groups(self.tried),
                    self.problem.max_types
                )));
            }
            self.tried += 1;
            let all = places.len() == self.choices.len();
            let trial = Trial { places, room: better - self.dropped };
            return Ok(if all { Phase::Grid(trial) } else { Phase::Pool(trial) });
        }
    }

    fn improve(&mut self, active: Vec<usize>, removed: usize, family: StableFamily, answer: Answer) -> Phase {
        self.best = Some(Smallest {
            size: self.dropped + removed,
            dropped: self.dropped,
            active,
            family: Arc::new(family),
            matrix: answer.matrix,
            incompatible: answer.incompatible,
        });
        if removed == 0 { Phase::Done } else { Phase::Choose }
    }

    /// What is learned from a choice that fails, as long as that helps.
    fn lesson(&self, trial: Trial) -> Phase {
        if self.lessons >= MAX_LESSONS || self.futile >= MAX_FUTILE {
            return Phase::Choose;
        }
        let rest = trial.places.clone();
        Phase::Lesson { trial, rest, at: 0, grid: false }
    }

    /// Leaves types out of a choice as long as the rest fails, and excludes the rest.
    fn learn(
        &mut self,
        trial: Trial,
        mut rest: Vec<usize>,
        mut at: usize,
        mut grid: bool,
        control: &Control,
    ) -> Result<Poll<Phase>> {
        while let Some(&place) = trial.places.get(at) {
            let fewer: Vec<usize> = rest.iter().copied().filter(|&other| other != place).collect();
            let fails = if self.choices.droppable(place) {
                self.fails(&fewer, trial.room, &mut grid, control)?
            } else {
                Poll::Ready(false)
            };
            match fails {
                Poll::Ask(question) => {
                    self.phase = Phase::Lesson { trial, rest, at, grid };
                    return Ok(Poll::Ask(question));
                }
                Poll::Ready(true) => rest = fewer,
                Poll::Ready(false) => {}
            }
            (at, grid) = (at + 1, false);
        }
        if rest.len() < trial.places.len() {
            self.choices.exclude(&rest);
            self.lessons += 1;
        } else {
            self.futile += 1;
        }
        Ok(Poll::Ready(Phase::Choose))
    }

    /// True when at least `room` users of these types are in every stable set, whoever else is there.
    fn fails(
        &mut self,
        places: &[usize],
        room: usize,
        grid: &mut bool,
        control: &Control,
    ) -> Result<Poll<bool>> {
        let pool = self.pool(places);
        let deletions = pool.counts.iter().sum::<usize>().checked_sub(self.problem.kept);
        let Some(deletions) = deletions.filter(|deletions| deletions + 1 >= room) else {
            return Ok(Poll::Ready(false));
        };
        if !*grid {
            match self.small(&pool, room, control)? {
                Poll::Ask(question) => return Ok(Poll::Ask(question)),
                Poll::Ready(Some(needs)) => return Ok(Poll::Ready(needs)),
                Poll::Ready(None) => *grid = true,
            }
        }
        Ok(match self.grid(&pool, deletions, room - 1, control)? {
            Poll::Ask(question) => Poll::Ask(question),
            Poll::Ready((_, _, smallest)) => Poll::Ready(smallest.is_none()),
        })
    }

    fn pool(&self, places: &[usize]) -> Pool {
        let mut active: Vec<usize> = places.iter().map(|&place| self.ordered[place]).collect();
        active.sort_unstable();
        Pool { counts: active.iter().map(|&kind| self.problem.counts[kind]).collect(), active }
    }

    /// The same as [`StableSearch::fails`], where few kept sets decide it.
    fn small(&mut self, pool: &Pool, room: usize, control: &Control) -> Result<Poll<Option<bool>>> {
        let kept = self.problem.kept;
        let deletions = pool.counts.iter().sum::<usize>().checked_sub(kept);
        if deletions.is_none_or(|deletions| deletions + 1 < room) {
            return Ok(Poll::Ready(Some(false)));
        }
        let Some(pools) = &mut self.pools else { return Ok(Poll::Ready(None)) };
        match (self.asked.take(), self.answer.take()) {
            (Some(Asked::Keys(keys)), Some(answer)) => {
                pools.learn(keys, &answer.matrix, &answer.incompatible, control)?;
            }
            _ => pools.tidy(),
        }
        let needs = pools.needs(&pool.active, &pool.counts, kept, room, &self.problem.closeness, control)?;
        Ok(match needs {
            Needs::Pmfs(keys) => {
                self.asked = Some(Asked::Keys(keys.clone()));
                Poll::Ask(Question::Keys(keys))
            }
            Needs::Decided(needs) => {
                self.work.pools += 1;
                Poll::Ready(Some(needs))
            }
            Needs::Large => Poll::Ready(None),
        })
    }

    /// The family of the deletions from a pool with what is bad marked, and its smallest stable size.
    fn grid(
        &mut self,
        pool: &Pool,
        deletions: usize,
        limit: usize,
        control: &Control,
    ) -> Result<Poll<(StableFamily, Answer, Option<usize>)>> {
        let (Some(Asked::Grid(family)), Some(answer)) = (self.asked.take(), self.answer.take()) else {
            let family = StableFamily::new(&pool.counts, deletions, limit)?;
            let question = self.question(pool, family.vectors(control)?);
            self.asked = Some(Asked::Grid(family));
            return Ok(Poll::Ask(question));
        };
        let Closeness { level, delta } = &self.problem.closeness;
        family.mark_bad_pairs(&answer.matrix, level, delta, &answer.incompatible, control)?;
        self.work.grids += 1;
        self.work.kept_sets = self.work.kept_sets.max(family.rows());
        let smallest = family.smallest_stable_size(control)?;
        Ok(Poll::Ready((family, answer, smallest)))
    }

    fn question(&self, pool: &Pool, vectors: Vec<u16>) -> Question {
        let Some(pools) = &self.pools else {
            return Question::Deletions { active: pool.active.clone(), vectors };
        };
        let left = |deleted: &[u16]| -> Vec<usize> {
            pool.counts.iter().zip(deleted).map(|(count, &deleted)| count - usize::from(deleted)).collect()
        };
        let rows = vectors.chunks_exact(pool.counts.len());
        Question::Keys(rows.map(|deleted| pools.keys().of(&pool.active, &left(deleted))).collect())
    }
}

/// A number with commas.
fn in_groups(number: usize) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(|group| String::from_utf8_lossy(group).into_owned());
    groups.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;

// Package graph shares the CPUs of a machine among the branches of a task graph.
//
// A graph is a task that forks into branches, each a sequence of operators. Branches can wait
// for others, which makes joins and nested forks. With utilization n of a machine of M CPUs,
// thresholds second < first (0.5, 0.7) and presets P2 < P1 < M, [Plan] decides:
//
//   - n below second: branches run in parallel, branch i on M·(1−n)·tᵢ/T CPUs, where tᵢ is
//     its time on one CPU and T the sum of the times;
//   - n from second to first: the same with P1 for M;
//   - n above first: one operator after another on P2 CPUs.
//
// At n = first, branches still run in parallel: a threshold is crossed when it is exceeded, so
// 8 CPUs with utilization 0.7 and branches of 50 s and 60 s give 1 CPU each.
//
// The presets of 8 CPUs are 6 and 4. Of M CPUs they are P1 = ⌊3M/4⌋ and P2 = ⌊M/2⌋, at least 1,
// so that P2 < P1 < M from 3 CPUs on (settings.go).
//
// A time is measured seconds, else floating-point operations over the rate of a CPU. If no
// time and no rate is known, ratios of floating-point operations serve as ratios of time. An
// operator of which nothing is known counts as the mean of the others (times.go).
//
// CPUs are pinned whole. The budget M·(1−n) is made whole by rounding to the nearest number,
// at least 1; the sum of the shares of branches that run together never exceeds it, and each
// has at least 1. Largest remainder is the usual way to make shares whole, but with few CPUs
// its longest branch can end much later than necessary: branches of 1.5, 1.5, 1.5 and 5.5 s on
// 10 CPUs would get 2, 2, 1 and 5 and end after 1.5 s; with 2, 2, 2 and 4 they end after 1.375 s.
// Shares are therefore filled up from 1, each further CPU for the branch that would end last.
// No split into whole CPUs ends earlier, if operators are twice as fast on twice as many CPUs
// (shares.go).
//
// Where branches wait for others or exceed the budget, the shortest of three schedules is the
// plan: level by level, or whenever CPUs are free, those with the longest way to the end first
// (schedule.go). The least loaded CPUs are taken, of one NUMA node where it has enough (cpus.go).
// [Revise] plans what remains anew when utilization has crossed a threshold.
//
// The package is pure. It must not know of files, processes, YAML or HTTP.
package graph

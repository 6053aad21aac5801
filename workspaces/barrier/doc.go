// Package barrier allocates the physical barriers of a GPU's thread block to the logical
// barriers of a kernel in PTX.
//
// A kernel may use any number of logical barriers, by number or, declared with
// “.weir.bar name;”, by name. [Allocate] rewrites it for the barriers that there are:
//
//  1. It parses the functions: labels, branches, predicates and the instructions bar and
//     barrier (lex.go, parse.go, ops.go). All other bytes pass through.
//  2. It groups the warps of a block by the ways that they go. Predicates that follow from
//     the number of a thread are decided; all others lead both ways (warps.go, flow.go).
//  3. It cuts the kernel at strong barriers, which all threads pass (segments.go).
//  4. For each segment, in parallel, it finds which barriers are over before which others
//     begin, by every way and for every warp (order.go). Barrier A is over before B if every
//     warp that uses B knows at that point, through the barriers at which it has waited, that
//     all participants of A have used A for the last time. The barriers and this order are
//     the segment's acyclic graph.
//  5. Barriers of which one is over before the other begins can share a physical barrier.
//     The fewest physical barriers are the most barriers of which none is over before
//     another (Dilworth). If the lifetimes are intervals, a sweep finds the allocation, else
//     a maximum matching does; both are optimal (assign.go).
//
// A barrier has one lifetime in a segment, from its first use to its last, also if it
// completes several times: it is not split between its phases.
//
// What is assumed of a kernel: warps are runs of 32 threads, as they are numbered; all
// threads of a warp use a barrier together; no warp uses a barrier again before the previous
// phase has completed, which PTX leaves undefined too; arrivals in loops are complete when
// the loop ends; functions that are not in the source use no barriers.
//
// The facts about barriers are from NVIDIA's PTX ISA 9.0: bar and barrier, section
// 9.7.13.1 (16 barriers by block, forms, counts in multiples of the warp size, registers as
// operands, what an arrival must not be followed by, reuse at completion); lexical rules,
// section 4; control flow, section 9.7.12; .branchtargets, section 11.3.1; .reqntid, section
// 11.4.3. The package is pure. It must not know of files, HTTP or the database.
package barrier

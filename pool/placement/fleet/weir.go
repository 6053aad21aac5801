package fleet

import "math/rand/v2"

func weir(f *Fleet, workload []Task, r *rand.Rand) policy { return fgd(f, workload, r) }

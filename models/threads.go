package models

import "strconv"

// threadVariables tell libraries how many threads to use.
var threadVariables = []string{"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS",
	"NUMBA_NUM_THREADS", "RAYON_NUM_THREADS", "JULIA_NUM_THREADS"}

// maxNumExprThreads is what NumExpr accepts at most, unless NUMEXPR_MAX_THREADS is set.
const maxNumExprThreads = 64

// ThreadVariables are environment variables that have libraries use as many threads as there
// are CPUs. Most libraries otherwise start one for each CPU of the machine, also where a
// cgroup gives them the time of two. Programs in Go know their cgroup.
func ThreadVariables(cpus int64) map[string]string {
	env := make(map[string]string, len(threadVariables))
	for _, name := range threadVariables {
		env[name] = strconv.FormatInt(cpus, 10)
	}
	env["NUMEXPR_NUM_THREADS"] = strconv.FormatInt(min(cpus, maxNumExprThreads), 10)
	return env
}

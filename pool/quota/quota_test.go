package quota_test

import (
	"fmt"
	"testing"

	"weir/models"
	"weir/pool/quota"
)

// r has GPU cores and CPU, the others are 0.
func r(cores, cpu int64) models.Resources { return models.Resources{GPUCores: cores, CPUMilli: cpu} }

func brief(list []quota.Excess) (s string) {
	for _, e := range list {
		if e.OfProject {
			s += "project's "
		}
		s += fmt.Sprintf("%s %d+%d of %d, %d left; ", e.Name, e.Taken, e.Requested, e.Bound, e.Remaining)
	}
	return s
}

// Rule 1: the members' limits, together, are at most the quota.
func TestLimits(t *testing.T) {
	for name, c := range map[string]struct {
		quota, allocated, more models.Resources
		remaining              models.Resources
		exceeded               string
		fits                   int64 // with more as the limit
	}{
		"all of it":              {r(100, 50), r(60, 0), r(40, 50), r(40, 50), "", 1},
		"one too many":           {r(100, 50), r(60, 0), r(41, 50), r(40, 50), "gpu_cores 60+41 of 100, 40 left; ", 0},
		"two resources":          {r(100, 50), r(60, 50), r(41, 1), r(40, 0), "gpu_cores 60+41 of 100, 40 left; cpu_milli 50+1 of 50, 0 left; ", 0},
		"none of it":             {r(100, 0), r(0, 0), r(10, 1), r(100, 0), "cpu_milli 0+1 of 0, 0 left; ", 0},
		"no limit asks nothing":  {r(100, 50), r(60, 0), r(0, 0), r(40, 50), "", -1},
		"less of too much":       {r(100, 0), r(120, 0), r(-10, 0), r(-20, 0), "", -1},
		"the same of too much":   {r(100, 0), r(120, 0), r(0, 0), r(-20, 0), "", -1},
		"more of too much":       {r(100, 0), r(120, 0), r(1, 0), r(-20, 0), "gpu_cores 120+1 of 100, 0 left; ", 0},
		"the scarcest decides":   {r(100, 50), r(40, 20), r(20, 20), r(60, 30), "", 1},
		"other may fill its own": {r(100, 50), r(120, 20), r(0, 30), r(-20, 30), "", 1},
		"unlimited":              {r(100, models.Unlimited), r(60, 50), r(0, 1000), r(40, models.Unlimited), "", -1},
		"unlimited is allocated": {r(100, models.Unlimited), r(60, models.Unlimited), r(10, 1), r(40, models.Unlimited), "", 4},
	} {
		a := quota.Limits{Quota: c.quota, Allocated: c.allocated}
		if got := brief(a.ExceededBy(c.more)); got != c.exceeded {
			t.Errorf("%s: %q, want %q", name, got, c.exceeded)
		}
		if got := a.Fits(c.more); got != c.fits {
			t.Errorf("%s: %d fit, want %d", name, got, c.fits)
		}
		if got := a.Remaining(); got != c.remaining {
			t.Errorf("%s: %+v remain, want %+v", name, got, c.remaining)
		}
	}
}

// Rule 2: what is in use is at most the member's limit and the project's
// quota.
func TestUse(t *testing.T) {
	for name, c := range map[string]struct {
		quota, byProject, limit, byMember models.Resources
		remaining, asked                  models.Resources
		exceeded                          string
	}{
		"the limit is less":    {r(100, 0), r(10, 0), r(50, 0), r(10, 0), r(40, 0), r(41, 0), "gpu_cores 10+41 of 50, 40 left; "},
		"the quota is less":    {r(100, 0), r(90, 0), r(50, 0), r(10, 0), r(10, 0), r(11, 0), "project's gpu_cores 90+11 of 100, 10 left; "},
		"each another":         {r(100, 100), r(90, 0), r(50, 50), r(10, 20), r(10, 30), r(11, 31), "project's gpu_cores 90+11 of 100, 10 left; cpu_milli 20+31 of 50, 30 left; "},
		"all of it":            {r(100, 0), r(90, 0), r(50, 0), r(10, 0), r(10, 0), r(10, 0), ""},
		"nothing of too much":  {r(100, 5), r(120, 9), r(50, 5), r(60, 9), r(0, 0), r(0, 0), ""},
		"more of too much":     {r(100, 0), r(120, 0), r(50, 0), r(60, 0), r(0, 0), r(1, 0), "gpu_cores 60+1 of 50, 0 left; "},
		"no limit, no use":     {r(100, 0), r(0, 0), r(0, 0), r(0, 0), r(0, 0), r(1, 0), "gpu_cores 0+1 of 0, 0 left; "},
		"a limit over a quota": {r(10, 0), r(0, 0), r(50, 0), r(0, 0), r(10, 0), r(11, 0), "project's gpu_cores 0+11 of 10, 10 left; "},
	} {
		u := quota.Use{Quota: c.quota, InUseByProject: c.byProject, Limit: c.limit, InUseByMember: c.byMember}
		if got := u.Remaining(); got != c.remaining {
			t.Errorf("%s: %+v remain, want %+v", name, got, c.remaining)
		}
		if got := brief(u.ExceededBy(c.asked)); got != c.exceeded {
			t.Errorf("%s: %q, want %q", name, got, c.exceeded)
		}
	}
}

// A sum that is there already is held against a bound that shall be new.
func TestExceeded(t *testing.T) {
	for name, c := range map[string]struct {
		sum, bound models.Resources
		exceeded   string
	}{
		"less":     {r(9, 0), r(10, 0), ""},
		"the same": {r(10, 5), r(10, 5), ""},
		"more":     {r(11, 5), r(10, 5), "gpu_cores 11 of 10; "},
		"none":     {r(1, 1), r(0, 0), "gpu_cores 1 of 0; cpu_milli 1 of 0; "},
	} {
		got := ""
		for _, e := range c.sum.Exceeding(c.bound) {
			got += fmt.Sprintf("%s %d of %d; ", e.Name, e.Value, e.Limit)
		}
		if got != c.exceeded {
			t.Errorf("%s: %q, want %q", name, got, c.exceeded)
		}
	}
}

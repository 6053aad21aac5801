package models

import "testing"

// A quantity in a form parses to the same amount.
func TestExactQuantityParses(t *testing.T) {
	values := []int64{0, 1, 9, 10, 500, 1023, 1024, 1234, 14001, 140_000, 10<<20 - 1024, 10 << 20, 10<<20 + 1024, 12 << 20, 99_999_999, MaxAmount}
	for _, a := range (Resources{}).Amounts() {
		for _, n := range values {
			read := func(s string) (int64, error) { return ParseMiB(s, 1) }
			switch a.Name {
			case "gpu_cores":
				read = ParseCount
			case "cpu_milli":
				read = ParseCPU
			}
			words := ExactQuantity(a.Name, n)
			if got, err := read(words); err != nil || got != n {
				t.Errorf("%d of %s is %q, which is read as %d, %v", n, a.Name, words, got, err)
			}
		}
	}
}

func TestKindOfARequest(t *testing.T) {
	one := map[string]Requested{RequestProject: {Project: &ProjectSpec{}}, RequestQuota: {Quota: &QuotaSpec{}}, RequestRole: {Role: &RoleSpec{}}, RequestLimit: {Limit: &LimitSpec{}},
		RequestPeriod: {Period: &PeriodSpec{}}, RequestDeadline: {Deadline: &DeadlineSpec{}}, RequestJoin: {Join: &JoinSpec{}}}
	for _, kind := range RequestKinds {
		if got := one[kind].Kind(); got != kind {
			t.Errorf("%s is taken for %q", kind, got)
		}
		if clone := one[kind].Clone(); clone.Kind() != kind || clone == one[kind] {
			t.Errorf("the clone of %s is %+v", kind, clone)
		}
	}
	if got := (Requested{}).Kind() + (Requested{Quota: &QuotaSpec{}, Join: &JoinSpec{}}).Kind(); got != "" || len(one) != len(RequestKinds) {
		t.Errorf("nothing and two things are %q; %d kinds of %d", got, len(one), len(RequestKinds))
	}
}

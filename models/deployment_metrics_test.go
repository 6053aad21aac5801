package models

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The bounds of buckets grow by a quarter, and each duration is in the first bucket whose bound it does not exceed.
func TestDurationBuckets(t *testing.T) {
	for i := int64(1); i < LastDurationBucket; i++ {
		low, high := DurationBound(i-1), DurationBound(i)
		if ratio := float64(high) / float64(low); ratio < 1.24 || ratio > 1.29 {
			t.Errorf("bucket %d ends at %v, %v times the one before", i, high, ratio)
		}
		for d, want := range map[time.Duration]int64{low: i - 1, low + 1: i, high: i, high + 1: i + 1} {
			if got := DurationBucket(d); got != want {
				t.Errorf("%v is in bucket %d, not %d", d, got, want)
			}
		}
	}
	for d, want := range map[time.Duration]int64{-time.Second: 0, 0: 0, time.Millisecond: 0, time.Second: 30, 5000 * time.Second: 67,
		5001 * time.Second: LastDurationBucket, 1 << 62: LastDurationBucket} {
		if got := DurationBucket(d); got != want {
			t.Errorf("%v is in bucket %d, not %d", d, got, want)
		}
	}
}

// A quantile is estimated in the bucket in which the true one is, and grows with its part.
func TestDurationQuantiles(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var h Durations
		all := make([]time.Duration, 1+random.IntN(200))
		for i := range all {
			all[i] = time.Duration(random.ExpFloat64() * float64(time.Second) * float64(int64(1)<<random.IntN(14)))
			h.Add(DurationBucket(all[i]), 1, all[i].Milliseconds())
		}
		slices.Sort(all)
		if h.Count() != int64(len(all)) {
			t.Fatalf("%d of %d are counted", h.Count(), len(all))
		}
		before := time.Duration(0)
		for _, part := range []float64{0, .01, .5, .95, .99, 1} {
			rank := max(int(part*float64(len(all))+.999999), 1)
			estimated, want := h.Quantile(part), DurationBucket(all[rank-1])
			inside := estimated <= DurationBound(want) && (want == 0 || estimated >= DurationBound(want-1))
			if !inside || estimated < before {
				t.Fatalf("of %d, %v do not exceed %v, which is not in bucket %d of %v", len(all), part, estimated, want, all[rank-1])
			}
			before = estimated
		}
	}
	var none, long Durations
	long.Add(DurationBucket(3*time.Hour), 2, 2*3*3600*1000)
	if none.Quantile(.5) != 0 || none.Mean() != 0 || long.Quantile(.5) != 5000*time.Second || long.Mean() != 3*time.Hour {
		t.Errorf("%v %v %v %v", none.Quantile(.5), none.Mean(), long.Quantile(.5), long.Mean())
	}
}

package timeline

import (
	"math"
	"slices"
)

// Amount is an amount of a device's compute, in hundredths, and memory.
type Amount struct{ Cores, MemoryMiB int64 }

func (a Amount) plus(b Amount) Amount  { return Amount{a.Cores + b.Cores, a.MemoryMiB + b.MemoryMiB} }
func (a Amount) minus(b Amount) Amount { return Amount{a.Cores - b.Cores, a.MemoryMiB - b.MemoryMiB} }

// within reports whether both amounts are at most those of the limit.
func (a Amount) within(limit Amount) bool {
	return a.Cores <= limit.Cores && a.MemoryMiB <= limit.MemoryMiB
}

// Span is the time from From until before Until, in microseconds since 1970. Nothing is
// before math.MinInt64+1.
type Span struct{ From, Until int64 }

// Timeline is the use of one device over time. The zero value is unused at all times.
type Timeline struct {
	chunks []chunk // the first one begins at the beginning of time
}

// chunkSize is the most steps of a chunk; BenchmarkChunkSize compares others.
const chunkSize = 128

// step is a time from which the use is another.
type step struct {
	at  int64
	use Amount // less the chunk's offset
}

// chunk is a part of the steps, at least one.
type chunk struct {
	at        int64 // of the first step; beside it, so that a search reads one array
	steps     []step
	offset    Amount // to be added to all that follows
	low, high Amount // of the uses, each amount for itself
}

func (c *chunk) use(i int) Amount { return c.steps[i].use.plus(c.offset) }

// find returns the index of the last step at or before a time, or -1.
func (c *chunk) find(at int64) int {
	low, high := 0, len(c.steps)
	for low < high {
		if mid := int(uint(low+high) >> 1); c.steps[mid].at <= at {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low - 1
}

// measure finds the beginning, the lowest and the highest use again.
func (c *chunk) measure() {
	c.at = c.steps[0].at
	c.low, c.high = c.steps[0].use, c.steps[0].use
	for _, s := range c.steps[1:] {
		c.low.Cores, c.high.Cores = min(c.low.Cores, s.use.Cores), max(c.high.Cores, s.use.Cores)
		c.low.MemoryMiB, c.high.MemoryMiB = min(c.low.MemoryMiB, s.use.MemoryMiB), max(c.high.MemoryMiB, s.use.MemoryMiB)
	}
}

// raise adds to the uses of some steps.
func (c *chunk) raise(from, until int, a Amount) {
	for i := from; i < until; i++ {
		c.steps[i].use = c.steps[i].use.plus(a)
	}
}

// find returns the chunk of a time.
func (t *Timeline) find(at int64) int {
	low, high := 1, len(t.chunks)
	for low < high {
		if mid := int(uint(low+high) >> 1); t.chunks[mid].at <= at {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low - 1
}

// Add adds an amount to the use of a span; a negative one takes it away.
func (t *Timeline) Add(s Span, a Amount) {
	if s.From >= s.Until || a == (Amount{}) {
		return
	}
	if len(t.chunks) == 0 {
		t.chunks = []chunk{{at: math.MinInt64, steps: []step{{at: math.MinInt64}}}}
	}
	t.begin(s.Until)
	t.begin(s.From)
	first, last := t.find(s.From), t.find(s.Until)
	from, until := t.chunks[first].find(s.From), t.chunks[last].find(s.Until)
	for i := first; i <= last; i++ {
		c, low, high := &t.chunks[i], 0, len(t.chunks[i].steps)
		if i == first {
			low = from
		}
		if i == last {
			high = until
		}
		if low == 0 && high == len(c.steps) {
			c.offset = c.offset.plus(a)
		} else {
			c.raise(low, high, a)
		}
	}
	t.join(last, until)
	if first != last {
		t.settle(last)
	}
	t.join(first, from)
	t.settle(first)
}

// begin makes a time the beginning of a step.
func (t *Timeline) begin(at int64) {
	i := t.find(at)
	c := &t.chunks[i]
	k := c.find(at)
	if c.steps[k].at == at {
		return
	}
	c.steps = slices.Insert(c.steps, k+1, step{at, c.steps[k].use})
	if len(c.steps) > chunkSize {
		half := chunk{steps: slices.Clone(c.steps[chunkSize/2:]), offset: c.offset}
		c.steps = c.steps[:chunkSize/2]
		c.measure()
		half.measure()
		t.chunks = slices.Insert(t.chunks, i+1, half)
	}
}

// join removes a step at which the use does not change.
func (t *Timeline) join(i, k int) {
	c := &t.chunks[i]
	if k > 0 && c.steps[k].use == c.steps[k-1].use ||
		k == 0 && i > 0 && c.use(0) == t.chunks[i-1].use(len(t.chunks[i-1].steps)-1) {
		c.steps = slices.Delete(c.steps, k, k+1)
	}
}

// settle measures a chunk whose steps have changed, and joins it to the next if both are small.
func (t *Timeline) settle(i int) {
	c := &t.chunks[i]
	if i+1 < len(t.chunks) && len(c.steps)+len(t.chunks[i+1].steps) <= chunkSize/2 {
		next := &t.chunks[i+1]
		for _, s := range next.steps {
			c.steps = append(c.steps, step{s.at, s.use.plus(next.offset).minus(c.offset)})
		}
		t.chunks = slices.Delete(t.chunks, i+1, i+2)
	}
	if len(c.steps) == 0 {
		t.chunks = slices.Delete(t.chunks, i, i+1)
		return
	}
	c.measure()
}

// Max is the highest use in a span, of cores and of memory each for itself.
func (t *Timeline) Max(s Span) (highest Amount) {
	if s.From >= s.Until || len(t.chunks) == 0 {
		return highest
	}
	first, last := t.find(s.From), t.find(s.Until-1)
	highest = Amount{math.MinInt64, math.MinInt64}
	for i := first; i <= last; i++ {
		c := &t.chunks[i]
		if i > first && i < last {
			highest = higher(highest, c.high.plus(c.offset))
			continue
		}
		low, high := 0, len(c.steps)-1
		if i == first {
			low = c.find(s.From)
		}
		if i == last {
			high = c.find(s.Until - 1)
		}
		for k := low; k <= high; k++ {
			highest = higher(highest, c.use(k))
		}
	}
	return highest
}

func higher(a, b Amount) Amount {
	return Amount{max(a.Cores, b.Cores), max(a.MemoryMiB, b.MemoryMiB)}
}

// Earliest is the earliest time in the window from which the use stays within the limit
// for a duration that ends in the window as well; false if there is none. The limit is
// the device's capacity less what is to be reserved.
func (t *Timeline) Earliest(limit Amount, duration int64, window Span) (from int64, found bool) {
	from = window.From
	latest := window.Until - duration
	if from > latest {
		return 0, false
	}
	if len(t.chunks) == 0 {
		return from, (Amount{}).within(limit)
	}
	for i := t.find(from); i < len(t.chunks); i++ {
		c := &t.chunks[i]
		if c.at >= from+duration {
			return from, true
		}
		limit := limit.minus(c.offset)
		if c.high.within(limit) {
			continue
		}
		for k := 0; k < len(c.steps); k++ {
			if c.steps[k].use.within(limit) {
				continue
			}
			if c.steps[k].at >= from+duration {
				return from, true
			}
			if from = max(from, t.end(i, k)); from > latest {
				return 0, false
			}
		}
	}
	return from, true
}

// end is when the step k of a chunk ends.
func (t *Timeline) end(i, k int) int64 {
	switch {
	case k+1 < len(t.chunks[i].steps):
		return t.chunks[i].steps[k+1].at
	case i+1 < len(t.chunks):
		return t.chunks[i+1].at
	}
	return math.MaxInt64
}

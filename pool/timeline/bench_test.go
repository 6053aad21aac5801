package timeline

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

const (
	second = int64(1e6)
	days90 = 90 * 24 * 3600 * second
)

// reservations are as many spans over 90 days: from ten minutes to two days.
func reservations(n int) (all list) {
	r := rand.New(rand.NewPCG(7, 11))
	for range n {
		length := 600*second + int64(r.ExpFloat64()*float64(4*3600*second))
		from := r.Int64N(days90 - length%days90)
		all = append(all, entry{Span{from, from + min(length, 48*3600*second)}, Amount{1 + r.Int64N(100), 1 + r.Int64N(80_000)}})
	}
	return all
}

// sortedList is what is usual: the spans sorted by their beginnings. A maximum looks at
// those that begin before the end of the span.
type sortedList list

func (l *sortedList) Add(s Span, a Amount) {
	i, _ := slices.BinarySearchFunc(*l, s.From, func(e entry, at int64) int { return int(min(max(e.span.From-at, -1), 1)) })
	*l = slices.Insert(*l, i, entry{s, a})
}

// Max follows the use through the beginnings and ends in the span.
func (l *sortedList) Max(s Span) (highest Amount) {
	var changes []step
	for _, e := range *l {
		if e.span.From >= s.Until {
			break
		}
		if e.span.Until > s.From {
			changes = append(changes, step{max(e.span.From, s.From), e.amount}, step{e.span.Until, Amount{}.minus(e.amount)})
		}
	}
	slices.SortFunc(changes, func(a, b step) int { return int(min(max(a.at-b.at, -1), 1)) })
	var use Amount
	for i, c := range changes {
		if use = use.plus(c.use); i+1 == len(changes) || changes[i+1].at > c.at {
			highest = higher(highest, use)
		}
	}
	return highest
}

// tree is a treap of the changes, each with the sum of its subtree and the highest sum
// before any of its changes ends.
type tree struct {
	nodes []treeNode
	root  int32
	r     *rand.Rand
}

type treeNode struct {
	at          int64
	change      Amount
	sum, high   Amount // high: of the sums of the first changes, at least one
	left, right int32
	priority    uint32
}

func newTree() *tree { return &tree{nodes: make([]treeNode, 1), r: rand.New(rand.NewPCG(3, 5))} }

func (t *tree) pull(i int32) {
	n := &t.nodes[i]
	sum := t.nodes[n.left].sum.plus(n.change)
	high := sum
	if n.left != 0 {
		high = higher(high, t.nodes[n.left].high)
	}
	if n.right != 0 {
		high = higher(high, sum.plus(t.nodes[n.right].high))
	}
	n.sum, n.high = sum.plus(t.nodes[n.right].sum), high
}

// change adds a change at a time.
func (t *tree) change(at int64, a Amount) { t.root = t.insert(t.root, at, a) }

func (t *tree) insert(i int32, at int64, a Amount) int32 {
	if i == 0 {
		t.nodes = append(t.nodes, treeNode{at: at, change: a, sum: a, high: a, priority: t.r.Uint32()})
		return int32(len(t.nodes) - 1)
	}
	switch {
	case at == t.nodes[i].at:
		t.nodes[i].change = t.nodes[i].change.plus(a)
	case at < t.nodes[i].at:
		left := t.insert(t.nodes[i].left, at, a)
		t.nodes[i].left = left
		if t.nodes[left].priority > t.nodes[i].priority {
			t.nodes[i].left, t.nodes[left].right = t.nodes[left].right, i
			t.pull(i)
			i = left
		}
	default:
		right := t.insert(t.nodes[i].right, at, a)
		t.nodes[i].right = right
		if t.nodes[right].priority > t.nodes[i].priority {
			t.nodes[i].right, t.nodes[right].left = t.nodes[right].left, i
			t.pull(i)
			i = right
		}
	}
	t.pull(i)
	return i
}

func (t *tree) Add(s Span, a Amount) {
	t.change(s.From, a)
	t.change(s.Until, Amount{}.minus(a))
}

// before is the sum of the changes before a time, or at it.
func (t *tree) before(at int64) (sum Amount) {
	for i := t.root; i != 0; {
		n := &t.nodes[i]
		if n.at > at {
			i = n.left
			continue
		}
		sum = sum.plus(t.nodes[n.left].sum).plus(n.change)
		i = n.right
	}
	return sum
}

func (t *tree) Max(s Span) Amount {
	highest := t.before(s.From)
	t.visit(t.root, Amount{}, s, &highest)
	return highest
}

// visit follows the changes of a subtree after the beginning of a span and before its end.
func (t *tree) visit(i int32, base Amount, s Span, highest *Amount) {
	for i != 0 {
		n := &t.nodes[i]
		here := base.plus(t.nodes[n.left].sum)
		switch {
		case n.at <= s.From:
			base, i = here.plus(n.change), n.right
		case n.at >= s.Until:
			i = n.left
		default:
			*highest = higher(*highest, here.plus(n.change))
			t.from(n.left, base, s.From, highest)
			t.until(n.right, here.plus(n.change), s.Until, highest)
			return
		}
	}
}

func (t *tree) from(i int32, base Amount, from int64, highest *Amount) {
	for i != 0 {
		n := &t.nodes[i]
		here := base.plus(t.nodes[n.left].sum).plus(n.change)
		if n.at <= from {
			base, i = here, n.right
			continue
		}
		*highest = higher(*highest, here)
		if n.right != 0 {
			*highest = higher(*highest, here.plus(t.nodes[n.right].high))
		}
		i = n.left
	}
}

func (t *tree) until(i int32, base Amount, until int64, highest *Amount) {
	for i != 0 {
		n := &t.nodes[i]
		if n.at >= until {
			i = n.left
			continue
		}
		here := base.plus(t.nodes[n.left].sum).plus(n.change)
		*highest = higher(*highest, here)
		if n.left != 0 {
			*highest = higher(*highest, base.plus(t.nodes[n.left].high))
		}
		base, i = here, n.right
	}
}

type structure interface {
	Add(Span, Amount)
	Max(Span) Amount
}

var structures = map[string]func() structure{
	"chunks": func() structure { return new(Timeline) }, "list": func() structure { return new(sortedList) }, "tree": func() structure { return newTree() },
}

// The structures that are compared give the same answers.
func TestStructuresAgree(t *testing.T) {
	all := reservations(2000)
	chunks, tree, sorted := new(Timeline), newTree(), new(sortedList)
	for _, e := range all {
		chunks.Add(e.span, e.amount)
		tree.Add(e.span, e.amount)
		sorted.Add(e.span, e.amount)
	}
	for _, e := range all {
		if a, b, c := chunks.Max(e.span), tree.Max(e.span), sorted.Max(e.span); a != b || b != c {
			t.Fatalf("%v: %v, %v, %v", e.span, a, b, c)
		}
	}
}

// Benchmark adds and removes a reservation among many on one device, and asks for the
// maximum of a reservation's span and of all 90 days.
func Benchmark(b *testing.B) {
	for _, n := range []int{1000, 100_000, 1_000_000} {
		for _, name := range []string{"list", "tree", "chunks"} {
			if name == "list" && n > 100_000 {
				continue // it takes minutes
			}
			line, all := structures[name](), reservations(n)
			if name == "list" {
				l := sortedList(all)
				slices.SortFunc(l, func(a, b entry) int { return int(min(max(a.span.From-b.span.From, -1), 1)) })
				line = &l
			} else {
				for _, e := range all {
					line.Add(e.span, e.amount)
				}
			}
			at := "/" + name + "/" + strconv.Itoa(n)
			b.Run("max"+at, func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					line.Max(all[i%n].span)
				}
			})
			b.Run("max of all"+at, func(b *testing.B) {
				for b.Loop() {
					line.Max(Span{0, days90})
				}
			})
			b.Run("add"+at, func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					e := all[i%n]
					e.span.From += int64(i)
					line.Add(e.span, e.amount)
				}
			})
		}
	}
}

// BenchmarkDecide decides requests for an hour of one device and takes back what each is granted,
// beside 100,000 reservations over 90 days on a number of devices.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int64{1, 8, 64, 1000} {
		b.Run(strconv.FormatInt(n, 10)+" devices", func(b *testing.B) {
			var devices []Device
			for i := range n {
				devices = append(devices, Device{ID: i, Node: i / 8, Model: "H100", Capacity: Amount{1 << 40, 1 << 40}})
			}
			c := NewCalendar(devices)
			for i, e := range reservations(100_000) {
				c.Add([]Grant{{Device: int64(i) % n, Amount: e.amount, Span: e.span}})
			}
			r := rand.New(rand.NewPCG(15, 15))
			for b.Loop() {
				from := r.Int64N(days90)
				d := c.Decide(Request{Later: true, Demand: Demand{GPUs: 1, Each: Amount{10, 8000}, Duration: 3600 * second, Window: Span{from, from + days90}}})
				if d.Outcome != Granted {
					b.Fatal(d.Outcome)
				}
				c.Remove(d.Grants)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
		})
	}
}
